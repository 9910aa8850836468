"""Inputs and outputs as onnxruntime describes them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

_TYPE_NAMES = {
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOL": "bool",
    "STRING": "string",
}


@dataclass(frozen=True)
class NodeArg:
    """A model's input or output.

    Attributes:
        name: Its name.
        type: In ONNX's words: "tensor(float)", "seq(tensor(int64))", …
        shape: A number, a name or None for each dimension; None when the rank is not known.
    """

    name: str
    type: str
    shape: list[int | str | None] | None

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape or []})"

    @classmethod
    def of(cls, value: ir.Value) -> NodeArg:
        """Describe a value of the graph."""
        shape: list[int | str | None] | None = None
        if value.shape is not None:
            shape = [d if isinstance(d, int) else (str(d) if d.value is not None else None) for d in value.shape]
        return cls(value.name or "", type_name(value.type), shape)


def type_name(found: ir.TypeProtocol | None) -> str:
    """Return ONNX's text for a type: "tensor(float)"."""
    if found is None:
        return ""
    if isinstance(found, ir.SequenceType):
        return f"seq({type_name(found.elem_type)})"
    if isinstance(found, ir.OptionalType):
        return f"optional({type_name(found.elem_type)})"
    if isinstance(found, ir.SparseTensorType):
        return f"sparse_tensor({_dtype(found.dtype)})"
    return f"tensor({_dtype(found.dtype)})"


def _dtype(dtype: ir.DataType) -> str:
    return _TYPE_NAMES.get(dtype.name, dtype.name.lower())
