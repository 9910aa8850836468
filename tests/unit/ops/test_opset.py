"""The opset to which graphs are rewritten is a constant of the newest permitted onnx; newer ones are ignored."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import onnx
import pytest
from graphs import parse
from packaging.requirements import Requirement
from packaging.version import Version

from py_ort.compiler import compile_model
from py_ort.exceptions import NotImplemented
from py_ort.ir.schemas import CANONICAL_OPSET

_OLDEST = Path(__file__).parents[3] / ".ci/onnx121.txt"


def test_the_bounds_of_onnx_are_those_of_the_opset() -> None:
    """A change of one needs a change of the other."""
    needed = [Requirement(each) for each in importlib.metadata.requires("py_ort") or ()]
    (bounds,) = [each.specifier for each in needed if each.name == "onnx" and each.marker is None]
    limits = {each.operator: Version(each.version) for each in bounds}
    assert set(limits) == {">=", "<"} and onnx.__version__ in bounds
    newest = Version(onnx.__version__).release[:2] == (limits["<"].major, limits["<"].minor - 1)
    assert onnx.defs.onnx_opset_version() == CANONICAL_OPSET if newest else onnx.defs.onnx_opset_version() > 0


def test_the_oldest_onnx_is_the_one_that_is_tested() -> None:
    """`make onnx121` runs the unit tests with it."""
    project = (_OLDEST.parents[1] / "pyproject.toml").read_text()
    (oldest,) = re.findall(r'^  "onnx>=([0-9.]+),', project, re.MULTILINE)
    assert re.search(rf"^onnx=={re.escape(oldest)}\.\d+$", _OLDEST.read_text(), re.MULTILINE)


def test_models_newer_than_the_installed_onnx_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", opset=21)
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 20)
    with pytest.raises(NotImplemented, match=r"has opset 21 of ai.onnx, and the installed onnx .* up to 20: upgrade"):
        compile_model(model.SerializeToString(), providers=["wasm"])
