"""Elementwise operators between DequantizeLinear and QuantizeLinear of bytes → a table of 256 bytes.

DequantizeLinear → Sigmoid → QuantizeLinear, with a product of both and what is behind it, whatever is rounded in
between: all of it is a function of a byte. Tables are made with ONNX's own definitions of the operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from py_ort.compiler.passes.fuse.quantized_operators import take
from py_ort.compiler.passes.match import widened
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.placed.chain_nodes import fits
from py_ort.compiler.passes.quantization import BYTES, Quantization, computes_on_bytes, quantized_by
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_graphs, all_nodes, array, origins, rank, remove, replace_value, scalar
from py_ort.ir.operators import INTERNAL, MICROSOFT, operator
from py_ort.schema.dialect import BYTE_TABLE


class ByteTables(Pass):
    """For providers that work on quantized tensors."""

    before = ("quantized",)  # which has an operator on integers for each of them

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Take all that is a function of a byte, from one tensor of bytes to the next that something else reads."""
        if self._target.has(INTERNAL, BYTE_TABLE) is not True or not computes_on_bytes(self._target):
            return 0
        opset = model.opset_imports[""]
        for node in list(all_nodes(model.graph)):
            if node.domain == MICROSOFT and operator(node.domain, node.op_type).layout == "elementwise":
                take(node)  # and the next pass takes it back
        return sum(_Graph(graph, opset).fuse() for graph in all_graphs(model.graph))


class _Graph:
    """The values of a graph that are functions of one tensor of bytes."""

    def __init__(self, graph: ir.Graph | ir.Function, opset: int) -> None:
        self._graph, self._opset = graph, opset
        self._sources: dict[ir.Value, ir.Value] = {}
        self._places = {node: i for i, node in enumerate(graph)}
        for node in graph:
            source = self._source(node)
            if source is not None:
                self._sources[node.outputs[0]] = source

    def _source(self, node: ir.Node) -> ir.Value | None:
        """Return the bytes that the node's result is a function of: another value's, or the node's own."""
        if node.domain != "" or len(node.outputs) != 1 or not node.inputs or node.inputs[0] is None:
            return None
        x, made = node.inputs[0], node.outputs[0]
        if node.op_type == "QuantizeLinear":
            return None if quantized_by(node) is None or x.dtype != ir.DataType.FLOAT else self._sources.get(x, made)
        if node.op_type == "DequantizeLinear":
            found = Quantization.of(node, BYTES)
            of_all = found is not None and found.is_of_all and x.const_value is None
            return self._sources.get(x, x) if of_all and made.dtype == ir.DataType.FLOAT else None
        if not fits(node) or any(v is not None and v.dtype != ir.DataType.FLOAT for v in (*node.inputs, made)):
            return None
        sources = {self._sources.get(v) for v in node.inputs if v is not None and not self._is_number(v)}
        return sources.pop() if len(sources) == 1 else None

    def fuse(self) -> int:
        """Replace quantized results by lookups in tables; return the number of changes."""
        wanted: dict[ir.Value, list[ir.Node]] = {}
        for node in self._graph:
            if node.op_type != "QuantizeLinear":
                continue
            result = node.outputs[0]
            source = self._sources.get(result)
            if source is None or source is result:
                continue
            if widened(result, [source]) is False and self._is_wanted(node):
                wanted.setdefault(source, []).append(node)
        count = sum(self._take(source, nodes) for source, nodes in wanted.items())
        if count:
            self._sweep()
        return count

    def _take(self, source: ir.Value, ends: Sequence[ir.Node]) -> int:
        """Replace the outputs of these nodes by lookups of the source: all of them, or as many as possible."""
        between = [self._between(node, source) for node in ends]
        together = sorted({node for nodes in between for node in nodes}, key=self._places.__getitem__)
        tables = _tables(together, source, [node.outputs[0] for node in ends], self._opset)
        if tables is None and len(ends) > 1:
            return sum(self._take(source, [node]) for node in ends)
        for node, nodes, table in zip(ends, between, tables or (), strict=False):
            result = node.outputs[0]
            build = Builder(node, origin=[name for each in nodes for name in origins(each)])
            looked_up = build.op(BYTE_TABLE, source, build.constant(table), domain=INTERNAL)
            looked_up.type, looked_up.shape = result.type, result.shape
            replace_value(result, looked_up)
        return 0 if tables is None else len(ends)

    def _is_wanted(self, node: ir.Node) -> bool:
        """Return True if other nodes read these bytes, or values made of them before the next QuantizeLinear."""
        seen, values = set[ir.Value](), list(node.outputs)
        while values:
            value = values.pop()
            if value.is_graph_output():
                return True
            for use in value.uses():
                made = use.node.outputs[0]
                if self._sources.get(made) is not self._sources[node.outputs[0]]:
                    return True
                if use.node.op_type != "QuantizeLinear" and made not in seen:
                    seen.add(made)
                    values.append(made)
        return False

    def _between(self, node: ir.Node, source: ir.Value) -> list[ir.Node]:
        """Return the nodes by which the result comes from the source, in their order in the graph."""
        found, values = set[ir.Node](), list(node.outputs)
        while values:
            value = values.pop()
            maker = None if value is source else value.producer()
            if maker is not None and maker not in found and (value in self._sources or self._is_number(value)):
                found.add(maker)
                values += [v for v in maker.inputs if v is not None]
        return sorted(found, key=self._places.__getitem__)

    def _is_number(self, value: ir.Value) -> bool:
        """Return True if a value is one float, which may be quantized like a tensor."""
        maker = value.producer()
        if maker is None or maker not in self._places or maker.op_type != "DequantizeLinear" or maker.domain != "":
            return _is_number(value)
        return all(each is None or _is_number(each) for each in maker.inputs)

    def _sweep(self) -> None:
        """Remove nodes that are now unused."""
        for node in reversed(list(self._graph)):
            value = node.outputs[0]
            if value in self._sources and not value.uses() and not value.is_graph_output():
                remove(node)


