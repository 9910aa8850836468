"""ONNX models in real browsers, from Python, behind onnxruntime's API.

    import py_ort
    session = py_ort.InferenceSession("model.onnx", providers=["webgpu", "wasm"])
    outputs = session.run(None, {"x": x})
    print(session.placement())

The names are onnxruntime's. Ours besides: `InferenceSession.placement`, `.stats`, `.close`, `browser=` and `launcher=`
(see `BrowserOptions`), and `install_as_onnxruntime`, which makes other people's code run here unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.available import disable_telemetry_events as disable_telemetry_events
    from py_ort.available import enable_telemetry_events as enable_telemetry_events
    from py_ort.available import get_all_providers as get_all_providers
    from py_ort.available import get_available_providers as get_available_providers
    from py_ort.available import get_build_info as get_build_info
    from py_ort.available import get_device as get_device
    from py_ort.available import get_version_string as get_version_string
    from py_ort.available import has_collective_ops as has_collective_ops
    from py_ort.available import preload_dlls as preload_dlls
    from py_ort.available import print_debug_info as print_debug_info
    from py_ort.available import register_execution_provider_library as register_execution_provider_library
    from py_ort.available import set_default_logger_severity as set_default_logger_severity
    from py_ort.available import set_default_logger_verbosity as set_default_logger_verbosity
    from py_ort.available import set_global_thread_pool_sizes as set_global_thread_pool_sizes
    from py_ort.available import set_seed as set_seed
    from py_ort.available import unregister_execution_provider_library as unregister_execution_provider_library
    from py_ort.browser.options import BrowserOptions as BrowserOptions
    from py_ort.compat import install_as_onnxruntime as install_as_onnxruntime
    from py_ort.compiler.load.metadata import ModelMetadata as ModelMetadata
    from py_ort.compiler.plan.node_arg import NodeArg as NodeArg
    from py_ort.exceptions import PyOrtError as PyOrtError
    from py_ort.jsep import JsepBackend as JsepBackend
    from py_ort.options.run_options import RunOptions as RunOptions
    from py_ort.options.session_options import ExecutionMode as ExecutionMode
    from py_ort.options.session_options import ExecutionOrder as ExecutionOrder
    from py_ort.options.session_options import GraphOptimizationLevel as GraphOptimizationLevel
    from py_ort.options.session_options import SessionOptions as SessionOptions
    from py_ort.session import InferenceSession as InferenceSession
    from py_ort.sessions.async_session import AsyncInferenceSession as AsyncInferenceSession
    from py_ort.unsupported import ModelCompiler as ModelCompiler
    from py_ort.user_kernels import UserKernel as UserKernel
    from py_ort.user_kernels import register_kernel as register_kernel
    from py_ort.user_kernels import unregister_kernel as unregister_kernel
    from py_ort.values.adapters import AdapterFormat as AdapterFormat
    from py_ort.values.adapters import LoraAdapter as LoraAdapter
    from py_ort.values.io_binding import IOBinding as IOBinding
    from py_ort.values.ort_device import OrtDevice as OrtDevice
    from py_ort.values.ort_value import OrtValue as OrtValue
    from py_ort.values.ort_value import copy_tensors as copy_tensors
    from py_ort.values.sparse_tensor import SparseTensor as SparseTensor

__version__ = "0.1.0"

# Imported at first use, so that `import py_ort` costs nothing.
_WHERE = {
    "AdapterFormat": "values.adapters",
    "AsyncInferenceSession": "sessions.async_session",
    "BrowserOptions": "browser.options",
    "ExecutionMode": "options.session_options",
    "ExecutionOrder": "options.session_options",
    "GraphOptimizationLevel": "options.session_options",
    "IOBinding": "values.io_binding",
    "InferenceSession": "session",
    "JsepBackend": "jsep",
    "LoraAdapter": "values.adapters",
    "ModelCompiler": "unsupported",
    "ModelMetadata": "compiler.load.metadata",
    "NodeArg": "compiler.plan.node_arg",
    "OrtDevice": "values.ort_device",
    "OrtValue": "values.ort_value",
    "PyOrtError": "exceptions",
    "RunOptions": "options.run_options",
    "SessionOptions": "options.session_options",
    "SparseTensor": "values.sparse_tensor",
    "UserKernel": "user_kernels.kernel",
    "copy_tensors": "values.ort_value",
    "disable_telemetry_events": "available",
    "enable_telemetry_events": "available",
    "get_all_providers": "available",
    "get_available_providers": "available",
    "get_build_info": "available",
    "get_device": "available",
    "get_version_string": "available",
    "has_collective_ops": "available",
    "install_as_onnxruntime": "compat",
    "preload_dlls": "available",
    "print_debug_info": "available",
    "register_execution_provider_library": "available",
    "register_kernel": "user_kernels.registry",
    "set_default_logger_severity": "available",
    "set_default_logger_verbosity": "available",
    "set_global_thread_pool_sizes": "available",
    "set_seed": "available",
    "unregister_execution_provider_library": "available",
    "unregister_kernel": "user_kernels.registry",
}
__all__ = list(_WHERE)
if not TYPE_CHECKING:  # type checkers would take any name for one of ours
    __getattr__ = lazily(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
