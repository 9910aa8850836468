"""Writes a placed model as a plan (schema/plan.fbs)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import onnx_ir as ir

from py_ort.compiler.plan.attributes import pack_attributes, string_vector, texts_of
from py_ort.compiler.plan.weights import Weights
from py_ort.ir.content_keys import key_of
from py_ort.ir.graph import origins
from py_ort.ir.operators import UserKernel, operator
from py_ort.ir.schemas import CANONICAL_OPSET
from py_ort.ops.control import declared_shapes, handed_in
from py_ort.providers import PROVIDERS, PlacedNode
from py_ort.providers.manifest import dtype_name
from py_ort.schema.gen import ElementForm, Graph, InputPlacement, Node, Plan, Provider, Subgraph, Value, Weight
from py_ort.schema.gen.InputUse import InputUse
from py_ort.schema.gen.PlanVersion import PlanVersion
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.wire.json_fields import UserDefinition

IDENTIFIER = b"PORT"
_LARGEST = 2**31 - 1  # largest size in a plan; a model may declare larger ones, which no feed can have

_DTYPES = {dtype_name(dtype): int(dtype) for dtype in ir.DataType}
_HEAP = 1  # of places, the bit of the core's own
_USES = {"device": InputUse.device, "host": InputUse.host, "shape": InputUse.shape}


@dataclass
class PlanWriter:
    """Collects values and graphs, then packs them.

    Attributes:
        model: The placed model.
        placed: Where each node runs.
        providers: The providers that nodes run on: the core's own first, then in the user's order.
        user_kernels: Users' kernels by (domain, op_type).
        keys: Tell by which keys pages may share the constants.
        feed_ranks: See `plan.scalar_feeds`.
        weights: Filled by `write`.
    """

    model: ir.Model
    placed: Mapping[ir.Node, PlacedNode]
    providers: Sequence[str]
    user_kernels: Mapping[tuple[str, str], UserKernel] = field(default_factory=dict)
    keys: bool = False
    feed_ranks: Mapping[ir.Value, int] = field(default_factory=dict)
    weights: Weights = field(default_factory=Weights)
    _values: dict[ir.Value, int] = field(default_factory=dict)
    _graphs: list[ir.Graph] = field(default_factory=list)
    _wanted: dict[ir.Value, int] = field(default_factory=dict)  # the places where a value is read, a bit for each
    _declared: dict[ir.Value, Any] = field(default_factory=dict)  # types of bodies' outputs, as the model declares them
    _handed: list[tuple[ir.Value, ir.Value]] = field(default_factory=list)  # to a body, which reads it where it likes

    def write(self) -> bytes:
        """Return the plan; `weights` is filled."""
        self.weights.providers = [*self.providers]
        self._collect(self.model.graph)
        for outer, inner in reversed(self._handed):  # the innermost bodies first
            self._wanted[outer] |= self._wanted.get(inner, 0)
        constants = [v for v in self._values if v.const_value is not None]
        for value in constants:
            tensor: Any = value.const_value
            self.weights.add(value.name or "", tensor, self._places(value))
        builder = flatbuffers.Builder(1 << 16)
        providers = _table_vector(builder, [_provider(builder, name) for name in self.providers])
        values = _table_vector(builder, [_value(builder, v, self._declared.get(v)) for v in self._values])
        graphs = _table_vector(builder, [self._graph(builder, g) for g in self._graphs])
        placements = _table_vector(builder, [self._input_placement(builder, v) for v in self.model.graph.inputs])
        weights = _table_vector(builder, [self._weight(builder, i, v) for i, v in enumerate(constants)])
        producer = builder.CreateString("py_ort")
        name = builder.CreateString(self.model.graph.name or "")
        user_kernels = self._user_kernels()
        definitions = builder.CreateString(json.dumps(user_kernels)) if user_kernels else None
        Plan.PlanStart(builder)
        Plan.AddVersion(builder, PlanVersion.current)
        Plan.AddProducer(builder, producer)
        Plan.AddModelName(builder, name)
        Plan.AddProviders(builder, providers)
        Plan.AddValues(builder, values)
        Plan.AddGraphs(builder, graphs)
        Plan.AddInputPlacement(builder, placements)
        Plan.AddWeights(builder, weights)
        Plan.AddWeightsSize(builder, self.weights.size)
        if definitions is not None:
            Plan.AddUserKernels(builder, definitions)
        builder.Finish(Plan.PlanEnd(builder), IDENTIFIER)
        return bytes(builder.Output())

    def _collect(self, graph: ir.Graph) -> None:
        """Number the graph and its values, inputs first, then in order of use."""
        self._graphs.append(graph)
        for value in graph.inputs:
            self._number(value)
        for node in graph:
            declared = operator(node.domain, node.op_type)
            there = self._provider(node)
            for index, read in enumerate(node.inputs):
                if read is None:
                    continue
                self._number(read)
                use = declared.use(node, index)
                self._wanted.setdefault(read, 0)
                inner = handed_in(node, index)
                if inner is not None:
                    self._handed.append((read, inner))
                elif use != "shape":
                    self._wanted[read] |= _HEAP if use == "host" else 1 << there
            for value in node.outputs:
                self._number(value)
            for item in node.attributes.values():
                if item.type == ir.AttributeType.GRAPH:
                    self._collect(item.value)
                    for made, shape in zip(item.value.outputs, declared_shapes(node), strict=False):
                        if made.producer() is not None:  # a feed is checked by its own shape alone
                            self._declared[made] = shape
        for value in graph.outputs:
            self._number(value)

    def _user_kernels(self) -> list[UserDefinition]:
        """The definitions of the user's own kernels that nodes use: a plan needs nothing but itself and its weights."""
        keys = dict.fromkeys((node.domain, node.op_type) for node in self.placed)
        found = map(self.user_kernels.get, keys)
        return [kernel.definition for kernel in found if kernel is not None]

    def _provider(self, node: ir.Node) -> int:
        return self.providers.index(self.placed[node].provider)

    def _places(self, value: ir.Value) -> int:
        """Return where a weight or a feed shall be: on one device at most; others have it from the heap.

        What is only given out again, or given out by a subgraph, is wanted on the heap.
        """
        places = self._wanted.get(value, 0)
        devices = places & ~_HEAP
        first = devices & -devices
        return first | (_HEAP if places & _HEAP or devices != first or not devices else 0)

    def _number(self, value: ir.Value) -> int:
        return self._values.setdefault(value, len(self._values))

    def _index(self, value: ir.Value | None) -> int:
        return -1 if value is None else self._values[value]

    def _graph(self, builder: flatbuffers.Builder, graph: ir.Graph) -> int:
        nodes = _table_vector(builder, [self._node(builder, node) for node in graph])
        name = builder.CreateString(graph.name or "")
        inputs = _indices(builder, [self._index(v) for v in graph.inputs])
        outputs = _indices(builder, [self._index(v) for v in graph.outputs])
        Graph.GraphStart(builder)
        Graph.AddName(builder, name)
        Graph.AddInputs(builder, inputs)
        Graph.AddOutputs(builder, outputs)
        Graph.AddNodes(builder, nodes)
        return Graph.GraphEnd(builder)

    def _node(self, builder: flatbuffers.Builder, node: ir.Node) -> int:
        declared = operator(node.domain, node.op_type)
        subgraphs = [
            self._subgraph(builder, item.name, item.value)
            for item in node.attributes.values()
            if item.type == ir.AttributeType.GRAPH
        ]
        subgraph_vector = _table_vector(builder, subgraphs) if subgraphs else None
        attributes = pack_attributes(node.attributes.values())
        attribute_vector = _nested(builder, attributes) if attributes else None
        name = builder.CreateString(node.name or "")
        op_type = builder.CreateSharedString(node.op_type)
        domain = builder.CreateSharedString(node.domain)
        origin = builder.CreateString(", ".join(origins(node)))
        inputs = _indices(builder, [self._index(v) for v in node.inputs])
        # An output that nothing reads is not wanted, but its place must stay.
        outputs = _indices(builder, [self._index(v) if v.uses() or v.is_graph_output() else -1 for v in node.outputs])
        kinds = [_USES[declared.use(node, i)] for i in range(len(node.inputs))]
        uses = builder.CreateNumpyVector(np.array(kinds, np.uint8)) if any(kinds) else None
        Node.NodeStart(builder)
        Node.AddName(builder, name)
        Node.AddOpType(builder, op_type)
        Node.AddDomain(builder, domain)
        Node.AddSinceVersion(
            builder, CANONICAL_OPSET if node.domain == "" else self.model.opset_imports.get(node.domain, 1)
        )
        Node.AddInputs(builder, inputs)
        Node.AddOutputs(builder, outputs)
        if uses is not None:
            Node.AddUses(builder, uses)
        Node.AddProvider(builder, self._provider(node))
        if attribute_vector is not None:
            Node.AddAttributes(builder, attribute_vector)
        if subgraph_vector is not None:
            Node.AddSubgraphs(builder, subgraph_vector)
        Node.AddOrigin(builder, origin)
        return Node.NodeEnd(builder)

    def _subgraph(self, builder: flatbuffers.Builder, name: str, graph: ir.Graph) -> int:
        text = builder.CreateString(name)
        Subgraph.SubgraphStart(builder)
        Subgraph.AddName(builder, text)
        Subgraph.AddGraph(builder, next(i for i, g in enumerate(self._graphs) if g is graph))
        return Subgraph.SubgraphEnd(builder)

    def _weight(self, builder: flatbuffers.Builder, index: int, value: ir.Value) -> int:
        entry = self.weights.entries[index]
        dims = builder.CreateNumpyVector(np.array(list(entry.tensor.shape), np.uint32))
        strings = None
        if entry.tensor.dtype == ir.DataType.STRING:
            strings = string_vector(builder, texts_of(entry.tensor))
        found = key_of(entry.tensor) if self.keys else ""
        key = builder.CreateString(found) if found else None
        Weight.WeightStart(builder)
        Weight.AddValue(builder, self._values[value])
        Weight.AddDtype(builder, int(entry.tensor.dtype))
        Weight.AddDims(builder, dims)
        Weight.AddOffset(builder, entry.offset)
        Weight.AddSize(builder, entry.size)
        Weight.AddPlaces(builder, entry.places)
        if strings is not None:
            Weight.AddStrings(builder, strings)
        if key is not None:
            Weight.AddKey(builder, key)
        return Weight.WeightEnd(builder)

    def _input_placement(self, builder: flatbuffers.Builder, value: ir.Value) -> int:
        InputPlacement.InputPlacementStart(builder)
        InputPlacement.AddPlaces(builder, self._places(value))
        InputPlacement.AddFeedRank(builder, self.feed_ranks.get(value, 0))
        return InputPlacement.InputPlacementEnd(builder)


