"""Objects as notebooks show them."""

from __future__ import annotations

from hostile_names import HOSTILE

from py_ort.html_table import html_table
from py_ort.profiling import Trace
from py_ort.providers.placement_table import PlacedNode, Placement


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


def test_profile():
    args = {"op_name": "Add", "provider": "CPUExecutionProvider", "node_index": "0", "run": 1}
    span = {"ph": "X", "pid": 1, "tid": 1, "cat": "Node", "name": "sum_kernel_time", "ts": 0, "dur": 1500, "args": args}
    html = Trace([span])._repr_html_()
    assert ">Add<" in html and ">1.5<" in html and ">100.0%<" in html
