"""Run small ONNX models on the core's CPU provider in Node, in a fraction of a second: the loop for kernel authors.

    from one_node import model, run
    y, = run(model("Softmax", ["x"], ["y"], axis=1), {"x": x})

The model's nodes reach the kernels as they are: write them in the canonical form of docs/internals.md (newest opset).
Needs `PY_ORT_FAST=1 emsdk_scripts/build`; PY_ORT_CORE names another core_node.cjs.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
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
from py_ort.schema.gen.Provider import Provider
from py_ort.schema.gen.Subgraph import SubgraphT
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.schema.gen.TensorValue import TensorValueT
from py_ort.schema.gen.Value import ValueT
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.schema.gen.Weight import WeightT
from py_ort.wire.tensors import Layout, dtype_of, from_description, pack

RUNNER = Path(__file__).with_name("run_node.cjs")
PLAN_VERSION = 1
WEIGHT_ALIGNMENT = 64


class CoreError(Exception):
    """The core's error: `code`, `node`, `op_type` and `provider` beside the text."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields["message"])
        self.code: int = fields["code"]
        self.node: str = fields.get("node", "")
        self.op_type: str = fields.get("op_type", "")
        self.provider: str = fields.get("provider", "")


def model(op_type: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", opset: int = 23, **attributes: Any) -> ModelProto:
    """Return a model of one node; "" stands for an omitted input or output. Types are left to the run."""
    node = helper.make_node(op_type, inputs, outputs, name=op_type.lower(), domain=domain, **attributes)
    graph = helper.make_graph([node], "one_node", [ValueInfoProto(name=n) for n in dict.fromkeys(inputs) if n], [ValueInfoProto(name=n) for n in outputs if n])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])])


def run(proto: ModelProto, feeds: Mapping[str, Any] | Sequence[Any], *, repeat: int = 1) -> list[Any]:
    """Run a model; return its outputs: arrays, lists of them for sequences, None for empty optionals.

    Raises:
        CoreError: The core refused the plan, or a kernel failed.
    """
    (result,) = run_many([(proto, feeds)], repeat=repeat)
    if isinstance(result, CoreError):
        raise result
    return result.outputs


class Result:
    """Outputs of one run, and the milliseconds of each repetition."""

    def __init__(self, outputs: list[Any], ms: list[float]) -> None:
        self.outputs, self.ms = outputs, ms


