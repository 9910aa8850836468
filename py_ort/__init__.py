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
    from py_ort.browser.browser_options import BrowserOptions as BrowserOptions
    from py_ort.compat import install_as_onnxruntime as install_as_onnxruntime
    from py_ort.compiler.load.metadata import ModelMetadata as ModelMetadata
    from py_ort.compiler.plan.node_arg import NodeArg as NodeArg
    from py_ort.exceptions import PyOrtError as PyOrtError
    from py_ort.exporting.checking.check import check_export as check_export
    from py_ort.exporting.export import export as export
    from py_ort.runtime.async_session import AsyncInferenceSession as AsyncInferenceSession
    from py_ort.runtime.available import disable_telemetry_events as disable_telemetry_events
    from py_ort.runtime.available import enable_telemetry_events as enable_telemetry_events
    from py_ort.runtime.available import get_all_providers as get_all_providers
    from py_ort.runtime.available import get_available_providers as get_available_providers
    from py_ort.runtime.available import get_build_info as get_build_info
    from py_ort.runtime.available import get_device as get_device
    from py_ort.runtime.available import get_version_string as get_version_string
    from py_ort.runtime.available import has_collective_ops as has_collective_ops
    from py_ort.runtime.available import preload_dlls as preload_dlls
    from py_ort.runtime.available import print_debug_info as print_debug_info
    from py_ort.runtime.available import register_execution_provider_library as register_execution_provider_library
    from py_ort.runtime.available import set_default_logger_severity as set_default_logger_severity
    from py_ort.runtime.available import set_default_logger_verbosity as set_default_logger_verbosity
    from py_ort.runtime.available import set_global_thread_pool_sizes as set_global_thread_pool_sizes
    from py_ort.runtime.available import set_seed as set_seed
    from py_ort.runtime.available import unregister_execution_provider_library as unregister_execution_provider_library
    from py_ort.runtime.inference_session import InferenceSession as InferenceSession
    from py_ort.runtime.jsep import JsepBackend as JsepBackend
    from py_ort.runtime.log_callback import set_default_logger_callback as set_default_logger_callback
    from py_ort.runtime.model_compiler import ModelCompiler as ModelCompiler
    from py_ort.runtime.options.run_options import RunOptions as RunOptions
    from py_ort.runtime.options.session_options import ExecutionMode as ExecutionMode
    from py_ort.runtime.options.session_options import ExecutionOrder as ExecutionOrder
    from py_ort.runtime.options.session_options import GraphOptimizationLevel as GraphOptimizationLevel
    from py_ort.runtime.options.session_options import SessionOptions as SessionOptions
    from py_ort.runtime.values.adapters import AdapterFormat as AdapterFormat
    from py_ort.runtime.values.adapters import LoraAdapter as LoraAdapter
    from py_ort.runtime.values.io_binding import IOBinding as IOBinding
    from py_ort.runtime.values.ort_device import OrtDevice as OrtDevice
    from py_ort.runtime.values.ort_value import OrtValue as OrtValue
    from py_ort.runtime.values.ort_value import copy_tensors as copy_tensors
    from py_ort.runtime.values.sparse_tensor import SparseTensor as SparseTensor
    from py_ort.user_kernels import UserKernel as UserKernel
    from py_ort.user_kernels import register_kernel as register_kernel
    from py_ort.user_kernels import unregister_kernel as unregister_kernel

__version__ = "0.1.0"

# Imported at first use, so that `import py_ort` costs nothing.
_WHERE = {
    "AdapterFormat": "runtime.values.adapters",
    "AsyncInferenceSession": "runtime.async_session",
    "BrowserOptions": "browser.browser_options",
    "ExecutionMode": "runtime.options.session_options",
    "ExecutionOrder": "runtime.options.session_options",
    "GraphOptimizationLevel": "runtime.options.session_options",
    "IOBinding": "runtime.values.io_binding",
    "InferenceSession": "runtime.inference_session",
    "JsepBackend": "runtime.jsep",
    "LoraAdapter": "runtime.values.adapters",
    "ModelCompiler": "runtime.model_compiler",
    "ModelMetadata": "compiler.load.metadata",
    "NodeArg": "compiler.plan.node_arg",
    "OrtDevice": "runtime.values.ort_device",
    "OrtValue": "runtime.values.ort_value",
    "PyOrtError": "exceptions",
    "RunOptions": "runtime.options.run_options",
    "SessionOptions": "runtime.options.session_options",
    "SparseTensor": "runtime.values.sparse_tensor",
    "UserKernel": "user_kernels.kernel",
    "check_export": "exporting.checking.check",
    "copy_tensors": "runtime.values.ort_value",
    "disable_telemetry_events": "runtime.available",
    "enable_telemetry_events": "runtime.available",
    "export": "exporting.export",
    "get_all_providers": "runtime.available",
    "get_available_providers": "runtime.available",
    "get_build_info": "runtime.available",
    "get_device": "runtime.available",
    "get_version_string": "runtime.available",
    "has_collective_ops": "runtime.available",
    "install_as_onnxruntime": "compat",
    "preload_dlls": "runtime.available",
    "print_debug_info": "runtime.available",
    "register_execution_provider_library": "runtime.available",
    "register_kernel": "user_kernels.registry",
    "set_default_logger_callback": "runtime.log_callback",
    "set_default_logger_severity": "runtime.available",
    "set_default_logger_verbosity": "runtime.available",
    "set_global_thread_pool_sizes": "runtime.available",
    "set_seed": "runtime.available",
    "unregister_execution_provider_library": "runtime.available",
    "unregister_kernel": "user_kernels.registry",
}
__all__ = list(_WHERE)
if not TYPE_CHECKING:  # type checkers would take any name for one of ours
    __getattr__ = lazily(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
