"""Casts of floats to integers, on the core, compared with native onnxruntime: to 4 and 2 bits they are rounded."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import CompileOptions, compile_model

SOURCES = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
SMALL = ("INT4", "UINT4", "INT2", "UINT2")
NUMBERS = [0.4, 0.5, 0.6, 1.5, 2.5, -0.5, -0.6, -1.5, -2.5, 7.4, 7.5, 8.4, 15.6, 16.2, -8.4, -8.6, -9, 100.3, -100.3]
#: Numbers that no integer of 32 bits holds.
BEYOND = [np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 2147483520, -2147483648.0, 1.5]
WIDE = ("INT32", "INT16", "UINT16", "INT8", "UINT8")


@pytest.mark.parametrize("level", ["disabled", "all"])
@pytest.mark.parametrize(("numbers", "targets"), [(NUMBERS, SMALL), (BEYOND, WIDE)], ids=["small", "beyond 32 bits"])
def test_as_native(level: str, numbers: list[float], targets: tuple[str, ...]) -> None:
    models, plans = [], []
    for (dtype, source), small in ((s, t) for s in SOURCES.items() for t in targets):
        with np.errstate(over="ignore"):
            x = np.array(numbers).astype(dtype)
        nodes = [
            helper.make_node("Cast", ["x"], ["small"], to=getattr(TensorProto, small)),
            helper.make_node("Cast", ["small"], ["y"], to=TensorProto.INT32),
        ]
        inputs = [helper.make_tensor_value_info("x", source, ["n"])]
        graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.INT32, ["n"])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
        options = CompileOptions(graph_optimization_level=level)
        models.append((f"{dtype} to {small}", model, x))
        plans.append((compile_model(model.SerializeToString(), providers=["wasm"], options=options), {"x": x}))
    for (name, model, x), found in zip(models, run_plans(plans), strict=True):
        assert not isinstance(found, Exception), name
        np.testing.assert_array_equal(found[0], run_native(model, {"x": x})[0], err_msg=name)
