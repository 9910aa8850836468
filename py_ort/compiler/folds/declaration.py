"""Declarations: the operators of a family that the compiler can compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from py_ort.ir.rules import Rules

Arrays = Sequence[Any]
"""The contents of a node's inputs; None for one that is left out."""

INTEGERS = tuple(ir.DataType[f"{sign}INT{bits}"] for bits in (8, 16, 32, 64) for sign in ("", "U"))
WIDE_INTEGERS = tuple(t for t in INTEGERS if t.bitwidth >= 32)
FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
NUMBERS = (*FLOATS, *INTEGERS)
BOOL = (ir.DataType.BOOL,)
ANY = (*NUMBERS, *BOOL, ir.DataType.STRING)


@dataclass(frozen=True)
class Fold:
    """How one operator is computed.

    Attributes:
        dtypes: The dtypes of the input `of` that `compute` supports.
        compute: Gives the outputs of a node with these inputs (a tuple if there are several); None, or one of the
            errors that numpy has for wrong inputs: the kernel shall have it.
        of: The index of the input whose dtype is checked.
    """

    dtypes: Sequence[ir.DataType]
    compute: Callable[[ir.Node, Arrays], Any]
    of: int = 0

    def __call__(self, node: ir.Node, arrays: Arrays) -> tuple[np.ndarray, ...] | None:
        """Compute a node's outputs; None where that is the kernel's part."""
        value = node.inputs[self.of] if self.of < len(node.inputs) else None
        if value is None or value.const_value is None or value.const_value.dtype not in self.dtypes:
            return None
        try:
            with np.errstate(all="ignore"):
                found = self.compute(node, arrays)
        except (ValueError, IndexError, TypeError, ArithmeticError):
            return None
        if found is None:
            return None
        return tuple(_as_array(item) for item in (found if isinstance(found, tuple) else (found,)))


def _as_array(item: Any) -> np.ndarray:
    """A single element may be a numpy scalar instead of an array."""
    return np.asarray(item, object) if isinstance(item, (str, bytes)) else np.asarray(item)


FOLDS = Rules[Fold]()


def fold(
    *op_types: str, dtypes: Sequence[ir.DataType], of: int = 0
) -> Callable[[Callable[[ir.Node, Arrays], Any]], Callable[[ir.Node, Arrays], Any]]:
    """Declare how operators are computed; see `Fold`."""

    def declare(compute: Callable[[ir.Node, Arrays], Any]) -> Callable[[ir.Node, Arrays], Any]:
        FOLDS(*op_types)(Fold(dtypes, compute, of))
        return compute

    return declare


def fold_by(function: Callable[..., Any], op_type: str, dtypes: Sequence[ir.DataType]) -> None:
    """Declare numpy's function of all inputs, which gives the elements that the operator does."""
    fold(op_type, dtypes=dtypes)(lambda node, inputs: function(*inputs))


def fold_wide(function: Callable[..., Any], op_type: str, dtypes: Sequence[ir.DataType]) -> None:
    """Declare a function that is computed in float64 and rounded once."""
    fold(op_type, dtypes=dtypes)(lambda node, inputs: function(wide(inputs[0])).astype(inputs[0].dtype))


def is_float(contents: np.ndarray) -> bool:
    """Return True if the elements are floats, bfloat16 included."""
    return contents.dtype.kind == "f" or contents.dtype == ml_dtypes.bfloat16


def has_nan(*arrays: np.ndarray) -> bool:
    """Return True if an array has a NaN: kernels compare NaN in different ways."""
    return any(is_float(item) and bool(np.isnan(item).any()) for item in arrays)


def wide(contents: np.ndarray) -> np.ndarray:
    """Return floats as float64, in which sums and functions are computed before they are rounded once."""
    return contents.astype(np.float64) if is_float(contents) else contents
