"""Conformance: cases from several sources, run on our providers in browsers, compared, reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.testing.case import Case as Case
    from py_ort.testing.case import DataSet as DataSet
    from py_ort.testing.case import Tolerance as Tolerance
    from py_ort.testing.sources.table import model_case as model_case

_WHERE = {"Case": "case", "DataSet": "case", "Tolerance": "case", "model_case": "sources.table"}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
