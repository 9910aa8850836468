"""Names of onnxruntime's API that exist, so that code that mentions them runs, and refuse to work."""

from __future__ import annotations

from typing import Any, NoReturn

from py_ort.exceptions import NotImplemented


class _Refusing(type):
    """A class of which nothing can be made, nor asked."""

    def __call__(cls, *args: Any, **options: Any) -> NoReturn:
        raise NotImplemented(f"{cls.__name__}: {cls.__doc__}")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplemented(f"{cls.__name__}.{name}: {cls.__doc__}")


def refusing(name: str, reason: str) -> type:
    """Make such a class; `reason` is what it says to whoever uses it."""
    return _Refusing(name, (), {"__doc__": reason})
