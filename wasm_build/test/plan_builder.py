"""Plans of unchanged models, for tests of the core: no passes, no lowering, everything on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from py_ort.schema.gen.Attribute import AttributeT
from py_ort.schema.gen.Attributes import AttributesT
from py_ort.schema.gen.AttributeType import AttributeType
from py_ort.schema.gen.DType import DType
from py_ort.schema.gen.Graph import GraphT
from py_ort.schema.gen.InputUse import InputUse
from py_ort.schema.gen.Node import NodeT
from py_ort.schema.gen.Plan import PlanT
from py_ort.schema.gen.PlanVersion import PlanVersion
from py_ort.schema.gen.Provider import ProviderT
from py_ort.schema.gen.Subgraph import SubgraphT
from py_ort.schema.gen.TensorValue import TensorValueT
from py_ort.schema.gen.Value import ValueT
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.schema.gen.Weight import WeightT
from py_ort.wire.tensors import Layout, dtype_of, pack

WEIGHT_ALIGNMENT = 64


class PlanBuilder:
    """A plan of an unchanged model: no passes, everything on the CPU."""

    def __init__(self, proto: ModelProto, uses: Mapping[str, Sequence[int]] | None = None) -> None:
        self.values: list[ValueT] = []
        self.weights: list[WeightT] = []
        self.graphs: list[GraphT] = [GraphT()]
        self.blob = bytearray()
        self.uses = uses or {}
        constants = {t.name for t in proto.graph.initializer}
        self.input_names = [v.name for v in proto.graph.input if v.name not in constants]
        self._fill(self.graphs[0], proto.graph, {})

    def plan(self) -> bytes:
        """Return the FlatBuffer."""
        plan = PlanT()
        plan.version, plan.producer, plan.modelName = PlanVersion.current, "plan_builder.py", ""
        core = ProviderT()
        core.name, core.forms = "wasm", []
        plan.providers = [core]
        plan.values, plan.graphs, plan.weights = self.values, self.graphs, self.weights
        plan.weightsSize = len(self.blob)
        return finished(plan, b"PORT")

    def cpu_weights(self) -> list[dict[str, int]]:
        """Return index, offset in `blob` and size of the weights for the heap."""
        return [
            {"index": i, "offset": w.offset, "size": w.size}
            for i, w in enumerate(self.weights)
            if w.dtype != DType.string_
        ]

    def _fill(self, out: GraphT, graph: GraphProto, outer: Mapping[str, int]) -> None:
        scope = dict(outer)
        infos = {v.name: v for v in (*graph.input, *graph.output, *graph.value_info)}
        for tensor in graph.initializer:
            scope[tensor.name] = self._weight(tensor)
        out.name = graph.name
        out.inputs = [
            self._value(v.name, infos, scope)
            for v in graph.input
            if v.name not in scope or scope[v.name] == outer.get(v.name)
        ]
        out.nodes = []
        for node in graph.node:
            if node.op_type == "Constant" and not node.domain:
                scope[node.output[0]] = self._weight(constant(node))
            else:
                out.nodes.append(self._node(node, infos, scope))
        out.outputs = [scope[v.name] for v in graph.output]

    def _value(self, name: str, infos: Mapping[str, ValueInfoProto], scope: dict[str, int]) -> int:
        value = ValueT()
        value.name = name
        if (info := infos.get(name)) is not None:
            describe_type(value, info.type)
        self.values.append(value)
        scope[name] = len(self.values) - 1
        return scope[name]

    def _weight(self, tensor: TensorProto) -> int:
        array = to_array(tensor)
        weight, layout = WeightT(), Layout()
        weight.dtype, weight.dims = tensor.data_type, list(array.shape)
        weight.places = 1
        self.blob.extend(bytes(-len(self.blob) % WEIGHT_ALIGNMENT))
        weight.offset = len(self.blob)
        if tensor.data_type == DType.string_:
            weight.strings = [s.decode() for s in tensor.string_data]
        else:
            weight.size = pack(tensor.name, array, layout).size
            self.blob.extend(bytes(layout.buffers[0]))
        value = ValueT()
        value.name, value.dtype, value.rankKnown, value.dims = tensor.name, tensor.data_type, True, list(array.shape)
        self.values.append(value)
        weight.value = len(self.values) - 1
        self.weights.append(weight)
        return weight.value

    def _node(self, proto: NodeProto, infos: Mapping[str, ValueInfoProto], scope: dict[str, int]) -> NodeT:
        node = NodeT()
        node.name = node.origin = proto.name
        node.opType, node.domain = proto.op_type, "" if proto.domain == "ai.onnx" else proto.domain
        node.inputs = [scope[name] if name else -1 for name in proto.input]
        node.uses = list(self.uses.get(proto.op_type, [InputUse.device] * len(node.inputs)))
        attributes = AttributesT()
        attributes.items, node.subgraphs = [], []
        for item in proto.attribute:
            if item.type == AttributeProto.GRAPH:
                node.subgraphs.append(self._subgraph(item.name, item.g, scope))
            elif item.type != AttributeProto.TYPE_PROTO:  # Optional's: kernels do not need it
                attributes.items.append(attribute(item))
        node.attributes = list(finished(attributes))
        node.outputs = [self._value(name, infos, scope) if name else -1 for name in proto.output]
        return node

    def _subgraph(self, name: str, graph: GraphProto, scope: Mapping[str, int]) -> SubgraphT:
        out, subgraph = GraphT(), SubgraphT()
        self.graphs.append(out)
        subgraph.name, subgraph.graph = name, len(self.graphs) - 1
        self._fill(out, graph, scope)
        return subgraph


def describe_type(value: ValueT, proto: onnx.TypeProto) -> None:
    """Fill kind, dtype and dims of a value."""
    kind = proto.WhichOneof("value")
    if kind == "sequence_type":
        describe_type(value, proto.sequence_type.elem_type)
        value.kind = ValueKind.sequence
    elif kind == "optional_type":
        describe_type(value, proto.optional_type.elem_type)
        value.kind = ValueKind.optional
    elif kind == "tensor_type":
        value.dtype = proto.tensor_type.elem_type
        if proto.tensor_type.HasField("shape"):
            value.rankKnown = True
            value.dims = [d.dim_value if d.HasField("dim_value") else -1 for d in proto.tensor_type.shape.dim]


def attribute(proto: AttributeProto) -> AttributeT:
    """Return an attribute of any type but graph."""
    out = AttributeT()
    out.name = proto.name
    value = helper.get_attribute_value(proto)
    match proto.type:
        case AttributeProto.INT:
            out.type, out.i = AttributeType.i, value
        case AttributeProto.FLOAT:
            out.type, out.f = AttributeType.f, value
        case AttributeProto.STRING:
            out.type, out.s = AttributeType.s, value.decode()
        case AttributeProto.INTS:
            out.type, out.ints = AttributeType.ints, list(value)
        case AttributeProto.FLOATS:
            out.type, out.floats = AttributeType.floats, list(value)
        case AttributeProto.STRINGS:
            out.type, out.strings = AttributeType.strings, [s.decode() for s in value]
        case AttributeProto.TENSOR:
            out.type, out.tensor = AttributeType.tensor, tensor_value(value)
        case _:
            raise TypeError(f"attribute {proto.name!r} has the type {proto.type}")
    return out


def tensor_value(proto: TensorProto) -> TensorValueT:
    """Return a tensor attribute's value."""
    out, layout = TensorValueT(), Layout()
    array = to_array(proto)
    out.dtype, out.dims = proto.data_type, list(array.shape)
    if proto.data_type == DType.string_:
        out.strings = [s.decode() for s in proto.string_data]
    else:
        pack(proto.name, array, layout)
        out.data = list(bytes(layout.buffers[0]))
    return out


def constant(node: NodeProto) -> TensorProto:
    """Return the tensor of a Constant node."""
    (item,) = node.attribute
    value = helper.get_attribute_value(item)
    name = node.output[0]
    if item.name == "value":
        tensor = TensorProto()
        tensor.CopyFrom(value)
        tensor.name = name
        return tensor
    dtype = {"float": TensorProto.FLOAT, "int": TensorProto.INT64, "string": TensorProto.STRING}
    kind = item.name.removeprefix("value_")
    listed = kind.endswith("s")
    return helper.make_tensor(
        name, dtype[kind.rstrip("s")], [len(value)] if listed else [], value if listed else [value]
    )


def to_array(proto: TensorProto) -> np.ndarray:
    """Return a tensor as an array whose dtype is ONNX's (from ml_dtypes if numpy lacks it)."""
    array = np.asarray(numpy_helper.to_array(proto))
    assert dtype_of(array) == proto.data_type, f"{proto.name}: {array.dtype} for ONNX type {proto.data_type}"
    return array


def finished(table: Any, identifier: bytes | None = None) -> bytes:
    """Return a table of the object API as a FlatBuffer."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), file_identifier=identifier)
    return bytes(builder.Output())
