"""The list of native onnxruntime's operators, and the document's statements on them."""

from __future__ import annotations

from py_ort.compiler.document import lacking
from py_ort.compiler.native_operators import installed, native_operators
from py_ort.providers.manifest import load_manifests


def test_the_list_is_that_of_the_installed_version() -> None:
    """If this fails: `python -m py_ort.compiler.native_operators`, then `python -m py_ort.compiler.document`."""
    assert native_operators() == installed()


def test_nothing_is_lacking() -> None:
    """Compared with native onnxruntime's CPU operators."""
    assert {domain: names for domain, names in lacking(load_manifests()).items() if names} == {}
