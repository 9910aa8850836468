"""ONNX's texts for types: "tensor(float)", "seq(tensor(int64))", …"""

from __future__ import annotations

import onnx_ir as ir

_TYPE_NAMES = {
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOL": "bool",
    "STRING": "string",
}


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
