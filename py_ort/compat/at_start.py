"""`PY_ORT_INSTALL`: a whole process, unedited, with py_ort in onnxruntime's place.

The package brings a line for `site` (py_ort_install.pth) that calls `expect` when Python starts with the variable set.
It costs nothing until a program imports onnxruntime: then `install_as_onnxruntime` is called first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

VARIABLE = "PY_ORT_INSTALL"
_OFF = ("", "0")
_AS_ASKED = "1"


class _Installer:
    """Finds `onnxruntime` by installing py_ort in its place; the import gets the module made by that."""

    def __init__(self, providers: Sequence[str] | None) -> None:
        self._providers = providers

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "onnxruntime":
            return None
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # loaders are what has the two methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        # Not while searching: the search holds the import lock, and the installation imports in another thread.
        # And not again: many a library searches first, to know whether it can import, and installing searches itself.
        from py_ort.compat.install import install_as_onnxruntime

        sys.meta_path.remove(self)
        module = install_as_onnxruntime(self._providers).module
        spec.submodule_search_locations = list(module.__path__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is complete."""


def expect(wanted: str | None = None) -> None:
    """Have the first `import onnxruntime` of this process give py_ort.

    Args:
        wanted: "1": sessions run on the providers they ask for; or providers for all of them, with commas
            ("webgpu,wasm"); "" or "0": no change. Default: the variable PY_ORT_INSTALL.
    """
    wanted = os.environ.get(VARIABLE, "") if wanted is None else wanted
    if wanted in _OFF or any(isinstance(finder, _Installer) for finder in sys.meta_path):
        return
    providers = None if wanted == _AS_ASKED else [name.strip() for name in wanted.split(",")]
    sys.meta_path.insert(0, _Installer(providers))
