"""From a model to a plan, for those who want one without a session: see `py_ort.compiler`."""

from py_ort.compiler import CompiledModel, CompileOptions, NodeArg, compile_model

__all__ = ["CompileOptions", "CompiledModel", "NodeArg", "compile_model"]
