"""Models to ship: `py_ort.export` writes a file that pages run without Python, and that sessions open, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.exporting.checking.check import CheckReport as CheckReport
    from py_ort.exporting.checking.check import CheckRow as CheckRow
    from py_ort.exporting.checking.check import check_export as check_export
    from py_ort.exporting.export import export as export
    from py_ort.exporting.job import ExportOptions as ExportOptions
    from py_ort.exporting.page import write_page as write_page
    from py_ort.exporting.tree import TreeRow as TreeRow
    from py_ort.exporting.tree import export_tree as export_tree

__all__ = [
    "CheckReport",
    "CheckRow",
    "ExportOptions",
    "TreeRow",
    "check_export",
    "export",
    "export_tree",
    "write_page",
]
__getattr__ = lazily(
    __name__,
    {
        **dict.fromkeys(("CheckReport", "CheckRow", "check_export"), "checking.check"),
        **dict.fromkeys(("TreeRow", "export_tree"), "tree"),
        "ExportOptions": "job",
        "export": "export",
        "write_page": "page",
    },
)
