"""Options of sessions and of runs, named as in onnxruntime."""

from __future__ import annotations

from py_ort.runtime.options.run_options import RunOptions
from py_ort.runtime.options.session_options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, SessionOptions

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]
