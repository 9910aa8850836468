"""Contents of tensors: out of the protobuf message, and seen to fit their types and shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import all_graphs, all_nodes

_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def take_contents(model: ir.Model, but: Collection[str] = ()) -> None:
    """Move all tensors, at every depth, out of the protobuf message, which copies their bytes at each access.

    Args:
        model: Changed in place.
        but: Initializers that get other contents.

    Raises:
        InvalidGraph: The contents of one are not what its type and shape say, or it is not of its value's type.
    """
    bodies = (model.graph, *(function.graph for function in model.functions.values()))
    for graph in (each for body in bodies for each in all_graphs(body)):
        for name, value in graph.initializers.items():
            if value.const_value is not None and not (name in but and graph is model.graph):
                value.const_value = _checked(value.const_value, f"initializer {name!r}")
                if value.dtype is not None and value.dtype != value.const_value.dtype:
                    raise InvalidGraph(
                        f"initializer {name!r} is of type {value.const_value.dtype}, and declared as {value.dtype}"
                    )
    for node in _nodes(model):
        for name, item in node.attributes.items():
            if item.is_ref() or item.type not in (ir.AttributeType.TENSOR, ir.AttributeType.TENSORS):
                continue
            what = f"attribute {name!r} of node {node.name or node.op_type}"
            if item.type == ir.AttributeType.TENSOR:
                node.attributes[name] = ir.AttrTensor(name, _checked(item.value, what))
            else:
                node.attributes[name] = ir.AttrTensors(name, [_checked(tensor, what) for tensor in item.value])


def _nodes(model: ir.Model) -> Iterator[ir.Node]:
    yield from all_nodes(model.graph)
    for function in model.functions.values():
        yield from all_nodes(function.graph)


def _checked(tensor: ir.TensorProtocol, what: str) -> ir.TensorProtocol:
    if isinstance(tensor, ir.StringTensor) and len(tensor.string_data()) != tensor.size:
        raise InvalidGraph(f"{what} has {len(tensor.string_data())} strings for the shape {list(tensor.shape.numpy())}")
    if not isinstance(tensor, ir.TensorProtoTensor):
        return tensor  # external, or checked before
    try:
        dtype, sizes = tensor.dtype, tensor.shape.numpy()
        if dtype == ir.DataType.UNDEFINED or any(size < 0 for size in sizes):
            raise InvalidGraph(f"{what} is of type {dtype} and shape {list(sizes)}")
        contents = tensor.numpy()
        empty = not tensor.raw.HasField("raw_data") and not any(len(getattr(tensor.raw, field)) for field in _FIELDS)
        if empty and contents.size:  # onnx-ir makes zeros
            raise InvalidGraph(f"{what} of shape {list(sizes)} has no contents: the file was stripped or cut off")
    except (AssertionError, OverflowError, TypeError, ValueError) as e:
        raise InvalidGraph(f"the contents of {what} do not fit its type and shape: {e}") from e
    return tensor if dtype == ir.DataType.STRING else ir.Tensor(contents, dtype, name=tensor.name)
