"""Products and convolutions of 8-bit integers, equal to exact integer arithmetic on every instruction set.

The machine determines the instruction that multiplies bytes: Node and Chromium may differ, so both are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from test_wasm_kernels import ASSETS, _has_relaxed

from py_ort import SessionOptions

_COUNT = 48


def _integers(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    """Random ones, those of a model's weights, or only the extremes, for which a pair of products would saturate."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(np.array([least, most], dtype), shape)
    if kind < 0.7:
        near = rng.normal((least + most) / 2, rng.uniform(10, 60), shape)
        return np.rint(np.clip(near, least, most)).astype(dtype)
    return rng.integers(least, most + 1, shape).astype(dtype)


def _product(rng: np.random.Generator, a_dtype: str, b_dtype: str) -> tuple[onnx.NodeProto, dict[str, Any], np.ndarray]:
    most = (14, 70, 30) if rng.random() < 0.7 else (120, 400, 90)  # several blocks of tiles, worth several threads
    m, k, n = (int(rng.integers(1, size)) for size in most)
    a, b = _integers(rng, a_dtype, m, k), _integers(rng, b_dtype, k, n)
    a_zero = _integers(rng, a_dtype, *([m] if rng.random() < 0.2 else []))
    b_zero = _integers(rng, b_dtype, *([n] if rng.random() < 0.5 else [])) * np.array(rng.random() < 0.7, b_dtype)
    rows = a_zero.astype(np.int64).reshape(-1, 1)
    wanted = (a.astype(np.int64) - rows) @ (b.astype(np.int64) - b_zero.astype(np.int64))
    node = helper.make_node("MatMulInteger", ["a", "b", "c", "d"], ["y"])
    return node, {"a": a, "b": b, "c": a_zero, "d": b_zero}, wanted


def _convolution(
    rng: np.random.Generator, x_dtype: str, w_dtype: str
) -> tuple[onnx.NodeProto, dict[str, Any], np.ndarray]:
    group = int(rng.choice([1, 1, 2, 5]))
    channels, out = (group * int(rng.integers(1, most)) for most in (20, 12))
    if rng.random() < 0.3:
        group = channels = out = int(rng.integers(1, 40))  # depthwise
    kh, kw, stride, dilation = (int(rng.integers(1, most)) for most in (4, 4, 3, 3))
    pads = [int(pad) for pad in rng.integers(0, 2, 4)]
    x = _integers(rng, x_dtype, 2, channels, 9, 8)
    w = _integers(rng, w_dtype, out, channels // group, kh, kw)
    x_zero, w_zero = _integers(rng, x_dtype), _integers(rng, w_dtype)
    node = helper.make_node(
        *("ConvInteger", ["a", "b", "c", "d"], ["y"]),
        **{
            "group": group,
            "strides": [stride] * 2,
            "dilations": [dilation] * 2,
            "pads": pads,
            "kernel_shape": [kh, kw],
        },
    )
    padded = np.pad(x.astype(np.int64) - int(x_zero), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    view = np.lib.stride_tricks.sliding_window_view(
        padded, ((kh - 1) * dilation + 1, (kw - 1) * dilation + 1), axis=(2, 3)
    )[:, :, ::stride, ::stride, ::dilation, ::dilation]
    taps = (w.astype(np.int64) - int(w_zero)).reshape(group, out // group, channels // group, kh, kw)
    split = view.reshape(2, group, channels // group, *view.shape[2:])
    wanted = np.einsum("bgchwij,gocij->bgohw", split, taps).reshape(2, out, *view.shape[2:4])
    return node, {"a": x, "b": w, "c": x_zero, "d": w_zero}, wanted


def _cases(make: Callable[..., Any]) -> list[tuple[onnx.ModelProto, dict[str, Any], np.ndarray]]:
    made = []
    for seed, (a_dtype, b_dtype) in zip(range(_COUNT), [*product(("uint8", "int8"), repeat=2)] * _COUNT, strict=False):
        rng = np.random.default_rng(seed)
        node, arrays, wanted = make(rng, a_dtype, b_dtype)
        fixed = {name: x for name, x in arrays.items() if name != "a"} if seed % 3 else {}
        feeds = {name: x for name, x in arrays.items() if name not in fixed}
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in feeds.items()
        ]
        y = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
        initializers = [numpy_helper.from_array(x, name) for name, x in fixed.items()]
        graph = helper.make_graph([node], "case", infos, [y], initializers)
        opsets = [helper.make_opsetid("", 21)]
        made.append((helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, wanted))
    return made


_MAKERS = {"products": _product, "convolutions": _convolution}


@pytest.mark.parametrize("kind", _MAKERS)
@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
def test_in_node(monkeypatch, kind: str, simd: str):
    if simd == "relaxed" and not _has_relaxed():
        pytest.skip("built without relaxed SIMD: clang and lld 19 are needed for that")
    monkeypatch.setenv("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    cases = _cases(_MAKERS[kind])
    for seed, (result, (_, _, wanted)) in enumerate(
        zip(run_many([(model, feeds) for model, feeds, _ in cases], simd=simd), cases, strict=True)
    ):
        assert not isinstance(result, Exception), (seed, result)
        np.testing.assert_array_equal(result.outputs[0], wanted, err_msg=str(seed))


@pytest.mark.parametrize("kind", _MAKERS)
@pytest.mark.parametrize(("simd", "threads"), [("fixed", 1), ("auto", 1), ("auto", 2)])
def test_in_the_browser(new_session, kind: str, simd: str, threads: int):
    """All cases in one model: its feeds have separate names."""
    nodes, infos, weights, outputs, feeds, wanted = [], [], [], [], {}, {}
    for seed, (model, given, expected) in enumerate(_cases(_MAKERS[kind])):
        graph = onnx.compose.add_prefix(model, f"c{seed}_").graph
        nodes += graph.node
        infos += graph.input
        weights += graph.initializer
        outputs += graph.output
        feeds.update({f"c{seed}_{name}": x for name, x in given.items()})
        wanted[f"c{seed}_y"] = expected
    graph = helper.make_graph(nodes, "cases", infos, outputs, weights)
    joined = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = SessionOptions()
    options.intra_op_num_threads = threads
    session = new_session(joined.SerializeToString(), options, providers=[("wasm", {"simd": simd})])
    for name, found in zip(wanted, session.run(list(wanted), feeds), strict=True):
        np.testing.assert_array_equal(found, wanted[name], err_msg=name)
