"""Schemas of operators: ONNX's, and onnxruntime's own."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx

from py_ort.ir.operators import earlier_schema

#: The opset of ai.onnx that graphs are rewritten to, and the newest that models may have: what passes match and kernels
#: compute. Raised by hand, together with the bounds of `onnx` in pyproject.toml.
CANONICAL_OPSET = 28


@cache
def schema(domain: str, op_type: str, version: int) -> Any | None:
    """Return the schema of an operator at an opset, ONNX's or that which onnxruntime adds to it, or None."""
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return earlier_schema(domain, op_type, version)


def opsets_with(domain: str, op_type: str) -> list[int]:
    """Return the opsets in which an operator is defined."""
    return [version for version in range(1, CANONICAL_OPSET + 1) if schema(domain, op_type, version) is not None]
