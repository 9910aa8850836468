"""Graphs of the compiler's IR as ONNX files, with large tensors inside or in a file beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import onnx
import onnx_ir as ir

from py_ort.compiler.load.model_files import replacing
from py_ort.compiler.saved.target import SavedModel
from py_ort.ir.graph import all_graphs, element_bytes

#: A protobuf message holds 2 GiB; from here on the tensors go to a file of their own.
_EXTERNAL_FROM = 1 << 30
#: Metadata of a model: tools look for patterns by its producer.
_TOLD = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
#: Before it, initializers had to be among the inputs too, where the compiler does not leave them.
_IR_WITHOUT_LISTED_CONSTANTS = 4

Keep = Callable[[onnx.TensorProto, ir.TensorProtocol], None]
"""Puts a tensor's contents into its proto, or elsewhere."""


def save_model(model: ir.Model, saved: SavedModel, form: type[OnnxWriter]) -> None:
    """Write a model.

    Args:
        model: The model; not changed.
        saved: The file, and the one beside it for large tensors.
        form: The writer for the form of its nodes.

    Raises:
        OSError: They cannot be written.
    """
    path, location = saved.path, saved.data
    sizes = [
        v.const_value.size * element_bytes(v.const_value.dtype)
        for g in all_graphs(model.graph)
        for v in g.initializers.values()
        if v.const_value is not None and v.const_value.dtype != ir.DataType.STRING
    ]
    if not location and sum(sizes) >= _EXTERNAL_FROM:
        location = path.name + ".data"
    if not location or max(sizes, default=-1) < saved.least:
        path.write_bytes(form().model(model).SerializeToString())
        return
    data = path.parent / location
    with replacing(data, 0o666) as file:  # it may be the model's own external data, which are still read
        proto = form(_to_file(file, location, saved.least)).model(model)
    path.write_bytes(proto.SerializeToString())


def _to_file(file: BinaryIO, location: str, least: int) -> Keep:
    def keep(proto: onnx.TensorProto, tensor: ir.TensorProtocol) -> None:
        if tensor.dtype == ir.DataType.STRING or tensor.nbytes < least:
            return inside(proto, tensor)
        file.write(bytes(-file.tell() % 64))
        proto.dims.extend(tensor.shape.numpy())
        proto.data_type = int(tensor.dtype)
        proto.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", file.tell()), ("length", tensor.nbytes)):
            proto.external_data.add(key=key, value=str(value))
        file.write(tensor.tobytes())
        return None

    return keep


def inside(proto: onnx.TensorProto, tensor: ir.TensorProtocol) -> None:
    """Keep a tensor's contents in its proto."""
    if tensor.dtype == ir.DataType.STRING:
        proto.CopyFrom(ir.to_proto(tensor))
        return
    proto.dims.extend(tensor.shape.numpy())
    proto.data_type = int(tensor.dtype)
    proto.raw_data = tensor.tobytes()


class OnnxWriter:
    """Writes models as protos, node by node as they are. `keep` stores the tensors' contents."""

    def __init__(self, keep: Keep = inside) -> None:
        self._keep = keep
        self._names: dict[ir.Value, str] = {}
        self._used: set[str] = set()
        self._node_names: set[str] = set()
        self._count = 0

    def model(self, model: ir.Model) -> onnx.ModelProto:
        """Return the model as a proto."""
        proto = onnx.ModelProto(graph=self.graph(model.graph), ir_version=self.ir_version(model))
        for domain, version in self.opsets(model).items():
            proto.opset_import.add(domain=domain, version=version)
        for name in _TOLD:
            if (value := getattr(model, name)) is not None:
                setattr(proto, name, value)
        onnx.helper.set_model_props(proto, dict(model.metadata_props))
        proto.functions.extend(ir.to_proto(function) for function in model.functions.values())
        return proto

    def opsets(self, model: ir.Model) -> dict[str, int]:
        """Return which opset of each domain the nodes are of; asked when all are written."""
        return dict(model.opset_imports)

    def ir_version(self, model: ir.Model) -> int:
        """Return the version of ONNX's IR."""
        return max(model.ir_version or 0, _IR_WITHOUT_LISTED_CONSTANTS)

    def name(self, value: ir.Value | None) -> str:
        """Return the value's name in the proto: its own, or a new one if another value has the same."""
        if value is None:
            return ""
        if value not in self._names:
            wanted = value.name or "v"
            while wanted in self._used:
                self._count += 1
                wanted = f"{value.name}_{self._count}"
            self._used.add(wanted)
            self._names[value] = wanted
        return self._names[value]

    def graph(self, graph: ir.Graph) -> onnx.GraphProto:
        """Return a graph as a proto; the names of inputs and outputs are kept."""
        proto = onnx.GraphProto(name=graph.name or "graph")
        for value in (*graph.inputs, *graph.outputs):
            self.name(value)
        for value in graph.inputs:
            proto.input.append(self._info(value))
        for value in graph.initializers.values():
            if value.const_value is not None and (value.uses() or value.is_graph_output()):
                tensor = proto.initializer.add(name=self.name(value))
                self._keep(tensor, value.const_value)
                tensor.name = self.name(value)
        for node in graph:
            self.node(proto, node)
        for value in graph.outputs:
            proto.output.append(self._info(value))
        return proto

    def _info(self, value: ir.Value) -> onnx.ValueInfoProto:
        info = onnx.ValueInfoProto(name=self.name(value))
        if value.type is not None:
            ir.serde.serialize_type_into(info.type, value.type)
        if value.shape is not None and isinstance(value.type, ir.TensorType):
            ir.serde.serialize_shape_into(info.type, value.shape)
        return info

    def node(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        """Append a node, as it is."""
        made = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=self.node_name(node))
        if node.overload:  # tools compare texts, in which an empty one shows
            made.overload = node.overload
        made.input.extend(self.name(v) for v in node.inputs)
        made.output.extend(self.name(v) for v in node.outputs)
        for item in node.attributes.values():
            if item.type == ir.AttributeType.GRAPH:
                made.attribute.append(onnx.helper.make_attribute(item.name, self.graph(item.value)))
            else:
                made.attribute.append(ir.to_proto(item))
        proto.node.append(made)

    def node_name(self, node: ir.Node) -> str:
        """Return the node's name; "" if another node has the same."""
        name = node.name or ""
        if name in self._node_names:
            return ""
        self._node_names.add(name)
        return name
