"""Models to ship: `py_ort.export` writes a file that pages run without Python, and that sessions open as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.exporting.export import export as export

__all__ = ["export"]
__getattr__ = lazily(__name__, {"export": "export"})