def run_many(cases: Sequence[tuple[ModelProto, Mapping[str, Any] | Sequence[Any]]], *, repeat: int = 1) -> list[Result | CoreError]:
    """Run many models in one Node process. Errors are returned, not raised."""
    with tempfile.TemporaryDirectory() as tmp:
        folders = [Path(tmp) / str(i) for i in range(len(cases))]
        for folder, (proto, feeds) in zip(folders, cases, strict=True):
            folder.mkdir()
            _write(folder, proto, feeds, repeat)
        done = subprocess.run(["node", str(RUNNER), *map(str, folders)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"run_node.cjs failed:\n{done.stdout}{done.stderr}")
        return [_read(folder) for folder in folders]


def _write(folder: Path, proto: ModelProto, feeds: Mapping[str, Any] | Sequence[Any], repeat: int) -> None:
    builder = PlanBuilder(proto)
    names = builder.input_names
    if not isinstance(feeds, Mapping):
        feeds = dict(zip(names, feeds, strict=True))
    layout, entries = Layout(), []
    for i, name in enumerate(names):
        description = pack(name, np.asarray(feeds[name]), layout)
        entries.append({"input": i, "dtype": description.dtype, "dims": description.dims, "offset": description.offset, "size": description.size})
    (folder / "feeds.bin").write_bytes(_joined(layout))
    (folder / "plan.bin").write_bytes(builder.plan())
    (folder / "weights.bin").write_bytes(bytes(builder.blob))
    job = {"weights": builder.cpu_weights(), "feeds": entries, "outputs": len(proto.graph.output), "repeat": repeat}
    (folder / "run.json").write_text(json.dumps(job))


def _joined(layout: Layout) -> bytes:
    data = bytearray(layout.size)
    at = 0
    for buffer in layout.buffers:
        data[at : at + len(buffer)] = buffer
        at += -(-len(buffer) // 16) * 16
    return bytes(data)


def _read(folder: Path) -> Result | CoreError:
    answer = json.loads((folder / "outputs.json").read_text())
    if "error" in answer:
        return CoreError(answer["error"])
    payload = memoryview((folder / "outputs.bin").read_bytes())
    return Result([_value(value, payload) for value in answer["values"]], answer["ms"])


def _value(value: dict[str, Any], payload: memoryview) -> Any:
    if "items" in value:
        items = [_value(item, payload) for item in value["items"]]
        return items if value["kind"] == ValueKind.sequence else (items[0] if items else None)
    description = TensorDescT()
    description.name, description.dtype, description.dims = "output", value["dtype"], value["dims"]
    description.offset, description.size = value["offset"], value["size"]
    return from_description(description, payload)


class PlanBuilder:
    """A plan of a model as it is: no passes, everything on one provider."""

    def __init__(self, proto: ModelProto, provider: int = Provider.cpu, uses: Mapping[str, Sequence[int]] | None = None) -> None:
        self.values: list[ValueT] = []
        self.weights: list[WeightT] = []
        self.graphs: list[GraphT] = [GraphT()]
        self.blob = bytearray()
        self.provider, self.uses = provider, uses or {}
        constants = {t.name for t in proto.graph.initializer}
        self.input_names = [v.name for v in proto.graph.input if v.name not in constants]
        self._fill(self.graphs[0], proto.graph, {})

    def plan(self) -> bytes:
        plan = PlanT()
        plan.version, plan.producer, plan.modelName = PLAN_VERSION, "one_node.py", ""
        plan.values, plan.graphs, plan.weights, plan.weightsSize = self.values, self.graphs, self.weights, len(self.blob)
        return finished(plan, b"PORT")

    def cpu_weights(self) -> list[dict[str, int]]:
        return [{"index": i, "offset": w.offset, "size": w.size} for i, w in enumerate(self.weights) if w.dtype != DType.string_ and w.onCpu]

    def _fill(self, out: GraphT, graph: GraphProto, outer: Mapping[str, int]) -> None:
        scope = dict(outer)
        infos = {v.name: v for v in (*graph.input, *graph.output, *graph.value_info)}
        for tensor in graph.initializer:
            scope[tensor.name] = self._weight(tensor)
        out.name = graph.name
        out.inputs = [self._value(v.name, infos, scope) for v in graph.input if v.name not in scope or scope[v.name] == outer.get(v.name)]
        out.nodes = [self._node(node, infos, scope) for node in graph.node]
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
        weight.onCpu, weight.onGpu = self.provider == Provider.cpu, self.provider == Provider.js
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
        node.name, node.opType, node.domain, node.origin = proto.name, proto.op_type, proto.domain.replace("ai.onnx", ""), proto.name
        node.provider = self.provider
        node.inputs = [scope[name] if name else -1 for name in proto.input]
        node.uses = list(self.uses.get(proto.op_type, [InputUse.device] * len(node.inputs)))
        attributes = AttributesT()
        attributes.items, node.subgraphs = [], []
        for item in proto.attribute:
            if item.type == AttributeProto.GRAPH:
                node.subgraphs.append(self._subgraph(item.name, item.g, scope))
            else:
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


def to_array(proto: TensorProto) -> np.ndarray:
    """Return a tensor as an array whose dtype stands for ONNX's (ml_dtypes where numpy has none)."""
    array = np.asarray(numpy_helper.to_array(proto))
    assert dtype_of(array) == proto.data_type, f"{proto.name}: {array.dtype} for ONNX type {proto.data_type}"
    return array


def finished(table: Any, identifier: bytes | None = None) -> bytes:
    """Return a table of the object API as a FlatBuffer."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(table.Pack(builder), file_identifier=identifier)
    return bytes(builder.Output())
