"""Resize selects native onnxruntime's elements, also for places between two elements or at whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from graphs import parse
from native import native_session
from onnx import TensorProto, helper, numpy_helper

from py_ort.exceptions import PyOrtError

pytestmark = pytest.mark.browser
MOST = 64
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
CASES = [(each, by) for each in COORDINATES for by in ("sizes", "scales")]


def _model(coordinates: str, by: str) -> onnx.ModelProto:
    """x to [b, b] for every b, by sizes, or by fed scales."""
    roi = [0.1, -0.2, 0.8, 1.1] if coordinates == "tf_crop_and_resize" else []
    constants = {"roi": np.array(roi, np.float32), "none": np.array([], np.float32)}
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["h", "w"])]
    nodes, outputs = [], []
    for b in range(1, MOST + 1):
        if by == "sizes":
            constants[f"n{b}"] = np.array([b, b])
        else:
            inputs.append(helper.make_tensor_value_info(f"n{b}", TensorProto.FLOAT, [2]))
        for rounding in ROUNDINGS:
            outputs.append(f"{rounding}_{b}")
            names = ["x", "roi", *(["none"] if by == "sizes" else []), f"n{b}"]
            how = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "extrapolation_value": -1.0}
            nodes.append(helper.make_node("Resize", names, outputs[-1:], mode="nearest", **how))
    opset = 11 if coordinates == "tf_half_pixel_for_nn" else 19  # 13 no longer has the former
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(contents, name) for name, contents in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(("coordinates", "by"), CASES)
def test_places_are_native(new_session: Any, coordinates: str, by: str, provider: str) -> None:
    model = _model(coordinates, by).SerializeToString()
    session, native = new_session(model, providers=[provider]), native_session(model)
    for a in range(1, MOST // 2 + 1):
        sizes = a, MOST + 1 - a
        rows, columns = np.indices(sizes, np.float32)
        feeds = {"x": rows * 100 + columns}
        if by == "scales":
            feeds |= {f"n{b}": np.float32(b) / np.array(sizes, np.float32) for b in range(1, MOST + 1)}
        for name, found, wanted in zip(
            (o.name for o in native.get_outputs()), session.run(None, feeds), native.run(None, feeds), strict=True
        ):
            assert np.array_equal(found, wanted), f"{sizes} to {name}"


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_equal_sizes_are_a_copy_whatever_the_scales(new_session: Any, provider: str) -> None:
    x = np.arange(29, dtype=np.float32)
    text = 'g (float[29] x) => (float[n] y) { y = Resize<mode="nearest", nearest_mode="floor">(x, , s) }'
    model = parse(text, {"s": np.array([30 / 29], np.float32)}, 19)  # 29 times it is below 30 in float32
    (found,) = new_session(model.SerializeToString(), providers=[provider]).run(None, {"x": x})
    np.testing.assert_array_equal(found, x)


def test_tables_are_written_once(new_session: Any) -> None:
    attributes = 'mode="nearest", coordinate_transformation_mode="half_pixel_symmetric", nearest_mode="ceil"'
    text = f"g (float[11,11] x) => (float[n,m] y) {{ y = Resize<{attributes}>(x, , , s) }}"
    model = parse(text, {"s": np.array([29, 29])}, 19).SerializeToString()
    session, native = new_session(model, providers=["webgpu"]), native_session(model)
    counts = []
    for seed in range(3):
        feeds = {"x": np.random.default_rng(seed).standard_normal((11, 11)).astype(np.float32)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], native.run(None, feeds)[0])
        counts.append(session.stats()["last_run"]["counters"]["dispatches"])
    assert counts == [2, 1, 1]


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_a_roi_has_two_numbers_for_each_axis(new_session: Any, provider: str) -> None:
    attributes = 'mode="linear", coordinate_transformation_mode="tf_crop_and_resize"'
    model = parse(
        f"g (float[4,4] x, float[r] roi, float[2] s) => (float[n,m] y) {{ y = Resize<{attributes}>(x, roi, s) }}"
    )
    session = new_session(model.SerializeToString(), providers=[provider])
    feeds = {"x": np.ones((4, 4), np.float32), "s": np.full(2, 2, np.float32)}
    for count in (1, 3, 8):
        with pytest.raises(PyOrtError, match=rf"Roi \[{count}\] do not fit"):
            session.run(None, {**feeds, "roi": np.zeros(count, np.float32)})
    assert session.run(None, {**feeds, "roi": np.array([0, 0, 1, 1], np.float32)})[0].shape == (8, 8)


#: Rows and columns of the images, and of the results.
FROM = [(1, 1), (1, 3), (2, 7), (5, 11), (12, 4)]
TO = [(1, 1), (1, 6), (2, 5), (7, 13), (9, 14)]


def _interpolated(kind: int, rank: int, **how: Any) -> bytes:
    roi = [0.0] * (rank - 2) + [0.2, 0.1] + [1.0] * (rank - 2) + [0.9, 1.3]
    constants = {"roi": np.array(roi, np.float32)}
    constants |= {f"n{i}": np.array([1] * (rank - 2) + list(to)) for i, to in enumerate(TO)}
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "roi", "", f"n{i}"], [f"y{i}"], **how) for i in range(len(TO))],
        "g",
        [helper.make_tensor_value_info("x", kind, [1] * (rank - 2) + ["h", "w"])],
        [helper.make_tensor_value_info(f"y{i}", kind, None) for i in range(len(TO))],
        [numpy_helper.from_array(contents, name) for name, contents in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()


def _compared(session: Any, model: bytes, dtype: str, rank: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng, native, pairs = np.random.default_rng(5), native_session(model), []
    for sizes in FROM:
        x = rng.uniform(0 if dtype == "uint8" else -100, 100, (1,) * (rank - 2) + sizes).astype(dtype)
        pairs += zip(session.run(None, {"x": x}), native.run(None, {"x": x}), strict=True)
    return pairs


@pytest.mark.parametrize(("provider", "dtype"), [("webgpu", "float32"), *(("wasm", d) for d in ("uint8", "int32"))])
@pytest.mark.parametrize("coordinates", [each for each in COORDINATES if each != "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("rank", [3, 4])
def test_linear_interpolation(new_session: Any, coordinates: str, provider: str, dtype: str, rank: int) -> None:
    """Fractions of integers are truncated: the last bit of a sum matters."""
    how = {"mode": "linear", "coordinate_transformation_mode": coordinates, "extrapolation_value": 7.0}
    model = _interpolated(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), rank, **how)
    for found, wanted in _compared(new_session(model, providers=[provider]), model, dtype, rank):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 if dtype == "float32" else 0)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_filtered_integers_are_rounded(new_session: Any, mode: str, dtype: str) -> None:
    model = _interpolated(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), 4, mode=mode, antialias=1)
    pairs = _compared(new_session(model, providers=["wasm"]), model, dtype, 4)
    off = np.concatenate([(found.astype(int) - wanted).reshape(-1) for found, wanted in pairs])
    # onnxruntime's weights are fixed-point numbers.
    assert np.abs(off).max() <= 1 and np.mean(off != 0) < 0.01


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_nothing_is_not_made_larger(new_session: Any, provider: str) -> None:
    text = 'g (float[h,w] x) => (float[n,m] y) { y = Resize<mode="nearest">(x, , , s) }'
    model = parse(text, {"s": np.array([3, 3])}, 19).SerializeToString()
    session = new_session(model, providers=[provider])
    for dims in ((0, 3), (3, 0)):
        with pytest.raises(PyOrtError, match="Resize"):
            session.run(None, {"x": np.zeros(dims, np.float32)})
        with pytest.raises(Exception, match="zero"):
            native_session(model).run(None, {"x": np.zeros(dims, np.float32)})
