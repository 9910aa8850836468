"""ONNX's texts for types: "tensor(float)", "seq(tensor(int64))", …"""

from __future__ import annotations

from functools import cache

import onnx_ir as ir

_TYPE_NAMES = {
    "FLOAT": "float",
    "DOUBLE": "double",
    "BOOL": "bool",
    "STRING": "string",
}


def type_name(found: ir.TypeProtocol | None) -> str:
    """Return ONNX's text for a type: "tensor(float)"."""
    if type(found) is ir.TensorType:  # most are; the checks below take their time
        return _of_tensor(found.dtype)
    if found is None:
        return ""
    if isinstance(found, ir.SequenceType):
        return f"seq({type_name(found.elem_type)})"
    if isinstance(found, ir.OptionalType):
        return f"optional({type_name(found.elem_type)})"
    if isinstance(found, ir.SparseTensorType):
        return f"sparse_tensor({_dtype(found.dtype)})"
    return _of_tensor(found.dtype)


@cache
def _of_tensor(dtype: ir.DataType) -> str:
    return f"tensor({_dtype(dtype)})"


def _dtype(dtype: ir.DataType) -> str:
    return _TYPE_NAMES.get(dtype.name, dtype.name.lower())
