"""Weights that a graph reshapes in each run: values that kernels derive from a constant depend on its shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session
from onnx import helper, numpy_helper

from py_ort import InferenceSession

pytestmark = pytest.mark.browser
MATRICES = [(12, 24), (24, 12), (12, 24), (8, 36)]
FILTERS = [(4, 8, 3, 3), (8, 4, 3, 3), (4, 8, 3, 3), (72, 4, 1, 1)]


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Conv", "MatMulInteger", "ConvInteger"])
def test_each_shape_has_its_own(op: str, provider: str, new_session: Callable[..., InferenceSession]) -> None:
    dtype: Any = np.uint8 if op.endswith("Integer") else np.float32
    shapes = FILTERS if op.startswith("Conv") else MATRICES
    rank = len(shapes[0])
    rng = np.random.default_rng(0)
    w = rng.integers(0, 9, shapes[0]).astype(dtype)
    of = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["w", "shape"], ["reshaped"]), helper.make_node(op, ["x", "reshaped"], ["y"])],
        "reshaped",
        [
            helper.make_tensor_value_info("x", of, [None] * rank),
            helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [rank]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32 if dtype is np.uint8 else of, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    native = native_session(model)
    session = new_session(model.SerializeToString(), providers=[provider])
    for shape in shapes:
        x = rng.integers(0, 9, (1, shape[1], 6, 6) if rank == 4 else (5, shape[0])).astype(dtype)
        feeds = {"x": x, "shape": np.array(shape)}
        (wanted,) = native.run(None, feeds)
        (found,) = session.run(None, feeds)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=str(shape))
