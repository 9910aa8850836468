"""All passes, by name."""

from __future__ import annotations

import importlib
import pkgutil

import py_ort.compiler.passes
from py_ort.compiler.layout import Nhwc
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.rewrite import Rewrite


def passes_found() -> dict[str, type[Pass] | Rewrite]:
    """Return each class of a pass and each rewrite, found in its module."""
    found: dict[str, type[Pass] | Rewrite] = {"nhwc": Nhwc}
    for module in pkgutil.walk_packages(py_ort.compiler.passes.__path__, "py_ort.compiler.passes."):
        for each in vars(importlib.import_module(module.name)).values():
            if isinstance(each, Rewrite):
                found[each.name] = each
            elif _is_pass(each, module.name):
                found[module.name.rpartition(".")[2]] = each
    return found


def _is_pass(each: object, module: str) -> bool:
    """Return True for a class of the module that is a pass; common bases of several passes are not."""
    if not isinstance(each, type) or not issubclass(each, Pass) or each.__module__ != module:
        return False
    return each.call is not Pass.call and each is not Rewrite
