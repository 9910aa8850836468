"""Resize selects native onnxruntime's elements, also for places between two elements or at whole numbers."""

from typing import Any

import numpy as np
import onnx
import pytest
from array_models import assert_as_native, model_of, random_floats
from native import native_session
from onnx import helper
from text_form import parse

from py_ort.exceptions import PyOrtError

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
    feeds = {"x": np.ones((1, 1), np.float32)}
    nodes, outputs = [], []
    for b in range(1, MOST + 1):
        if by == "sizes":
            constants[f"n{b}"] = np.array([b, b])
        else:
            feeds[f"n{b}"] = np.ones(2, np.float32)
        for rounding in ROUNDINGS:
            outputs.append(f"{rounding}_{b}")
            names = ["x", "roi", *(["none"] if by == "sizes" else []), f"n{b}"]
            how = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding, "extrapolation_value": -1.0}
            nodes.append(helper.make_node("Resize", names, outputs[-1:], mode="nearest", **how))
    opset = 11 if coordinates == "tf_half_pixel_for_nn" else 19  # 13 no longer has the former
    return model_of(nodes, feeds, outputs, constants, opset=opset, sizes={"x": ["h", "w"]})


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(("coordinates", "by"), CASES)
def test_places_are_native(new_session, coordinates, by, provider):
    model = _model(coordinates, by)
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


def test_equal_sizes_are_a_copy_whatever_the_scales(new_session, provider):
    x = np.arange(29, dtype=np.float32)
    text = 'g (float[29] x) => (float[n] y) { y = Resize<mode="nearest", nearest_mode="floor">(x, , s) }'
    model = parse(text, {"s": np.array([30 / 29], np.float32)}, 19)  # 29 times it is below 30 in float32
    (found,) = new_session(model, providers=[provider]).run(None, {"x": x})
    np.testing.assert_array_equal(found, x)


def test_tables_are_written_once(new_session):
    attributes = 'mode="nearest", coordinate_transformation_mode="half_pixel_symmetric", nearest_mode="ceil"'
    text = f"g (float[11,11] x) => (float[n,m] y) {{ y = Resize<{attributes}>(x, , , s) }}"
    model = parse(text, {"s": np.array([29, 29])}, 19)
    session, counts = new_session(model, providers=["webgpu"]), []
    for seed in range(3):
        assert_as_native(session, model, random_floats(seed, x=(11, 11)), rtol=0, atol=0)
        counts.append(session.stats()["last_run"]["counters"]["dispatches"])
    assert counts == [2, 1, 1]


def test_a_roi_has_two_numbers_for_each_axis(new_session, provider):
    attributes = 'mode="linear", coordinate_transformation_mode="tf_crop_and_resize"'
    model = parse(
        f"g (float[4,4] x, float[r] roi, float[2] s) => (float[n,m] y) {{ y = Resize<{attributes}>(x, roi, s) }}"
    )
    session = new_session(model, providers=[provider])
    feeds = {"x": np.ones((4, 4), np.float32), "s": np.full(2, 2, np.float32)}
    for count in (1, 3, 8):
        with pytest.raises(PyOrtError, match=rf"Roi \[{count}\] do not fit"):
            session.run(None, {**feeds, "roi": np.zeros(count, np.float32)})
    assert session.run(None, {**feeds, "roi": np.array([0, 0, 1, 1], np.float32)})[0].shape == (8, 8)


#: Rows and columns of the images, and of the results.
FROM = [(1, 1), (1, 3), (2, 7), (5, 11), (12, 4)]
TO = [(1, 1), (1, 6), (2, 5), (7, 13), (9, 14)]


def _compared(new_session: Any, provider: str, dtype: str, rank: int, **how: Any) -> list[tuple[Any, Any]]:
    """Return the results of both for each image."""
    lead = [1] * (rank - 2)
    constants = {"roi": np.array([0.0] * (rank - 2) + [0.2, 0.1, *lead, 0.9, 1.3], np.float32)}
    constants |= {f"n{i}": np.array([*lead, *to]) for i, to in enumerate(TO)}
    nodes = [helper.make_node("Resize", ["x", "roi", "", f"n{i}"], [f"y{i}"], **how) for i in range(len(TO))]
    outputs, feeds = [node.output[0] for node in nodes], {"x": np.ones([1] * rank, dtype)}
    model = model_of(nodes, feeds, outputs, constants, opset=19, sizes={"x": [*lead, "h", "w"]})
    session, native = new_session(model, providers=[provider]), native_session(model)
    rng, pairs = np.random.default_rng(5), []
    for sizes in FROM:
        x = rng.uniform(0 if dtype == "uint8" else -100, 100, (1,) * (rank - 2) + sizes).astype(dtype)
        pairs += zip(session.run(None, {"x": x}), native.run(None, {"x": x}), strict=True)
    return pairs


@pytest.mark.parametrize(("provider", "dtype"), [("webgpu", "float32"), *(("wasm", d) for d in ("uint8", "int32"))])
@pytest.mark.parametrize("coordinates", [each for each in COORDINATES if each != "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("rank", [3, 4])
def test_linear_interpolation(new_session, coordinates, provider, dtype, rank):
    """Fractions of integers are truncated: the last bit of a sum matters."""
    how = {"mode": "linear", "coordinate_transformation_mode": coordinates, "extrapolation_value": 7.0}
    for found, wanted in _compared(new_session, provider, dtype, rank, **how):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-3 if dtype == "float32" else 0)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_filtered_integers_are_rounded(new_session, mode, dtype):
    pairs = _compared(new_session, "wasm", dtype, 4, mode=mode, antialias=1)
    off = np.concatenate([(found.astype(int) - wanted).reshape(-1) for found, wanted in pairs])
    # onnxruntime's weights are fixed-point numbers.
    assert np.abs(off).max() <= 1 and np.mean(off != 0) < 0.01


def test_nothing_is_not_made_larger(new_session, provider):
    text = 'g (float[h,w] x) => (float[n,m] y) { y = Resize<mode="nearest">(x, , , s) }'
    model = parse(text, {"s": np.array([3, 3])}, 19)
    session = new_session(model, providers=[provider])
    for dims in ((0, 3), (3, 0)):
        with pytest.raises(PyOrtError, match="Resize"):
            session.run(None, {"x": np.zeros(dims, np.float32)})
        with pytest.raises(Exception, match="zero"):
            native_session(model).run(None, {"x": np.zeros(dims, np.float32)})