def _is_number(value: ir.Value) -> bool:
    return scalar(value) is not None and (rank(value) or 0) <= 1


class _Quantize(OpRun):
    """ONNX's own would make integers of 32 bits of what is beyond them, and infinities."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, zero_point: Any = None, **_: Any) -> tuple[np.ndarray]:
        zero = np.uint8(0) if zero_point is None else np.asarray(zero_point).reshape(-1)[0]
        integers = np.iinfo(zero.dtype)
        steps = np.rint(x / scale) + np.float32(zero)
        return (np.clip(np.nan_to_num(steps, nan=integers.min), integers.min, integers.max).astype(zero.dtype),)


_Quantize.__name__ = "QuantizeLinear"  # by which the evaluator finds it


def _tables(
    nodes: Sequence[ir.Node], source: ir.Value, results: Sequence[ir.Value], opset: int
) -> list[np.ndarray] | None:
    """Return the nodes' results of each byte, by its bits; None where ONNX's definitions have no result."""
    assert source.dtype is not None and source.name
    made = {value for node in nodes for value in node.outputs}
    constants = [_constant(v) for v in _read(nodes) if v not in made and v is not source]
    x, *ys = (
        onnx.helper.make_tensor_value_info(value.name, value.dtype.value, [1 << 8])
        for value in (source, *results)
        if value.dtype is not None and value.name
    )
    graph = onnx.helper.make_graph([ir.serde.serialize_node(node) for node in nodes], "tables", [x], ys, constants)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    every = np.arange(1 << 8, dtype=np.uint8).view(source.dtype.numpy())
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(proto, new_ops=[_Quantize]).run(None, {source.name: every})
    except Exception:  # it raises anything where it lacks an operator, or a type of one
        return None
    tables = [np.asarray(each) for each in found]
    return tables if all(table.shape == every.shape for table in tables) else None


def _read(nodes: Iterable[ir.Node]) -> list[ir.Value]:
    return list(dict.fromkeys(value for node in nodes for value in node.inputs if value is not None))


def _constant(value: ir.Value) -> onnx.TensorProto:
    contents = array(value)
    assert contents is not None
    return onnx.numpy_helper.from_array(contents, value.name)
