"""Estimates of the sizes of tensors with symbolic dimensions.

Each symbol has two numbers, a small and a large one, in all estimates. A pass acts only if both numbers lead to the
same decision. So a plan for any size contains the same joins as a plan for known sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy  # type: ignore[import-untyped]

from py_ort.ir.graph import dims, element_bytes

SYMBOLS = (80, 1280)
"""Numbers tried for a symbol: a small input, beside which fixed sizes weigh, and a large one."""

Numbers = tuple[Any, ...]  # int or Fraction, by `SYMBOLS`; None where there is none

_FUNCTIONS: dict[Any, Callable[[Sequence[Any]], Any]] = {
    sympy.Add: sum,
    sympy.Mul: math.prod,
    sympy.Pow: lambda args: Fraction(args[0]) ** int(args[1]),
    sympy.Mod: lambda args: args[0] % args[1],
    sympy.Max: max,
    sympy.Min: min,
    sympy.Abs: lambda args: abs(args[0]),
    sympy.floor: lambda args: math.floor(args[0]),
    sympy.ceiling: lambda args: math.ceil(args[0]),
}


class Estimates:
    """Evaluates each expression, and each part of it, once."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._sizes: dict[str, Numbers] = {}
        self._terms: dict[Any, Numbers] = {}

    def bytes(self, value: ir.Value) -> tuple[np.ndarray, bool]:
        """Return the tensor's bytes by `SYMBOLS`, and whether all its sizes are at least symbols.

        What depends on data (how many boxes were found) is estimated as symbols are; without a rank it counts nothing.
        """
        known = dims(value)
        if known is None or value.dtype is None:
            return np.zeros(len(SYMBOLS)), False
        numbers = [(dim,) * len(SYMBOLS) if isinstance(dim, int) else self._size(dim) for dim in known]
        item = max(1, math.ceil(element_bytes(value.dtype)))
        found = [float(math.prod(each) * item) for each in zip(*numbers, strict=True)] or [item] * len(SYMBOLS)
        return np.array(found), all(isinstance(dim, int) or dim.value is not None for dim in known)

    def _size(self, dim: ir.SymbolicDim) -> Numbers:
        if dim.value is None:
            return SYMBOLS
        found = self._sizes.get(dim.value)
        if found is None:
            try:
                numbers = self._evaluated(dim._expr)
            except ValueError:  # a name that is not an expression
                numbers = SYMBOLS
            pairs = zip(numbers, SYMBOLS, strict=True)
            found = tuple(n if number is None else max(1, math.ceil(number)) for number, n in pairs)
            self._sizes[dim.value] = found
        return found

    def _evaluated(self, term: Any) -> Numbers:
        found = self._terms.get(term)
        if found is None:
            if term.is_Symbol:
                found = SYMBOLS
            elif term.is_Rational:
                found = (Fraction(int(term.p), int(term.q)) if term.q != 1 else int(term.p),) * len(SYMBOLS)
            else:
                arguments = [self._evaluated(each) for each in term.args]
                found = tuple(_applied(term.func, each) for each in zip(*arguments, strict=True))
                found = found or (None,) * len(SYMBOLS)
            self._terms[term] = found
        return found


def _applied(function: Any, arguments: Sequence[Any]) -> Any:
    compute = _FUNCTIONS.get(function)
    if compute is None or None in arguments:
        return None
    try:
        return compute(arguments)
    except (ZeroDivisionError, OverflowError):
        return None
