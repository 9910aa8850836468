"""Operators on the numbers that one tensor of bytes stands for, up to what quantizes the result → a table of 256.

DequantizeLinear → Sigmoid → QuantizeLinear, with a product of both and what is behind it, whatever is rounded in
between: all of it is a function of a byte. Tables are made with ONNX's own definitions of the operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from py_ort.compiler.passes.fuse.quantized import BYTES, quantization, quantized_by
from py_ort.compiler.passes.fuse.quantized_operators import take
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.placed.chain_nodes import fits
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_graphs, all_nodes, array, origins, rank, remove, replace_value
from py_ort.ir.operators import INTERNAL, MICROSOFT, operator

_OP_TYPE = "ByteTable"


class ByteTables(Pass):
    """For providers that work on quantized tensors."""

    before = ("quantized",)  # which has an operator on integers for each of them

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Take all that is a function of a byte, from one tensor of bytes to the next that something else reads."""
        if not all(self._target.has(*kernel) is True for kernel in ((INTERNAL, _OP_TYPE), (MICROSOFT, "QLinearAdd"))):
            return 0
        opset = model.opset_imports[""]
        for node in list(all_nodes(model.graph)):
            if node.domain == MICROSOFT and operator(node.domain, node.op_type).layout == "elementwise":
                take(node)  # and the next pass takes it back
        return sum(_Graph(graph, opset).fuse() for graph in all_graphs(model.graph))


class _Graph:
    """Of the values of a graph those that are functions of one tensor of bytes."""

    def __init__(self, graph: ir.Graph | ir.Function, opset: int) -> None:
        self._graph, self._opset = graph, opset
        self._sources: dict[ir.Value, ir.Value] = {}
        self._places = {node: i for i, node in enumerate(graph)}
        for node in graph:
            source = self._source(node)
            if source is not None:
                self._sources[node.outputs[0]] = source

    def _source(self, node: ir.Node) -> ir.Value | None:
        """The bytes of which the node's result is a function; its own, where it makes them."""
        if node.domain != "" or len(node.outputs) != 1 or not node.inputs or node.inputs[0] is None:
            return None
        x, made = node.inputs[0], node.outputs[0]
        if node.op_type == "QuantizeLinear":
            return None if quantized_by(node) is None or x.dtype != ir.DataType.FLOAT else self._sources.get(x, made)
        if node.op_type == "DequantizeLinear":
            found = quantization(node, x) if x.dtype in BYTES else None
            of_all = found is not None and found.steps.size == 1 and x.const_value is None
            return self._sources.get(x, x) if of_all and made.dtype == ir.DataType.FLOAT else None
        if not fits(node) or any(v is not None and v.dtype != ir.DataType.FLOAT for v in (*node.inputs, made)):
            return None
        sources = {self._sources.get(v) for v in node.inputs if v is not None and not _is_number_of_floats(v)}
        return sources.pop() if len(sources) == 1 else None

    def fuse(self) -> int:
        """Look up what is read by others; return how much that is."""
        count = 0
        # The last first: its table is made of operators, of others' tables there is no definition.
        for node in reversed(list(self._graph)):
            source = self._sources.get(node.outputs[0])
            if node.op_type != "QuantizeLinear" or source in (None, node.outputs[0]) or not self._is_wanted(node):
                continue
            assert source is not None
            if rank(source) is None or rank(source) != rank(node.outputs[0]):
                continue  # a number may have an axis that the bytes lack
            nodes = self._between(node, source)
            table = _table(nodes, source, node.outputs[0], self._opset)
            if table is None:
                continue
            build = Builder(node, origin=[name for each in nodes for name in origins(each)])
            looked_up = build.op(_OP_TYPE, source, build.constant(table), domain=INTERNAL)
            looked_up.type, looked_up.shape = node.outputs[0].type, node.outputs[0].shape
            replace_value(node.outputs[0], looked_up)
            count += 1
        if count:
            self._sweep()
        return count

    def _is_wanted(self, node: ir.Node) -> bool:
        """Whether others read these bytes, or what is made of them before it is quantized again."""
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
        """The nodes by which the result comes from the source, in order."""
        found, values = set[ir.Node](), list(node.outputs)
        while values:
            value = values.pop()
            maker = None if value is source else value.producer()
            if maker is not None and maker not in found and (value in self._sources or _is_number_of_floats(value)):
                found.add(maker)
                values += [v for v in maker.inputs if v is not None]
        return sorted(found, key=self._places.__getitem__)

    def _sweep(self) -> None:
        """Take out what nobody reads any more."""
        for node in reversed(list(self._graph)):
            value = node.outputs[0]
            if value in self._sources and not value.uses() and not value.is_graph_output():
                remove(node)


def _is_number_of_floats(value: ir.Value) -> bool:
    """Whether it is one number, which may be quantized as tensors are."""
    maker = value.producer()
    if maker is None or maker.op_type != "DequantizeLinear" or maker.domain != "":
        return _is_number(value)
    return all(each is None or _is_number(each) for each in maker.inputs)


def _is_number(value: ir.Value) -> bool:
    contents = array(value) if value.const_value is not None and (rank(value) or 0) <= 1 else None
    return contents is not None and contents.size == 1


def _table(nodes: Sequence[ir.Node], source: ir.Value, result: ir.Value, opset: int) -> np.ndarray | None:
    """What the nodes make of each byte, by the bits of it; None where ONNX's definitions do not say."""
    assert source.dtype is not None and source.name and result.name
    made = {value for node in nodes for value in node.outputs}
    constants = [_constant(v) for v in _read(nodes) if v not in made and v is not source]
    x, y = (
        onnx.helper.make_tensor_value_info(value.name, value.dtype.value, [1 << 8])
        for value in (source, result)
        if value.dtype is not None and value.name
    )
    graph = onnx.helper.make_graph([ir.serde.serialize_node(node) for node in nodes], "table", [x], [y], constants)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    every = np.arange(1 << 8, dtype=np.uint8).view(source.dtype.numpy())
    try:
        with np.errstate(all="ignore"):
            (found,) = ReferenceEvaluator(proto).run(None, {source.name: every})
    except Exception:  # it raises anything where it lacks an operator, or a type of one
        return None
    return np.asarray(found) if np.shape(found) == every.shape else None


def _read(nodes: Iterable[ir.Node]) -> list[ir.Value]:
    return list(dict.fromkeys(value for node in nodes for value in node.inputs if value is not None))


def _constant(value: ir.Value) -> onnx.TensorProto:
    contents = array(value)
    assert contents is not None
    return onnx.numpy_helper.from_array(contents, value.name)
