"""The operators, one module per family, found by import."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from py_ort.ir.operators import INTERNAL, LOWERINGS, MICROSOFT, NHWC, PARTS, Lowering, Operator, Parts

__all__ = [
    "INTERNAL",
    "MICROSOFT",
    "NHWC",
    "Lowering",
    "Operator",
    "Parts",
    "lowerings",
    "operator",
    "operators",
    "parts",
]


@cache
def operators() -> dict[tuple[str, str], Operator]:
    """Return every declared operator by (domain, op_type)."""
    found: dict[tuple[str, str], Operator] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for declared in getattr(module, "OPERATORS", ()):
            key = (declared.domain, declared.op_type)
            assert key not in found, f"{key} is declared twice"
            found[key] = declared
    return found


def operator(domain: str, op_type: str) -> Operator:
    """Return the declaration of an operator; one without special traits when nothing is declared."""
    known = operators().get((domain, op_type))
    if known is None:
        known = operators()[domain, op_type] = Operator(op_type, domain)
    return known


def lowerings(domain: str, op_type: str) -> list[Lowering]:
    """Return the rewrites of an operator's old forms, in order of declaration."""
    operators()
    return LOWERINGS.get((domain, op_type), [])


def parts(domain: str, op_type: str) -> Parts | None:
    """Return how an operator is made of others, if it is declared."""
    operators()
    return PARTS.get((domain, op_type))
