"""Imports at first use: with a plan from the cache, a session needs no compiler."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from py_ort.uninterrupted import interruptible, uninterrupted


def import_whole(*modules: str) -> None:
    """Import modules, as a rule in another thread: an interrupt must not leave a package in pieces."""
    missing = any(name not in sys.modules for name in modules)

    def load() -> None:
        for name in modules:  # waits for another thread that is at it
            importlib.import_module(name)

    uninterrupted(load) if missing and interruptible() else load()


def lazily(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package.

    Args:
        package: Its `__name__`.
        where: For each public name the submodule that defines it.
    """

    def find(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"{package}.{where[name]}"
        import_whole(module)
        value = getattr(sys.modules[module], name)
        setattr(sys.modules[package], name, value)
        return value

    return find
