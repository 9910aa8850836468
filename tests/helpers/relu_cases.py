"""Folders with a model of one operator and a data set, in conformance's form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

X = np.array([-1, 2], np.float32)


def write(folder: Path, wanted: np.ndarray, x: np.ndarray = X, model: str = "model", operator: str = "Relu") -> None:
    """Write a model of one operator, and its expected result for x."""
    (folder / "test_data_set_0").mkdir(parents=True, exist_ok=True)
    values = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in (("x", x), ("y", wanted))
    ]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "small", values[:1], values[1:])
    onnx.save(
        helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]), folder / f"{model}.onnx"
    )
    for kind, array in (("input", x), ("output", wanted)):
        (folder / f"test_data_set_0/{kind}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def right_and_wrong(folder: Path) -> Path:
    """A folder of two cases, of which one must fail."""
    write(folder / "right", np.maximum(X, 0))
    write(folder / "wrong", X)
    return folder
