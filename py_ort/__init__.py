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
    from py_ort.available import get_all_providers as get_all_providers
    from py_ort.available import get_available_providers as get_available_providers
    from py_ort.available import get_device as get_device
    from py_ort.available import set_default_logger_severity as set_default_logger_severity
    from py_ort.available import set_default_logger_verbosity as set_default_logger_verbosity
    from py_ort.browser.options import BrowserOptions as BrowserOptions
    from py_ort.compat import install_as_onnxruntime as install_as_onnxruntime
    from py_ort.exceptions import PyOrtError as PyOrtError
    from py_ort.io_binding import IOBinding as IOBinding
    from py_ort.load.metadata import ModelMetadata as ModelMetadata
    from py_ort.options import ExecutionMode as ExecutionMode
    from py_ort.options import ExecutionOrder as ExecutionOrder
    from py_ort.options import GraphOptimizationLevel as GraphOptimizationLevel
    from py_ort.options import RunOptions as RunOptions
    from py_ort.options import SessionOptions as SessionOptions
    from py_ort.ort_device import OrtDevice as OrtDevice
    from py_ort.ort_value import OrtValue as OrtValue
    from py_ort.plan.node_arg import NodeArg as NodeArg
    from py_ort.session import InferenceSession as InferenceSession

__version__ = "0.1.0"

# Imported at first use, so that `import py_ort` costs nothing.
_WHERE = {
    "BrowserOptions": "browser.options",
    "ExecutionMode": "options",
    "ExecutionOrder": "options",
    "GraphOptimizationLevel": "options",
    "IOBinding": "io_binding",
    "InferenceSession": "session",
    "ModelMetadata": "load.metadata",
    "NodeArg": "plan.node_arg",
    "OrtDevice": "ort_device",
    "OrtValue": "ort_value",
    "PyOrtError": "exceptions",
    "RunOptions": "options",
    "SessionOptions": "options",
    "get_all_providers": "available",
    "get_available_providers": "available",
    "get_device": "available",
    "install_as_onnxruntime": "compat",
    "set_default_logger_severity": "available",
    "set_default_logger_verbosity": "available",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
