"""Nodes in any order, as accepted by onnxruntime; errors name nodes that wait for each other."""

from __future__ import annotations

import pytest
from graphs import compiled, parse
from onnx import helper

from py_ort.compiler import CompiledModel
from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import all_graphs


def orders(result: CompiledModel) -> list[list[str]]:
    return [[node.op_type for node in graph] for graph in all_graphs(result.model.graph)]


def test_nodes_are_sorted_and_otherwise_keep_their_places() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Sin(c)  c = Cos(b)  b = Neg(a)  a = Abs(x) }")
    assert orders(compiled(model, level="disabled")) == [["Abs", "Neg", "Cos", "Sin"]]


BRANCHES = """g (float[2] x, bool k) => (float[2] y) {
    y = If(k) <
        then_branch = t () => (float[2] ty) { ty = Sin(ta)  ta = Neg(late) },
        else_branch = e () => (float[2] ey) { ey = Cos(late) }
    >
    late = Abs(x)
}"""


def test_branches_are_sorted_and_what_they_read_comes_first() -> None:
    assert orders(compiled(parse(BRANCHES), level="disabled")) == [["Abs", "If"], ["Neg", "Sin"], ["Cos"]]


def test_functions_are_sorted() -> None:
    nodes = [helper.make_node("Sin", ["r"], ["q"]), helper.make_node("Abs", ["p"], ["r"])]
    model = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    model.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="own"))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(helper.make_function("own", "F", ["p"], ["q"], nodes, [helper.make_opsetid("", 17)]))
    assert orders(compiled(model, level="disabled")) == [["Abs", "Sin"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("g (float[2] x) => (float[2] y) { b = Abs(x) a = Add(b, c) c = Sin(d) d = Cos(a) y = Neg(d) }", "acd"),
        ("g (float[2] x) => (float[2] y) { y = Add(x, y) }", "y"),
        (
            """g (float[2] x, bool k) => (float[2] y) {
                y = If(k) <
                    then_branch = t () => (float[2] ty) { ty = Sin(z) },
                    else_branch = e () => (float[2] ey) { ey = Cos(x) }
                >
                z = Neg(y)
            }""",
            "yz",
        ),
        (
            """g (float[2] x, bool k) => (float[2] y) {
                y = If(k) <
                    then_branch = t () => (float[2] p) { p = Sin(q) q = Sin(p) },
                    else_branch = e () => (float[2] ey) { ey = Cos(x) }
                >
            }""",
            "pq",
        ),
    ],
    ids=["three", "itself", "through a branch", "in a branch"],
)
def test_a_circle_is_named(text: str, names: str) -> None:
    model = parse(text)
    for nodes in (model.graph.node, *(item.g.node for node in model.graph.node for item in node.attribute)):
        for node in nodes:
            node.name = f"node_{node.output[0]}"
    with pytest.raises(InvalidGraph, match="wait for each other's outputs") as caught:
        compiled(model)
    text = str(caught.value)
    assert sorted(part.strip() for part in text.split(": ")[-1].split("\n")[0].split(",")) == [
        f"node_{name}" for name in names
    ]
