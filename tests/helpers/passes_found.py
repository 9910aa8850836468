"""The passes that there are, by name."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import py_ort.compiler.passes
from py_ort.compiler.layout import Nhwc
from py_ort.compiler.passes.pass_base import Pass


def passes_found() -> dict[str, type[Pass]]:
    """Return each class of a pass, found in its module."""
    found: dict[str, type[Pass]] = {"nhwc": Nhwc}
    for module in pkgutil.walk_packages(py_ort.compiler.passes.__path__, "py_ort.compiler.passes."):
        for _, each in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            # What several passes are made of does nothing by itself.
            if issubclass(each, Pass) and each.call is not Pass.call and each.__module__ == module.name:
                found[module.name.rpartition(".")[2]] = each
    return found
