"""From a model to a plan: the whole compiler behind one call."""

from py_ort.plan.compiler import CompiledModel, compile_model
from py_ort.plan.node_arg import NodeArg
from py_ort.plan.options import CompileOptions
from py_ort.plan.weights import WeightEntry, Weights

__all__ = ["CompileOptions", "CompiledModel", "NodeArg", "WeightEntry", "Weights", "compile_model"]
