"""Placement as a table: in a terminal, in a notebook, by operator and by node."""

from __future__ import annotations

from py_ort.providers import PlacedNode, Placement

PLACED = Placement(
    [
        PlacedNode("a", "Relu", "", "webgpu", "Relu", "", ("first",)),
        PlacedNode("b", "Relu", "", "webgpu", "Relu"),
        PlacedNode("c", "Det", "", "wasm", "Det", "webgpu: no kernel", ("third", "fourth")),
    ],
    ("webgpu", "wasm"),
)


def test_text() -> None:
    assert repr(PLACED) == str(PLACED)
    assert str(PLACED).splitlines() == [
        "nodes  operator  provider  why",
        "    2  Relu      webgpu",
        "    1  Det       wasm      webgpu: no kernel",
        "2 nodes on webgpu, 1 nodes on wasm",
    ]


def test_rows() -> None:
    assert PLACED.by_operator() == [(2, "Relu", "webgpu", ""), (1, "Det", "wasm", "webgpu: no kernel")]
    assert PLACED.by_node() == [
        ("first", "Relu", "webgpu", ""),
        ("b", "Relu", "webgpu", ""),
        ("third, fourth", "Det", "wasm", "webgpu: no kernel"),
    ]


def test_json() -> None:
    assert Placement.from_json(PLACED.to_json()) == PLACED
