"""`install_as_onnxruntime`: third-party code that imports onnxruntime runs in the browser, unchanged."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import weakref
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import py_ort
from py_ort import exceptions
from py_ort.browser.browser_options import BrowserOptions
from py_ort.compat import native_names
from py_ort.runtime.available import API_VERSION, of_browser
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.native.device import NativeDevice
from py_ort.runtime.native.native_session import NativeSession
from py_ort.runtime.values.native_binding import NativeBinding

#: The modules of onnxruntime that are ours. Its others (backend, quantization, transformers, tools, datasets) are
#: Python on top of these, and come from the installed package.
_COLLECTION = "capi.onnxruntime_inference_collection"
_SUBMODULES = (
    "capi",
    "capi._pybind_state",
    _COLLECTION,
    "capi.onnxruntime_pybind11_state",
)
#: Ours where no onnxruntime is installed.
_BACKEND = ("backend", "backend.backend")


class Installed:
    """The installation of py_ort as onnxruntime. Use it as a context manager, or call `uninstall`.

    Attributes:
        module: The module that now answers to `import onnxruntime`.
    """

    def __init__(self, module: ModuleType, replaced: dict[str, ModuleType]) -> None:
        self.module = module
        self._replaced = replaced
        self._sessions: list[weakref.ref[InferenceSession]] = []

    @property
    def sessions(self) -> list[InferenceSession]:
        """The sessions that were made through the module and still live, in order."""
        return [session for ref in self._sessions if (session := ref()) is not None]

    def uninstall(self) -> None:
        """Restore the modules that were there before."""
        if sys.modules.get("onnxruntime") is self.module:
            for name in _module_names():
                sys.modules.pop(name, None)
            sys.modules.update(self._replaced)

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *_: object) -> None:
        self.uninstall()


def install_as_onnxruntime(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
    *,
    browser: str | BrowserOptions | None = None,
    launcher: str | None = None,
) -> Installed:
    """Make `import onnxruntime` give py_ort, in this process, from now on.

    Call it before the library that uses onnxruntime is imported: names that were already imported from the real
    onnxruntime stay as they are. Where the package onnxruntime is installed, its folders of Python code
    (`onnxruntime.backend`, `.quantization`, `.transformers`, `.tools`, `.datasets`) are imported from there, on top
    of py_ort.

    Args:
        providers: Used for every session, in place of the providers that third-party code asks for.
            None: the providers asked for, with "CPUExecutionProvider" as the wasm provider.
        browser: For every session; as for `InferenceSession`.
        launcher: Likewise.

    Returns:
        A handle that lists the sessions made, and undoes the installation.
    """
    installed: Installed

    class _InferenceSession(InferenceSession):
        def __init__(
            self,
            path_or_bytes: Any,
            sess_options: Any = None,
            providers: Any = None,
            provider_options: Any = None,
            **options: Any,
        ) -> None:
            options.setdefault("browser", browser)
            options.setdefault("launcher", launcher)
            if given is not None:
                providers, provider_options = given, None
            super().__init__(path_or_bytes, sess_options, providers, provider_options, **options)
            installed._sessions.append(weakref.ref(self))

    given = None if providers is None else list(providers)
    _InferenceSession.__name__ = _InferenceSession.__qualname__ = "InferenceSession"
    module = ModuleType("onnxruntime", "py_ort, installed as onnxruntime")
    names = {name: getattr(py_ort, name) for name in py_ort.__all__}
    names |= {name: getattr(exceptions, name) for name in exceptions.__all__}
    names |= native_names.of_package()
    names |= of_browser(browser, launcher)
    names |= {
        "InferenceSession": _InferenceSession,
        "SessionIOBinding": NativeBinding,
        "__version__": API_VERSION,
        "version": API_VERSION,
        "package_name": "onnxruntime",
        "cuda_version": "",
        "import_capi_exception": None,
    }
    folder = _installed_folder()
    _fill(module, names, folder)
    replaced = {name: sys.modules.pop(name) for name in _module_names()}
    sys.modules["onnxruntime"] = module
    native = names | native_names.of_native_module()
    native |= {
        "InferenceSession": type("InferenceSession", (NativeSession,), {"session_class": _InferenceSession}),
        "OrtDevice": NativeDevice,
    }
    collection = names | native_names.of_inference_collection() | {"Session": _InferenceSession}
    for name in _SUBMODULES if folder is not None else (*_SUBMODULES, *_BACKEND):
        child = ModuleType(f"onnxruntime.{name}")
        _fill(
            child,
            {"__getattr__": _of_backend} if name in _BACKEND else collection if name == _COLLECTION else native,
            folder and folder.joinpath(*name.split(".")),
        )
        sys.modules[child.__name__] = child
        parent, _, own = child.__name__.rpartition(".")
        setattr(sys.modules[parent], own, child)
    installed = Installed(module, replaced)
    return installed


_SPECIAL = ("__version__", "__getattr__")


def _of_backend(name: str) -> Any:
    """Import ONNX's backend interface at its first use."""
    return getattr(importlib.import_module("py_ort.backend"), name)


def _installed_folder() -> Path | None:
    """The folder of the installed package onnxruntime; its native library is not loaded."""
    loaded = sys.modules.get("onnxruntime")
    found = loaded.__spec__ if loaded is not None else importlib.util.find_spec("onnxruntime")
    places = found.submodule_search_locations if found is not None else None
    return Path(next(iter(places))) if places else None


def _fill(module: ModuleType, names: Mapping[str, Any], folder: Path | None) -> None:
    """Make a package of a module: `import onnxruntime.capi` and `importlib.util.find_spec` work."""
    module.__dict__.update({name: value for name, value in names.items() if name in _SPECIAL or name[:2] != "__"})
    module.__file__ = __file__
    module.__path__ = [] if folder is None else [str(folder)]
    module.__spec__ = ModuleSpec(module.__name__, None, origin=__file__, is_package=True)
    module.__spec__.submodule_search_locations = module.__path__


def _module_names() -> list[str]:
    return [name for name in sys.modules if name == "onnxruntime" or name.startswith("onnxruntime.")]
