"""From a model to a plan: the whole compiler behind one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.compiler.compile import CompiledModel as CompiledModel
    from py_ort.compiler.compile import compile_model as compile_model
    from py_ort.compiler.compile_options import CompileOptions as CompileOptions
    from py_ort.compiler.plan.node_arg import NodeArg as NodeArg
    from py_ort.compiler.plan.weights import WeightEntry as WeightEntry
    from py_ort.compiler.plan.weights import Weights as Weights

_WHERE = {
    "CompileOptions": "compile_options",
    "CompiledModel": "compile",
    "NodeArg": "plan.node_arg",
    "WeightEntry": "plan.weights",
    "Weights": "plan.weights",
    "compile_model": "compile",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
