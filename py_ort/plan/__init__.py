"""From a model to a plan: the whole compiler behind one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.plan.compiler import CompiledModel as CompiledModel
    from py_ort.plan.compiler import compile_model as compile_model
    from py_ort.plan.node_arg import NodeArg as NodeArg
    from py_ort.plan.options import CompileOptions as CompileOptions
    from py_ort.plan.weights import WeightEntry as WeightEntry
    from py_ort.plan.weights import Weights as Weights

_WHERE = {
    "CompileOptions": "options",
    "CompiledModel": "compiler",
    "NodeArg": "node_arg",
    "WeightEntry": "weights",
    "Weights": "weights",
    "compile_model": "compiler",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
