"""Objects as notebooks show them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hostile_names import HOSTILE

from py_ort.boundary import typed_errors
from py_ort.exceptions import InternalError, NoSuchFile, PyOrtError
from py_ort.html_table import html_table
from py_ort.profiling import Trace
from py_ort.providers.placement_table import PlacedNode, Placement
from py_ort.testing import model_case


def test_texts_are_escaped_and_numbers_aligned():
    html = html_table(("a", "b"), [(1, HOSTILE)], [HOSTILE])
    assert "<img" not in html and "<script" not in html
    assert "<td style='text-align: right'>1</td>" in html and html.count("<tr>") == 2


def test_placement():
    nodes = [
        PlacedNode("a", "Det", "", "wasm", "Det", "webgpu has no kernel"),
        PlacedNode("b", "Add", "", "webgpu", "Add"),
    ]
    html = Placement(nodes, ("webgpu", "wasm"), {"webnn": "no device"})._repr_html_()
    assert "1 nodes on webgpu, 1 nodes on wasm" in html and "webnn is left out: no device" in html
    assert html.index(">Add<") < html.index(">Det<") < html.index("webgpu has no kernel")


def test_an_error_shows_the_cell_and_the_message(tmp_path):
    """Without py_ort's frames and causes, and without those of the notebook; a bug of py_ort shows all."""

    def lines(error: type[PyOrtError], work: Callable[[], object]) -> list[str]:
        with pytest.raises(error) as caught:
            exec("work()", {"work": work, "__name__": "IPython.core.interactiveshell"})
        return caught.value._render_traceback_()

    head, *frames, said = lines(NoSuchFile, lambda: model_case(tmp_path / "missing.onnx"))
    assert (head, said.partition(":")[0]) == ("Traceback (most recent call last):", "py_ort.exceptions.NoSuchFile")
    assert "no model at" in said and "missing.onnx" in said
    places = [line for line in frames if line.startswith("  File ")]  # of lines() and the lambda
    assert len(places) == 2 and all("test_notebooks.py" in place for place in places)
    assert any("model_case(tmp_path" in line for line in frames)
    bug = "".join(lines(InternalError, typed_errors("counting")(lambda: 1 // 0)))
    assert "ZeroDivisionError" in bug and "boundary.py" in bug


def test_profile():
    args = {"op_name": "Add", "provider": "CPUExecutionProvider", "node_index": "0", "run": 1}
    span = {"ph": "X", "pid": 1, "tid": 1, "cat": "Node", "name": "sum_kernel_time", "ts": 0, "dur": 1500, "args": args}
    html = Trace([span])._repr_html_()
    assert ">Add<" in html and ">1.5<" in html and ">100.0%<" in html
