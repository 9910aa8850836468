"""DynamicQuantizeLSTM, into which onnxruntime's dynamic quantization turns each LSTM."""

from typing import Any

import numpy as np
import onnx
import pytest
from contributed_cases import PROVIDERS, Case, Draws, check
from standard_form import run_native
from text_form import parse
from unsigned_weights import unsigned_weights

from py_ort import BrowserOptions
from py_ort.testing.plugin import sessions_in

_DRAWS = Draws()
RNG, f32 = _DRAWS.rng, _DRAWS.f32

STEPS, INPUT, HIDDEN = 6, 5, 8


def _weights(rows: int, directions: int, kind: Any) -> np.ndarray:
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max + 1, (directions, rows, 4 * HIDDEN)).astype(kind)


def _case(
    name: str,
    batch: int = 1,
    lengths: list[int] | None = None,
    kind: Any = np.int8,
    zero: int = 0,
    each_column: bool = False,
    states: bool = True,
    outputs: int = 3,
    **attributes: Any,
) -> Case:
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    scales = (ways, 4 * HIDDEN) if each_column else (ways,)
    h, c = (f32(ways, batch, HIDDEN) / 2 if states else None for _ in range(2))
    part = [
        w for _ in range(2) for w in (RNG.uniform(0.002, 0.01, scales).astype(np.float32), np.full(scales, zero, kind))
    ]
    inputs = [
        *(f32(STEPS, batch, INPUT), _weights(INPUT, ways, kind), _weights(HIDDEN, ways, kind)),
        *(f32(ways, 8 * HIDDEN) / 2, None if lengths is None else np.array(lengths, np.int32)),
        *(h, c, f32(ways, 3 * HIDDEN) / 4 if attributes.pop("peepholes", False) else None, *part),
    ]
    given = {"hidden_size": HIDDEN, **attributes}
    return Case(name, "DynamicQuantizeLSTM", inputs, given, outputs=outputs, tolerance=2e-4)


CASES = [
    _case("one sequence"),
    _case("without states", states=False, outputs=1),
    _case("a batch", 3),
    _case("reverse", 3, direction="reverse"),
    _case("both ways", 2, direction="bidirectional"),
    _case("lengths", 3, [6, 2, 4]),
    _case("shorter than X", 3, [3, 1, 4], direction="bidirectional"),
    _case("of columns", 2, each_column=True, direction="bidirectional"),
    _case("uint8", 2, kind=np.uint8, zero=128),
    _case("peepholes, clipped", 1, peepholes=True, clip=0.6),
    _case("coupled", 1, input_forget=1),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, new_session, provider):
    check(case, new_session, provider)


def test_what_quantize_dynamic_makes(tmp_path, new_session, provider):
    """A model of two layers, quantized by onnxruntime's own tool."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    sizes = {"w": (2, 4 * HIDDEN, INPUT), "v": (2, 4 * HIDDEN, 2 * HIDDEN)}
    sizes |= dict.fromkeys(("r", "s"), (2, 4 * HIDDEN, HIDDEN)) | dict.fromkeys(("b", "c"), (2, 8 * HIDDEN))
    constants = {name: f32(*size) / 3 for name, size in sizes.items()} | {"shape": np.array([0, 0, 2 * HIDDEN])}
    lstm, turn = f'LSTM<hidden_size={HIDDEN}, direction="bidirectional">', "Transpose<perm=[0,2,1,3]>"
    text = f"""g (float[steps,batch,{INPUT}] x) => (float[steps,batch,{2 * HIDDEN}] y) {{
        one = {lstm}(x, w, r, b)  one_t = {turn}(one)  between = Reshape(one_t, shape)
        two = {lstm}(between, v, s, c)  two_t = {turn}(two)  y = Reshape(two_t, shape) }}"""
    plain, quantized = tmp_path / "plain.onnx", tmp_path / "quantized.onnx"
    onnx.save(parse(text, constants, 17), plain)
    quantize_dynamic(plain, quantized, weight_type=QuantType.QInt8)
    assert "DynamicQuantizeLSTM" in {node.op_type for node in onnx.load(quantized).graph.node}
    feeds = {"x": f32(9, 1, INPUT)}
    session = new_session(str(quantized), providers=PROVIDERS[provider])
    ran = {(node.op_type, node.provider) for node in session.placement().nodes}
    assert ("DynamicQuantizeLSTM" if provider == "wasm" else "LSTM", provider) in ran
    (wanted,) = run_native(unsigned_weights(onnx.load(quantized), feeds), feeds)
    np.testing.assert_allclose(session.run(None, feeds)[0], wanted, atol=2e-3)


def test_many_units_where_pairs_saturate():
    """On x86 without VNNI the excess over 16 bits is multiplied separately, with memory of its own for each step."""
    hidden = 1200
    weights = [
        np.round(RNG.normal(0, 36, (1, size, 4 * hidden)).clip(-127, 127)).astype(np.int8) for size in (4, hidden)
    ]
    part = [np.full(1, 0.002, np.float32), np.zeros(1, np.int8)]
    inputs = [f32(3, 1, 4), *weights, *[None] * 5, *part, *part]
    # Values are below 1: at most 1e-5 apart.
    case = Case("many units", "DynamicQuantizeLSTM", inputs, {"hidden_size": hidden}, tolerance=5e-6)
    without_vnni = ("--js-flags=--no-enable-avx-vnni --no-enable-avx-vnni-int8",)
    with sessions_in(BrowserOptions(flags=without_vnni)) as make:
        check(case, make, "wasm")
