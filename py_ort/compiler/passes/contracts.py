"""Conditions on models that passes need or promise. Each raises AssertionError that says which node breaks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from py_ort.ir.graph import all_graphs, all_nodes, subgraphs
from py_ort.ir.operators import NHWC
from py_ort.ir.schemas import CANONICAL_OPSET


def check_well_formed(model: ir.Model) -> None:
    """Check that values are made before they are read, in their graph or an outer one; check types of constants."""
    _check_graph(model.graph, set())


def _check_graph(graph: ir.Graph, around: set[ir.Value]) -> None:
    known = around | set(graph.inputs) | set(graph.initializers.values())
    for name, value in graph.initializers.items():
        tensor = value.const_value
        assert tensor is not None, f"initializer {name} has no contents"
        same = value.dtype is None or (value.dtype == tensor.dtype and value.shape == tensor.shape)
        assert same, f"initializer {name} of {tensor.dtype}{tensor.shape} is said to be {value.dtype}{value.shape}"
    for node in graph:
        for i, read in enumerate(node.inputs):
            assert read is None or read in known, f"{called(node)} reads input {i} ({read.name}) before it is made"
        for subgraph in subgraphs(node):
            _check_graph(subgraph, known)
        known.update(node.outputs)
    for output in graph.outputs:
        assert output in known, f"nothing makes the output {output.name}"


def check_canonical(model: ir.Model) -> None:
    """Every node has its newest opset's form, and no function of the model is left."""
    assert model.opset_imports.get("") == CANONICAL_OPSET, f"opset {model.opset_imports.get('')} is not the newest"
    assert not model.functions, f"functions of the model are left: {list(model.functions)}"
    for node in all_nodes(model.graph):
        assert node.version is None, f"{called(node)} has the form of opset {node.version}"


def check_channels_first(model: ir.Model) -> None:
    """No node works on channels last yet."""
    for node in all_nodes(model.graph):
        assert node.domain != NHWC, f"{called(node)} is laid out already"


def check_placed(model: ir.Model, ask: Callable[[ir.Node], Any]) -> None:
    """Each node has a place that `ask` can tell."""
    for node in all_nodes(model.graph):
        try:
            ask(node)
        except KeyError:
            raise AssertionError(f"{called(node)} has no place yet") from None


def check_alive(model: ir.Model) -> None:
    """Everything is read: each node by its results, each constant."""
    for graph in all_graphs(model.graph):
        for node in graph:
            assert any(o.uses() or o.is_graph_output() for o in node.outputs), f"nothing reads {called(node)}"
        for name, value in graph.initializers.items():
            assert value.uses() or value.is_graph_output(), f"nothing reads the constant {name}"


Interface = list[tuple[str | None, ir.DataType | None]]


def interface(model: ir.Model) -> Interface:
    """Return the user's view of a model: names and dtypes of its inputs and outputs."""
    values = [v for v in model.graph.inputs if not v.is_initializer()] + list(model.graph.outputs)
    return [(v.name, v.dtype) for v in values]


def check_interface(model: ir.Model, before: Interface) -> None:
    """Check that inputs and outputs are unchanged; a dtype may have become known."""
    now = interface(model)
    assert [name for name, _ in now] == [name for name, _ in before], f"inputs and outputs were {before}, are {now}"
    for (name, old), (_, new) in zip(before, now, strict=True):
        assert old is None or old == new, f"{name} was {old}, and is {new}"


def called(node: ir.Node) -> str:
    """A node as messages name it."""
    return f"node {node.name or '?'} ({node.op_type})"
