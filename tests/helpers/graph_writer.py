"""Writes graphs in the form of PyTorch's exporters: weights by their shapes, sizes read from tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper


class GraphWriter:
    """Appends nodes; `op` returns the new value's name."""

    def __init__(self, seed: int = 0, opset: int = 17) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.opset = opset
        self._rng = np.random.default_rng(seed)
        self._count = 0

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        return self.ops(op_type, *inputs, outputs=1, **attributes)[0]

    def ops(self, op_type: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        self._count += 1
        names = [f"{op_type.lower()}_{self._count}" + (f"_{i}" if i else "") for i in range(outputs)]
        name = f"/{op_type}_{self._count}"
        self.nodes.append(helper.make_node(op_type, list(inputs), names, name=name, **attributes))
        return names

    def constant(self, contents: Any, dtype: Any = np.float32) -> str:
        self._count += 1
        name = f"const_{self._count}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(contents, dtype), name))
        return name

    def ints(self, *items: int) -> str:
        return self.constant(list(items), np.int64)

    def weights(self, *shape: int) -> str:
        return self.constant(self._rng.standard_normal(shape) / np.sqrt(shape[0]))

    def linear(self, x: str, rows: int, columns: int, bias: bool = True) -> str:
        y = self.op("MatMul", x, self.weights(rows, columns))
        return self.op("Add", self.weights(columns), y) if bias else y

    def size(self, x: str, axis: int) -> str:
        """One size of a tensor, as a vector."""
        found = self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64), axis=0)
        return self.op("Unsqueeze", found, axes=[0]) if self.opset < 13 else self.op("Unsqueeze", found, self.ints(0))

    def shape(self, *parts: str | int) -> str:
        """A shape of sizes (vectors) and numbers."""
        return self.op("Concat", *(self.ints(p) if isinstance(p, int) else p for p in parts), axis=0)

    def slice(self, x: str, axis: int, start: int | str, end: int | str = 2**63 - 1, step: int = 1) -> str:
        bounds = [self.ints(b) if isinstance(b, int) else b for b in (start, end)]
        return self.op("Slice", x, *bounds, self.ints(axis), self.ints(step))

    def unsqueeze(self, x: str, *axes: int) -> str:
        return self.op("Unsqueeze", x, self.ints(*axes))

    def transpose(self, x: str, *perm: int) -> str:
        return self.op("Transpose", x, perm=list(perm))

    def input(self, name: str, dtype: int, dims: list[Any]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def output(self, value: str, name: str, rank: int, dtype: int = TensorProto.FLOAT) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, dtype, [None] * rank))

    def model(self, ir_version: int = 8) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir_version)
