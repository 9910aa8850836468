"""Resize takes the elements that native onnxruntime takes, also where places lie between two or are whole numbers."""

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
    """x to [b, b] for every b, by sizes, or by scales that are fed."""
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
    opset = 11 if coordinates == "tf_half_pixel_for_nn" else 19  # 13 has no longer the former
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
        with pytest.raises(PyOrtError, match=f"{count} numbers.* expected two for each"):
            session.run(None, {**feeds, "roi": np.zeros(count, np.float32)})
    assert session.run(None, {**feeds, "roi": np.array([0, 0, 1, 1], np.float32)})[0].shape == (8, 8)
