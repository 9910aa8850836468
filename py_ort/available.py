"""onnxruntime's module-level functions."""

from __future__ import annotations

import logging

from py_ort.exceptions import InvalidArgument
from py_ort.options import LEVELS


def get_available_providers() -> list[str]:
    """Return the providers with kernels, best first. Whether a browser has a WebGPU adapter is known once it runs."""
    return ["WebGpuExecutionProvider", "CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """Return all providers that have a name here."""
    return ["WebGpuExecutionProvider", "WebNNExecutionProvider", "WebGLExecutionProvider", "CPUExecutionProvider"]


def get_device() -> str:
    """Return "CPU-WEBGPU": what onnxruntime would call a build with both."""
    return "CPU-WEBGPU"


def set_default_logger_severity(severity: int) -> None:
    """Set the least severity of messages: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    It is the level of `logging.getLogger("py_ort")`, which may be set directly as well.
    """
    if severity not in range(len(LEVELS)):
        raise InvalidArgument(f"severity is 0 (verbose) to 4 (fatal), not {severity}")
    logging.getLogger("py_ort").setLevel(LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted for onnxruntime's sake; there is one verbose level."""
