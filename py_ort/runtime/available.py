"""onnxruntime's module-level functions."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

from py_ort.boundary import public_function
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.log import LEVELS

#: The release of onnxruntime whose Python API this is; some libraries ask for it.
API_VERSION = "1.31.1"
_log = logging.getLogger("py_ort")
_seed: int | None = None


def get_available_providers() -> list[str]:
    """Return the providers with kernels, best first. Whether a browser has a WebGPU adapter is known once it runs."""
    return ["WebGpuExecutionProvider", "CPUExecutionProvider"]


def get_all_providers() -> list[str]:
    """Return all providers that have a name here."""
    return ["WebGpuExecutionProvider", "WebNNExecutionProvider", "WebGLExecutionProvider", "CPUExecutionProvider"]


def get_device() -> str:
    """Return "CPU-WEBGPU": what onnxruntime would call a build with both."""
    return "CPU-WEBGPU"


@public_function
def set_default_logger_severity(severity: int) -> None:
    """Set the least severity of messages: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    It is the level of `logging.getLogger("py_ort")`, which may be set directly as well.
    """
    logging.getLogger("py_ort").setLevel(level_of(severity))


def level_of(severity: int) -> int:
    """Return the level of Python's logging for a severity.

    Raises:
        InvalidArgument: There is no such severity.
    """
    if severity not in range(len(LEVELS)):
        raise InvalidArgument(f"severity is 0 (verbose) to 4 (fatal), not {severity}")
    return LEVELS[severity]


@public_function
def set_default_logger_verbosity(verbosity: int) -> None:
    """There is one verbose level: any other number than 0 gets a warning."""
    if verbosity:
        _log.warning("set_default_logger_verbosity(%d) has no effect: there is one verbose level", verbosity)


@public_function
def set_seed(seed: int) -> None:
    """Set the seed of random operators without one of their own, in the sessions made from now on.

    Such an operator then gives the same numbers in every run.
    """
    global _seed
    _seed = int(seed)


def seed() -> int | None:
    """Return what `set_seed` was given."""
    return _seed


def get_version_string() -> str:
    """Return the release of onnxruntime whose Python API this is."""
    return API_VERSION


def get_build_info() -> str:
    """Return what this is, in words."""
    import py_ort

    return f"py_ort {py_ort.__version__} Build Info: the Python API of onnxruntime {API_VERSION}, for browsers"


def print_debug_info() -> None:
    """Print versions and providers, for reports of bugs."""
    import platform

    import numpy
    import onnx

    print(get_build_info())
    print(f"Python {platform.python_version()} on {platform.platform()}")
    print(f"numpy {numpy.__version__}, onnx {onnx.__version__}; providers: {', '.join(get_available_providers())}")


def has_collective_ops() -> bool:
    """Return False: a page is alone."""
    return False


def disable_telemetry_events() -> None:
    """Nothing to do: nothing is ever collected."""


def enable_telemetry_events() -> None:
    """Nothing to do: nothing is ever collected, whoever asks for it."""


@public_function
def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """A page has no global threads: other numbers than 0 and 1 get a warning."""
    if max(intra_op_num_threads, inter_op_num_threads) > 1:
        _log.warning("set_global_thread_pool_sizes has no effect: a page has no global threads")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Any = None) -> None:
    """Nothing to do: a browser brings what it needs.

    Args:
        cuda: Not read, as the others: native onnxruntime's.
        cudnn: Not read.
        msvc: Not read.
        directory: Not read.
    """


def register_execution_provider_library(registration_name: str, library_path: str) -> NoReturn:
    """Refuse: native libraries do not run in a browser."""
    raise NotImplemented(f"{library_path}: native libraries do not run in a browser")


def unregister_execution_provider_library(registration_name: str) -> NoReturn:
    """Refuse: there can be none."""
    raise InvalidArgument(f"no library was registered as {registration_name!r}")
