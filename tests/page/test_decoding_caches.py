"""GroupQueryAttention with quantized or sliding caches, compared with onnxruntime, on both providers."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from array_models import model_of
from onnx import helper
from session_settings import settings
from standard_form import run_native

from py_ort.exceptions import NotImplemented, RuntimeException

RNG = np.random.default_rng(5)
HEADS, KV_HEADS, SIZE = 4, 2, 16
ANGLES = np.arange(40, dtype=np.float32)[:, None] / np.array([1, 3, 10, 30, 100, 300, 1000, 3000], np.float32)
CACHES = np.cos(ANGLES), np.sin(ANGLES)
INPUTS = (
    *("query", "key", "value", "past_key", "past_value", "seqlens_k", "total", "cos", "sin", "positions", "bias"),
    *("sink", "k_scale", "v_scale", "q_norm", "k_norm"),
)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass
class Step:
    """New rows after `before` rows of each batch, in caches of `capacity` rows, of which `filled` are valid."""

    name: str
    rows: int
    before: tuple[int, ...]
    capacity: int
    attributes: dict[str, Any]
    given: dict[str, np.ndarray] = field(default_factory=dict)
    filled: Callable[[int], int] = lambda end: end
    packed: bool = False
    dtype: str = "float32"

    def __str__(self) -> str:
        return self.name

    def feeds(self) -> dict[str, np.ndarray]:
        rng, batch = np.random.default_rng(zlib.crc32(self.name.encode())), len(self.before)
        widths = [HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE]
        widths = [sum(widths)] if self.packed else widths
        found = {
            name: rng.standard_normal((batch, self.rows, width)).astype(self.dtype)
            for name, width in zip(INPUTS, widths, strict=False)
        }
        found |= {name: self._past(rng) for name in ("past_key", "past_value")}
        found["seqlens_k"] = np.array([n + self.rows - 1 for n in self.before], np.int32)
        found["total"] = np.array(max(self.before) + self.rows, np.int32)
        return found | self.given

    def _past(self, rng: np.random.Generator) -> np.ndarray:
        bits, shape = self.attributes.get("kv_cache_bit_width", 0), [len(self.before), KV_HEADS, self.capacity, SIZE]
        if bits == 0:
            return rng.standard_normal(shape).astype(self.dtype)
        if bits == 8:
            return rng.integers(-128, 128, shape).astype(np.int8)
        return rng.integers(0, 256, [*shape[:3], SIZE // 2]).astype(np.uint8)

    def model(self, feeds: dict[str, np.ndarray]) -> bytes:
        names = [name if name in feeds else "" for name in INPUTS]
        outputs = ["y", "present_key", "present_value"]
        heads = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, **self.attributes}
        node = helper.make_node("GroupQueryAttention", names, outputs, domain="com.microsoft", **heads)
        return model_of([node], feeds, outputs).SerializeToString()


def quantized(bits: int, mode: str, **more: Any) -> dict[str, Any]:
    return {"k_quant_type": mode, "v_quant_type": mode, "kv_cache_bit_width": bits, **more}


def scales(bits: int, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    step = 0.03 if bits == 8 else 0.4
    return {name: (RNG.uniform(0.5, 1.5, shape) * step).astype(np.float32) for name in ("k_scale", "v_scale")}


ROTATED = dict(zip(("cos", "sin"), CACHES, strict=True))
ONE, EACH = ("PER_TENSOR", (1,)), ("PER_CHANNEL", (1, KV_HEADS, 1, SIZE))
QUANTIZED = [
    *(
        Step(f"{bits} bits, {mode}, {where}", rows, before, capacity, quantized(bits, mode), scales(bits, shape))
        for bits in (8, 4)
        for mode, shape in (ONE, EACH)
        for rows, before, capacity in ((1, (6,), 6), (1, (6, 3), 20), (3, (6,), 20), (5, (0, 0), 0), (5, (0,), 20))
        for where in [f"{rows} rows behind {before} of {capacity}"]
    ),
    Step("rotated", 2, (6,), 20, quantized(8, "PER_TENSOR", do_rotary=1), scales(8, (1,)) | ROTATED, packed=True),
    Step(
        "everything else",
        3,
        (6,),
        9,
        quantized(4, "PER_CHANNEL", do_rotary=1, rotary_interleaved=1, local_window_size=4, softcap=2.0, scale=0.3),
        scales(4, (KV_HEADS * SIZE,))
        | ROTATED
        | {"bias": f32(1, HEADS, 3, 9), "sink": f32(HEADS), "positions": np.array([[3, 9, 11]])},
    ),
    Step("half precision", 1, (6,), 12, quantized(8, "PER_TENSOR"), scales(8, (1,)), dtype="float16"),
]


def _left(capacity: int, window: int) -> Callable[[int], int]:
    """The number of rows in a sliding cache after this number."""
    step = capacity - window + 1
    return lambda end: end if end <= capacity else end - step * -(-(end - capacity) // step)


def _slides(rows: int, before: tuple[int, ...], capacity: int, window: int, name: str = "", **given: Any) -> Step:
    attributes = {"sliding_window_cache": 1, "local_window_size": window, **given.pop("attributes", {})}
    name = f"{rows} rows behind {before} of {capacity}, window {window} {name}".strip()
    return Step(name, rows, before, capacity, attributes, filled=_left(capacity, window), **given)


SLIDING = [
    *(
        _slides(rows, (before,), capacity, window)
        for rows in (1, 3, 8)
        for before in (0, 3, 5, 11)
        for capacity, window in ((4, 4), (7, 4))
    ),
    _slides(1, (3, 9), 6, 4),
    _slides(2, (9,), 6, 4, "rotated", given=ROTATED, attributes={"do_rotary": 1}, packed=True),
    _slides(2, (9,), 6, 4, "positions", given=ROTATED | {"positions": np.array([[7, 3]])}, attributes={"do_rotary": 1}),
    _slides(2, (9,), 6, 4, "bias", given={"bias": f32(1, HEADS, 2, 11), "sink": f32(HEADS)}),
    _slides(1, (9, 2), 6, 4, "bias of all", given={"bias": f32(1, 1, 1, 10)}),
    _slides(
        2, (9,), 6, 4, "quantized", given=scales(8, (1,)) | ROTATED, attributes=quantized(8, *ONE[:1], do_rotary=1)
    ),
]


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("step", [*QUANTIZED, *SLIDING], ids=str)
def test_equals_native(step, provider, new_session):
    """Valid rows are equal, quantized ones to the last bit."""
    feeds = step.feeds()
    model = step.model(feeds)
    alone = {"session.disable_cpu_ep_fallback": "1"} if provider == "webgpu" else {}
    session = new_session(model, settings(entries=alone), providers=[provider, "wasm"])
    y, *caches = session.run(None, feeds)
    wanted, *wanted_caches = run_native(model, feeds)
    near = 2e-5 if step.dtype == "float32" else 4e-3
    for b, length in enumerate(feeds["seqlens_k"] + 1):
        rows = min(step.rows, length) if not any(step.before) else step.rows
        np.testing.assert_allclose(y[b, :rows], wanted[b, :rows], rtol=near, atol=near)
        count = step.filled(int(length))
        for found, expected in zip(caches, wanted_caches, strict=True):
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            exact = 0 if found.dtype.kind in "iu" else near
            np.testing.assert_allclose(found[b, :, :count], expected[b, :, :count], rtol=exact, atol=exact)


@pytest.mark.parametrize(
    "attributes",
    [
        quantized(8, "PER_TENSOR", v_quant_type="PER_CHANNEL"),
        quantized(0, "PER_TENSOR"),
        {"sliding_window_cache": 1, "local_window_size": 4, "qk_output": 1},
    ],
    ids=["modes that differ", "without bits", "scores"],
)
def test_what_native_refuses(attributes, provider, new_session):
    """It is refused when the session is made."""
    step = Step("refused", 1, (6,), 6, {**attributes, "kv_cache_bit_width": 8}, scales(8, (1,)))
    feeds = step.feeds()
    step.attributes = attributes
    with pytest.raises(NotImplemented, match="GroupQueryAttention"):
        new_session(step.model(feeds), providers=[provider, "wasm"])


@pytest.mark.parametrize("positions", [False, True], ids=["", "positions"])
def test_more_rows_than_the_rotary_caches_have(provider, positions, new_session):
    given = {name: cache[:6] for name, cache in ROTATED.items()}
    if positions:
        given["positions"] = np.zeros((1, 1), np.int64)
    step = Step("beyond", 1, (6,), 9, {"do_rotary": 1}, given)
    feeds = step.feeds()
    session = new_session(step.model(feeds), providers=[provider])
    with pytest.raises(RuntimeException, match="total_sequence_length"):
        session.run(None, feeds)
    with pytest.raises(Exception, match="total_sequence_length"):
        run_native(step.model(feeds), feeds)
