"""Operators that the compiler computes itself, with numpy, instead of a kernel: one module per family.

The results are those of the kernels, and of native onnxruntime: tests/unit/folds compares every operator and dtype that
is declared here with both. What is not proven there has no place here. Inputs on which a kernel fails, or on which
kernels differ (NaN in Max, sums that overflow), are left to the kernel: an operator that depends on constants only is
computed once in a session anyway. The tests fail for an operator that is declared and has no cases.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from py_ort.compiler.folds.declaration import FOLDS, Fold

__all__ = ["Fold", "folds"]


@cache
def folds() -> Mapping[str, Fold]:
    """Return the folds of ONNX's operators, in their newest form, by name."""
    for module_info in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module_info.name}")
    return FOLDS
