"""onnxruntime's module-level functions."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

from py_ort.boundary import public_function
from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.log import LEVELS
from py_ort.providers import PROVIDERS, onnxruntime_name
from py_ort.runtime.local_browser import LocalBrowser

#: Release of onnxruntime with this Python API; some libraries read it.
API_VERSION = "1.31.1"
_log = logging.getLogger("py_ort")
_seed: int | None = None


def get_available_providers() -> list[str]:
    """Return the providers that run in this machine's browser, best first.

    The first call in a process starts the browser, which later sessions use. With the variable PY_ORT_PROBE=0 no
    browser is started, and the list has all providers with kernels.
    """
    return LocalBrowser().providers()


def get_all_providers() -> list[str]:
    """Return the names of all providers."""
    return [onnxruntime_name(name) for name in PROVIDERS]


def get_device() -> str:
    """Return onnxruntime's name of a build for this machine's browser: "CPU-WEBGPU", "CPU-WEBGL", "CPU".

    See `get_available_providers`.
    """
    return LocalBrowser().device()


@public_function
def set_default_logger_severity(severity: int) -> None:
    """Set the least severity of messages: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.

    The severity is the level of `logging.getLogger("py_ort")`, which programs may also set directly.
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
    """Warn about any number but 0: there is only one verbose level."""
    if verbosity:
        _log.warning("set_default_logger_verbosity(%d) has no effect: there is one verbose level", verbosity)


@public_function
def set_seed(seed: int) -> None:
    """Set the seed of random operators without one of their own, in the sessions made from now on.

    Such an operator then returns the same numbers in every run.
    """
    global _seed
    _seed = int(seed)


def seed() -> int | None:
    """Return the seed of `set_seed`, if it was called."""
    return _seed


def get_version_string() -> str:
    """Return the release of onnxruntime with this Python API."""
    return API_VERSION


def get_build_info() -> str:
    """Return py_ort's version, the browser and its adapter, in words; see `get_available_providers`."""
    return _build_info(LocalBrowser())


def of_browser(browser: str | BrowserOptions | None, launcher: str | None) -> dict[str, Any]:
    """Return the functions above for a browser, by name."""
    here = LocalBrowser(browser, launcher)
    return {
        "get_available_providers": here.providers,
        "get_build_info": lambda: _build_info(here),
        "get_device": here.device,
    }


def _build_info(here: LocalBrowser) -> str:
    import py_ort

    where = here.words()
    words = f"py_ort {py_ort.__version__} Build Info: the Python API of onnxruntime {API_VERSION}, for browsers"
    return f"{words}; {where}" if where else words


def print_debug_info() -> None:
    """Print versions and providers, for bug reports."""
    import platform

    import numpy
    import onnx

    print(get_build_info())
    print(f"Python {platform.python_version()} on {platform.platform()}")
    print(f"numpy {numpy.__version__}, onnx {onnx.__version__}; providers: {', '.join(get_available_providers())}")


def has_collective_ops() -> bool:
    """Return False: pages do not communicate with each other."""
    return False


def disable_telemetry_events() -> None:
    """Do nothing: py_ort collects nothing."""


def enable_telemetry_events() -> None:
    """Do nothing: py_ort collects nothing."""


@public_function
def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Warn about numbers above 1: a page has no global threads."""
    if max(intra_op_num_threads, inter_op_num_threads) > 1:
        _log.warning("set_global_thread_pool_sizes has no effect: a page has no global threads")


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: Any = None) -> None:
    """Do nothing: a browser includes its libraries.

    Args:
        cuda: Not read.
        cudnn: Not read.
        msvc: Not read.
        directory: Not read.
    """


def register_execution_provider_library(registration_name: str, library_path: str) -> NoReturn:
    """Refuse: native libraries do not run in a browser."""
    raise NotImplemented(f"{library_path}: native libraries do not run in a browser")


def unregister_execution_provider_library(registration_name: str) -> NoReturn:
    """Refuse: no library can be registered."""
    raise InvalidArgument(f"no library was registered as {registration_name!r}")
