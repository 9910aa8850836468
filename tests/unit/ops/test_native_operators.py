"""The list of native onnxruntime's operators, and the document's statements on them."""

from __future__ import annotations

from py_ort.compiler.document import document, lacking
from py_ort.compiler.native_operators import installed, native_operators
from py_ort.providers import AVAILABLE
from py_ort.providers.manifest import load_manifests


def test_the_list_is_that_of_the_installed_version() -> None:
    """If this fails: `python -m py_ort.compiler.native_operators`, then `python -m py_ort.compiler.document`."""
    assert native_operators() == installed()


def test_nothing_is_lacking() -> None:
    """Compared with native onnxruntime's CPU operators."""
    assert {domain: names for domain, names in lacking(load_manifests()).items() if names} == {}


def test_rewritten_is_said_only_of_what_becomes_other_operators() -> None:
    """A lowering that fills in attributes rewrites nothing: WebGL has no recurrent layers and no MaxUnpool."""
    lines = document(load_manifests()).splitlines()
    rows = {name: cells for name, _, *cells in (line.strip("| ").split(" | ") for line in lines if line[:2] == "| ")}
    webgl = AVAILABLE.index("webgl")
    assert {rows[name][webgl] for name in ("MaxUnpool", "LSTM", "GRU", "RNN")} == {"–"}
    assert rows["Compress"][webgl] == rows["Dropout"][webgl] == "some rewritten"
    assert set(rows["Scatter"]) == set(rows["Upsample"]) == {"rewritten"}
