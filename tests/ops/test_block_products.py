"""MatMulNBits on wasm, equal to exact arithmetic on both instruction sets, and to native onnxruntime's rounding.

Numbers are drawn so that float32 holds all sums: an error of one bit is visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from case import MICROSOFT
from native import native_session
from onnx import TensorProto, helper, numpy_helper
from test_wasm_kernels import ASSETS, _has_relaxed

_COUNT = 108
_ROWS = (1, 2, 3, 4, 5, 6, 9, 13)


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Integers along the last axis, the lowest bits of a byte first."""
    bit = values.astype(np.uint8)[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(bit.reshape(*values.shape[:-1], -1), axis=-1, bitorder="little")


def _drawn(rng: np.random.Generator, least: int, most: int, *shape: int) -> np.ndarray:
    """Random integers, or only the extremes."""
    if rng.random() < 0.4:
        return rng.choice([least, most], shape)
    return rng.integers(least, most + 1, shape)


def _model(k: int, n: int, bits: int, block: int, level: int, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    names = ["a", "b", "scales", "zeros", "", "bias"]
    given = [name if name in ("a", *weights) else "" for name in names]
    while not given[-1]:
        given.pop()
    sizes: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", given, ["y"], domain=MICROSOFT, **sizes)
    a, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, size]) for name, size in (("a", k), ("y", n)))
    graph = helper.make_graph([node], "case", [a], [y], [numpy_helper.from_array(x, i) for i, x in weights.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _exact_case(seed: int) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """A model, its A and its result.

    Each block of A has its largest magnitude at 127 times a power of two, so that rounding it to 8 bits changes
    nothing, and levels 0 and 4 have one result.
    """
    rng = np.random.default_rng(seed)
    bits = (2, 4, 8)[seed % 3]
    block = (16, 32, 64, 128, 256)[seed // 3 % 5]
    rows, n = int(rng.choice(_ROWS)), int(rng.integers(1, 40))
    k = int(rng.integers(1, 512 if bits == 8 else 1200))
    blocks = -(-k // block)
    spread = 0 if bits == 8 else 1  # sums are below 2**24 times the smallest power of two
    a = np.zeros((rows, blocks * block))
    a[:, :k] = _drawn(rng, -127, 127, rows, k)
    a.reshape(rows, blocks, block)[:, :, 0] = rng.choice([-127, 127], (rows, blocks))
    a = (a.reshape(rows, blocks, block) * 2.0 ** rng.integers(0, spread + 1, (rows, blocks, 1))).reshape(rows, -1)
    most = (1 << bits) - 1
    numbers = _drawn(rng, 0, most, n, blocks * block)
    scales = 2.0 ** rng.integers(-spread, 1, (n, blocks))
    weights = {"b": _packed(numbers, bits).reshape(n, blocks, -1), "scales": scales.astype(np.float32).reshape(-1)}
    kind = seed // 15 % 3
    zeros = np.full((n, blocks), 1 << (bits - 1), float)
    if kind == 1:
        zeros = _drawn(rng, 0, most, n, blocks).astype(float)
        padded = np.zeros((n, -(-blocks * bits // 8) * 8 // bits), int)
        padded[:, :blocks] = zeros
        weights["zeros"] = _packed(padded, bits).reshape(-1)
    elif kind == 2:
        zeros = rng.integers(0, most + 1, (n, blocks)).astype(float)
        weights["zeros"] = zeros.astype(np.float32).reshape(-1)
    if rng.random() < 0.5:
        weights["bias"] = rng.integers(-9, 9, n).astype(np.float32)
    values = (numbers.reshape(n, blocks, block) - zeros[:, :, None]) * scales[:, :, None]
    wanted = a[:, :k] @ values.reshape(n, -1)[:, :k].T + weights.get("bias", 0)
    model = _model(k, n, bits, block, 4 * int(rng.integers(0, 2)), weights)
    return model, a[:, :k].astype(np.float32), wanted


def _random_case(seed: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """Like real models, rounded to 8 bits."""
    rng = np.random.default_rng(seed)
    bits, block = int(rng.choice([2, 4, 8])), int(rng.choice([32, 64, 128]))
    rows, n, k = int(rng.choice(_ROWS)), int(rng.integers(1, 40)), int(rng.integers(1, 700))
    blocks = -(-k // block)
    weights = {
        "b": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
        "scales": rng.uniform(0.01, 0.1, n * blocks).astype(np.float32),
    }
    if seed % 2:
        weights["zeros"] = rng.integers(0, 256, n * -(-blocks * bits // 8)).astype(np.uint8)
    return _model(k, n, bits, block, 4, weights), rng.standard_normal((rows, k), np.float32)


def _in_node(monkeypatch, simd: str, cases: list[tuple[onnx.ModelProto, np.ndarray]]) -> list[np.ndarray]:
    if simd == "relaxed" and not _has_relaxed():
        pytest.skip("built without relaxed SIMD: clang and lld 19 are needed for that")
    monkeypatch.setenv("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    found = []
    for seed, result in enumerate(run_many([(model, {"a": a}) for model, a in cases], simd=simd)):
        assert not isinstance(result, Exception), (seed, result)
        found.append(result.outputs[0])
    return found


@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
def test_they_are_exact(monkeypatch, simd: str):
    cases = [_exact_case(seed) for seed in range(_COUNT)]
    found = _in_node(monkeypatch, simd, [(model, a) for model, a, _ in cases])
    for seed, (y, (_, _, wanted)) in enumerate(zip(found, cases, strict=True)):
        np.testing.assert_array_equal(y, wanted, err_msg=str(seed))


@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
def test_rows_are_rounded_as_native_rounds_them(monkeypatch, simd: str):
    cases = [_random_case(seed) for seed in range(48)]
    for seed, (y, (model, a)) in enumerate(zip(_in_node(monkeypatch, simd, cases), cases, strict=True)):
        (native,) = native_session(model).run(None, {"a": a})
        np.testing.assert_allclose(y, native, atol=1e-5 * float(np.abs(native).max()), err_msg=str(seed))


@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
def test_rows_too_small_to_be_rounded_are_zeros(monkeypatch, simd: str):
    """The inverse step of such a row, or block, is not a float32; natively, too, on CPUs with AVX-512."""
    model, a = _random_case(4)
    a[:, 32:] = 0
    for size in (3e-37, 1e-38, 1e-42):
        tiny = (a / np.abs(a).max() * size).astype(np.float32)
        (y,) = _in_node(monkeypatch, simd, [(model, tiny)])
        np.testing.assert_array_equal(y, 0)


@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
def test_infinities_stay_infinite(monkeypatch, simd: str):
    """A single row is multiplied by unshifted weights first, for which infinities would yield NaN."""
    rng = np.random.default_rng(7)
    for bits in (2, 4, 8):
        weights = {
            "b": rng.integers(0, 256, (9, 2, 4 * bits)).astype(np.uint8),
            "scales": rng.uniform(0.01, 0.1, 18).astype(np.float32),
        }
        model = _model(64, 9, bits, 32, 0, weights)
        for value in (np.inf, -np.inf, np.nan):
            a = rng.standard_normal((1, 64), np.float32)
            a[0, 40] = value
            (native,) = native_session(model).run(None, {"a": a})
            (y,) = _in_node(monkeypatch, simd, [(model, a)])
            np.testing.assert_array_equal(y, native, err_msg=f"{bits} bits, {value}")


@pytest.mark.parametrize("simd", ["fixed", "auto"])
def test_they_are_exact_in_the_browser(new_session, simd: str):
    """All cases in one model, on two threads; its feeds have separate names."""
    nodes, infos, weights, outputs, feeds, wanted = [], [], [], [], {}, {}
    for seed in range(_COUNT):
        model, a, expected = _exact_case(seed)
        graph = onnx.compose.add_prefix(model, f"c{seed}_").graph
        nodes += graph.node
        infos += graph.input
        weights += graph.initializer
        outputs += graph.output
        feeds[f"c{seed}_a"] = a
        wanted[f"c{seed}_y"] = expected
    graph = helper.make_graph(nodes, "cases", infos, outputs, weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    joined = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = new_session(joined.SerializeToString(), providers=[("wasm", {"simd": simd})])
    for name, found in zip(wanted, session.run(list(wanted), feeds), strict=True):
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)
