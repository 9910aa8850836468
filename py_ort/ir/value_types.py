"""Types and shapes of values: read, given, and as ONNX's messages have them."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir


def value_type(value: ir.Value) -> Any | None:
    """Return a value's type as ONNX's TypeProto, or None when not even the dtype is known.

    Sizes below zero, which windows larger than their images make, are not known: ONNX's inference dies of them.
    """
    if value.type is None:
        return None
    proto = onnx.TypeProto()
    if isinstance(value.type, ir.TensorType):
        tensor = proto.tensor_type
        tensor.elem_type = int(value.type.dtype)
        if value.shape is not None:
            tensor.shape.SetInParent()
            for dim in value.shape:
                added = tensor.shape.dim.add()
                if isinstance(dim, int):
                    if dim < 0:
                        continue
                    added.dim_value = dim
                elif dim.value is not None:
                    added.dim_param = str(dim)
        return proto
    ir.serde.serialize_type_into(proto, value.type)
    if isinstance(value.type, ir.OptionalType) and value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto


def apply_type(value: ir.Value, proto: Any) -> None:
    """Give a value the type that ONNX inferred; what was known before and is more exact stays."""
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        if kind is not None and value.type is None:
            value.type = ir.serde.deserialize_type_proto_for_type(proto)
            value.shape = ir.serde.deserialize_type_proto_for_shape(proto)
        return
    tensor = proto.tensor_type
    if tensor.elem_type:
        value.type = ir.TensorType(ir.DataType(tensor.elem_type))
    if not tensor.HasField("shape"):
        return
    found = []
    for dim in tensor.shape.dim:
        which = dim.WhichOneof("value")
        found.append(dim.dim_value if which == "dim_value" else dim.dim_param or None)
    set_dims(value, found)


def set_dims(value: ir.Value, found: list[Any]) -> None:
    """Set a value's dimensions (int, name or None each); a known name or number is not given up for None."""
    known = value.shape
    if known is not None and known.rank() == len(found):
        found = [old if new is None else new for old, new in zip(known, found, strict=True)]
    value.shape = ir.Shape(found)


def like(value: ir.Value, source: ir.Value | None, dims: list[Any] | None = None) -> None:
    """Give `value` the dtype of `source`, and its shape, or `dims`."""
    if source is None:
        return
    if source.type is not None:
        value.type = source.type
    if dims is not None:
        set_dims(value, dims)
    elif source.shape is not None:
        value.shape = ir.Shape(list(source.shape))


def infer_like_input(node: ir.Node) -> None:
    """Give the first output the dtype and the shape of the first input: the `infer` of many operators."""
    like(node.outputs[0], node.inputs[0])
