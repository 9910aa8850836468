"""Do a node's inputs have types that its operator takes?"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import origins
from py_ort.ir.schemas import schema
from py_ort.ir.type_names import type_name


class _Formal(NamedTuple):
    name: str
    parameter: str
    allowed: frozenset[str]
    variadic: bool
    homogeneous: bool


@lru_cache(1024)
def _formals(domain: str, op_type: str, version: int) -> tuple[_Formal, ...] | None:
    found = schema(domain, op_type, version)
    if found is None:
        return None
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return tuple(
        _Formal(i.name, i.type_str, frozenset(i.types), i.option == variadic, i.is_homogeneous) for i in found.inputs
    )


def forget_schemas() -> None:
    """Ask ONNX again: an operator was registered."""
    _formals.cache_clear()


def check_types(node: ir.Node, version: int) -> None:
    """Compare the inputs' types with the operator's schema.

    Args:
        node: A node whose inputs' types are known, as far as they can be.
        version: The opset it was written for.

    Raises:
        InvalidGraph: A type is not taken, or two inputs that must have one type do not.
    """
    formals = _formals(node.domain, node.op_type, version)
    if not formals:
        return
    bound: dict[str, tuple[str, str]] = {}
    for index, value in enumerate(node.inputs):
        formal = formals[min(index, len(formals) - 1)]
        if value is None or value.type is None or (index >= len(formals) and not formal.variadic):
            continue
        found = type_name(value.type)
        if found not in formal.allowed:
            raise _error(node, f"input {index} ({value.name!r}) has the type {found}, which the operator does not take")
        if formal.variadic and not formal.homogeneous:
            continue
        first, other = bound.setdefault(formal.parameter, (found, value.name or ""))
        if first != found:
            raise _error(node, f"inputs {other!r} and {value.name!r} must have one type, and have {first} and {found}")


def _error(node: ir.Node, text: str) -> InvalidGraph:
    name = origins(node)[0]
    where: dict[str, Any] = {"node": name, "op_type": node.op_type, "domain": node.domain}
    return InvalidGraph(f"node {name} ({node.op_type}): {text}", **where)
