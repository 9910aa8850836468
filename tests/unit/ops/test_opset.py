"""The opset that graphs are rewritten to is a constant; the installed onnx must have it, and no newer one counts."""

from __future__ import annotations

import importlib.metadata

import onnx
from packaging.requirements import Requirement

from py_ort.ir.schemas import CANONICAL_OPSET


def test_the_bounds_of_onnx_are_those_of_the_opset() -> None:
    """Whoever raises one is told of the other."""
    assert onnx.defs.onnx_opset_version() == CANONICAL_OPSET
    needed = [Requirement(each) for each in importlib.metadata.requires("py_ort") or ()]
    (bounds,) = [each.specifier for each in needed if each.name == "onnx" and each.marker is None]
    assert {each.operator for each in bounds} == {">=", "<"} and onnx.__version__ in bounds