def _provider(builder: flatbuffers.Builder, name: str) -> int:
    text = builder.CreateString(name)
    forms = PROVIDERS[name].elements
    Provider.StartFormsVector(builder, len(forms))
    for dtype, stored in forms.items():
        ElementForm.CreateElementForm(builder, _DTYPES[dtype], _DTYPES[stored])
    vector = builder.EndVector()
    Provider.ProviderStart(builder)
    Provider.AddName(builder, text)
    Provider.AddForms(builder, vector)
    return Provider.ProviderEnd(builder)


def _value(builder: flatbuffers.Builder, value: ir.Value, declared: Sequence[Any] | None) -> int:
    """Write a value. `declared`: its shape in the model, for sizes that are not known."""
    name = builder.CreateString(value.name or "")
    kind, dtype = ValueKind.tensor, 0
    if isinstance(value.type, ir.SequenceType):
        kind = ValueKind.sequence
    elif isinstance(value.type, ir.OptionalType):
        kind = ValueKind.optional
    if value.type is not None:
        dtype = int(value.type.dtype)
    dims = None
    if value.shape is not None and kind == ValueKind.tensor:
        sizes = [d if isinstance(d, int) else -1 for d in value.shape]
        if declared is not None and len(declared) == len(sizes):
            sizes = [d if s < 0 and isinstance(d, int) else s for s, d in zip(sizes, declared, strict=True)]
        dims = builder.CreateNumpyVector(np.array([s if s <= _LARGEST else -1 for s in sizes], np.int32))
    Value.ValueStart(builder)
    Value.AddName(builder, name)
    Value.AddKind(builder, kind)
    Value.AddDtype(builder, dtype)
    Value.AddRankKnown(builder, dims is not None)
    if dims is not None:
        Value.AddDims(builder, dims)
    return Value.ValueEnd(builder)


def _indices(builder: flatbuffers.Builder, items: list[int]) -> int:
    return builder.CreateNumpyVector(np.array(items, np.int32))


def _table_vector(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _nested(builder: flatbuffers.Builder, data: bytes) -> int:
    """A FlatBuffer inside another must start at a multiple of 8, as it would alone."""
    builder.StartVector(1, len(data), 8)
    builder.head = builder.head - len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return builder.EndVector()
