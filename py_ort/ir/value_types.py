"""Types and shapes of values: read, given, and as ONNX's messages have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir


def value_type(value: ir.Value) -> Any | None:
    """Return a value's type as ONNX's TypeProto, or None when not even the dtype is known.

    Sizes below zero, which windows larger than their images make, are not known: ONNX's inference dies of them. Nor are
    those beyond 64 bits, of a Range of floats.
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
                    if not 0 <= dim < 1 << 63:
                        continue
                    added.dim_value = dim
                elif dim.value is not None:
                    added.dim_param = str(dim)
        return proto
    ir.serde.serialize_type_into(proto, value.type)
    if isinstance(value.type, ir.OptionalType) and value.shape is not None:
        ir.serde.serialize_shape_into(proto, value.shape)
    return proto


class Inferred(NamedTuple):
    """A type that ONNX inferred.

    Attributes:
        type: The type; None: a tensor of unknown elements.
        dims: A tensor's dimensions (int, name or None each); None: not even the rank is known.
        shape: The shape of an optional tensor.
    """

    type: ir.TypeProtocol | None
    dims: Sequence[Any] | None = None
    shape: ir.Shape | None = None

    @classmethod
    def of(cls, proto: Any) -> Inferred | None:
        """Read ONNX's TypeProto; None: it says nothing."""
        kind = proto.WhichOneof("value")
        if kind is None:
            return None
        if kind != "tensor_type":
            serde = ir.serde
            return cls(
                serde.deserialize_type_proto_for_type(proto), None, serde.deserialize_type_proto_for_shape(proto)
            )
        tensor = proto.tensor_type
        found = ir.TensorType(ir.DataType(tensor.elem_type)) if tensor.elem_type else None
        if not tensor.HasField("shape"):
            return cls(found)
        pairs = ((dim.WhichOneof("value"), dim) for dim in tensor.shape.dim)
        return cls(found, [dim.dim_value if which == "dim_value" else dim.dim_param or None for which, dim in pairs])


def apply_type(value: ir.Value, found: Inferred) -> None:
    """Give a value the type that ONNX inferred, except where the known type is more exact."""
    if found.type is not None and not isinstance(found.type, ir.TensorType):
        if value.type is None:
            value.type, value.shape = found.type, found.shape
        return
    if found.type is not None:
        value.type = found.type
    if found.dims is not None:
        set_dims(value, list(found.dims))


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
