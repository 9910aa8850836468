"""Which element Resize takes as the nearest one, where sizes put places on borders between elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import onnx
import pytest
from graphs import parse
from native import native_session
from onnx import TensorProto, helper

from py_ort import InferenceSession

pytestmark = pytest.mark.browser
COORDINATES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
# Sizes before and after: ties that float32 puts beside the border, nearer than 1e-6 and farther, and whole numbers.
PAIRS = [
    *((7, 2), (49, 7), (26, 40)),
    *((7, 16), (14, 19), (18, 21)),
    *((20, 26), (36, 21), (30, 9)),
    *((26, 28), (38, 12), (29, 36)),
    *((5, 39), (23, 14), (14, 31)),
    *((13, 13), (22, 47), (3, 19)),
]


def _names() -> Iterator[tuple[str, str, str, int]]:
    """Coordinates, rounding, "sizes" or "scales", and the first of three pairs."""
    return product(COORDINATES, ROUNDINGS, ("sizes", "scales"), range(0, len(PAIRS), 3))  # type: ignore[return-value]


def _model() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Tensors whose elements are their indices, of three axes, to save nodes."""
    feeds, constants, nodes, outputs = {}, [], [], []
    for at in range(0, len(PAIRS), 3):
        before, after = zip(*PAIRS[at : at + 3], strict=True)
        feeds[f"x{at}"] = np.arange(np.prod(before), dtype=np.float32).reshape(before)
        scales = [b / a for a, b in PAIRS[at : at + 3]]
        constants.append(helper.make_tensor(f"sizes{at}", TensorProto.INT64, [3], after))
        constants.append(helper.make_tensor(f"scales{at}", TensorProto.FLOAT, [3], scales))
    for i, (coordinates, rounding, by, at) in enumerate(_names()):
        inputs = [f"x{at}", "", *([""] if by == "sizes" else []), f"{by}{at}"]
        how = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        nodes.append(helper.make_node("Resize", inputs, [f"y{i}"], mode="nearest", **how))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, ["a", "b", "c"]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in feeds.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), feeds


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_places_are_native(new_session: Callable[..., InferenceSession], provider: str) -> None:
    model, feeds = _model()
    found = new_session(model.SerializeToString(), providers=[provider]).run(None, feeds)
    wanted = native_session(model).run(None, feeds)
    wrong = [name for name, a, b in zip(_names(), found, wanted, strict=True) if not np.array_equal(a, b)]
    # Of half_pixel_symmetric, places next to whole numbers need float64.
    assert [w for w in wrong if provider == "wasm" or w[0] != COORDINATES[-1] or w[1] not in ("floor", "ceil")] == []


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_equal_sizes_are_a_copy_whatever_the_scales(
    new_session: Callable[..., InferenceSession], provider: str
) -> None:
    x = np.arange(29, dtype=np.float32)
    text = 'g (float[29] x) => (float[n] y) { y = Resize<mode="nearest", nearest_mode="floor">(x, , s) }'
    model = parse(text, {"s": np.array([30 / 29], np.float32)}, 19)  # 29 times it is below 30 in float32
    (found,) = new_session(model.SerializeToString(), providers=[provider]).run(None, {"x": x})
    np.testing.assert_array_equal(found, x)
