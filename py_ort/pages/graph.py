"""A model as it was given and as it runs, as data for the page that draws it (web/src/report/graph.ts).

`compiled.placed` and `origins` tie what runs to the model's nodes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import onnx_ir as ir

from py_ort.compiler import CompiledModel
from py_ort.compiler.load import load_model, read_proto
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import dims, origins, subgraphs
from py_ort.ir.onnx_calls import infer_model
from py_ort.providers import AVAILABLE, PlacedNode
from py_ort.schema.dialect import EPILOGUE, INTERNAL_DOMAIN

#: Characters of a name, an attribute, a dimension's formula: whatever is longer tells nobody anything.
_MOST_NAME, _MOST_ATTRIBUTE, _MOST_DIM = 400, 120, 14
_RUNS, _GIVEN = "what runs", "the model"
_LEGEND = {
    **{name: f"on {name}" for name in AVAILABLE},
    "stripe": "nothing runs for it: computed before, or not needed",
}


@dataclass
class _Node:
    """See `GraphNode` in web/src/report/model.ts."""

    name: str
    op: str
    place: str = ""
    why: str = ""
    inside: str = ""
    other: list[int] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    shape: str = ""


@dataclass
class View:
    """A graph to be drawn: that of the model, its inputs, outputs and bodies included.

    Attributes:
        title: A heading, "the model" or the like.
        nodes: The nodes to draw.
        edges: Pairs of indices into `nodes`.
        made_of: For each node the names of the model's nodes that it came from.
        makers: The node of each value of the main graph, by the value's name.
    """

    title: str
    nodes: list[_Node] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    made_of: list[tuple[str, ...]] = field(default_factory=list)
    makers: dict[str, int] = field(default_factory=dict)

    def add(self, node: _Node, sources: Sequence[int] = (), made_of: tuple[str, ...] = ()) -> int:
        """Add a node that reads what others make; return its index."""
        index = len(self.nodes)
        self.nodes.append(node)
        self.made_of.append(made_of)
        self.edges += [(source, index) for source in dict.fromkeys(sources)]
        return index

    def by_origin(self) -> dict[str, list[int]]:
        """Return the nodes that came from each node of the model, by its name."""
        known: dict[str, list[int]] = {}
        for index, names in enumerate(self.made_of):
            for name in names:
                known.setdefault(name, []).append(index)
        return known


def given(
    model: str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> View:
    """Return the graph of a model as its file has it, with the shapes that ONNX infers where the file has none.

    Args:
        model: An ONNX file.
        shapes: Shapes of inputs, by name.
        dims: Sizes of dimensions that have a name.
    """
    graph = load_model(model).model.graph
    known, fixed = _inferred(model, shapes or {}, dims or {}), bool(shapes or dims)
    for value in (*graph.inputs, *graph.outputs, *(value for node in graph for value in node.outputs)):
        if (fixed or value.shape is None) and (found := known.get(value.name or "")) is not None:
            value.type, value.shape = found
    return _view(_GIVEN, graph, {})


def _inferred(
    model: str | os.PathLike[str], shapes: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> dict[str, tuple[ir.TypeProtocol | None, ir.Shape | None]]:
    try:
        proto = read_proto(model)
        for value in proto.graph.input:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = shapes[value.name][axis] if value.name in shapes else dims.get(dim.dim_param)
                if size is not None:
                    dim.dim_value = size
        if shapes or dims:  # sizes in the file may be those of names
            del proto.graph.value_info[:]
            for value in proto.graph.output:
                value.type.tensor_type.ClearField("shape")
        made = infer_model(proto).graph
        values = (*made.value_info, *made.input, *made.output)
    except Exception:  # a model above 2 GB, or one that ONNX finds fault with: shapes only explain the drawing
        return {}
    serde = ir.serde
    return {
        value.name: (
            serde.deserialize_type_proto_for_type(value.type),
            serde.deserialize_type_proto_for_shape(value.type),
        )
        for value in values
    }


def page(
    before: View,
    compiled: CompiledModel,
    title: str,
    facts: Mapping[str, Any],
    tables: Mapping[str, Any],
    nodes: Sequence[Sequence[str]] = (),
) -> str:
    """Return the page.

    Args:
        before: The model as it was given.
        compiled: The compiled model.
        title: The page's title.
        facts: Lines beside the graph.
        tables: By heading: names of columns, and rows of texts and numbers.
        nodes: For each row of the table, names of nodes of the model that a click on the row marks.
    """
    after = _view(_RUNS, compiled.model.graph, compiled.placed)
    _join(after, before)
    ran, had = (sum(node.place not in ("input", "output") for node in view.nodes) for view in (after, before))
    shown = {**facts, "drawn": f"{ran} nodes that run; {had} of the model, its constants left out"}
    known = before.by_origin()
    marks = [sorted({index for name in names for index in known.get(name, ())}) for names in nodes]
    return draw((after, before), title, _LEGEND, facts=shown, tables=tables, marks=marks)


def draw(views: Sequence[View], title: str, legend: Mapping[str, str], start: int | None = None, **context: Any) -> str:
    """Return a page of views, the first of which is shown first.

    Args:
        views: The views.
        title: The page's title.
        legend: Words for the nodes' places.
        start: The node of the first view that is chosen at first.
        context: For the template.
    """
    from py_ort.pages.template import render

    told = [
        {"title": view.title, "nodes": [asdict(node) for node in view.nodes], "edges": view.edges} for view in views
    ]
    more = {} if start is None else {"start": start}
    return render("graph", title, {"views": told, "legend": legend, **more}, legend=legend, **context)


def _join(after: View, before: View) -> None:
    """Say of each node of a view what it is in the other one; a model's node is where that runs which it became."""
    known = before.by_origin()
    for index, names in enumerate(after.made_of):
        after.nodes[index].other = list(dict.fromkeys(i for name in names for i in known.get(name, ())))
        for i in after.nodes[index].other:
            before.nodes[i].other.append(index)
            before.nodes[i].place = after.nodes[index].place


def _view(title: str, graph: ir.Graph, placed: Mapping[ir.Node, PlacedNode]) -> View:
    view = View(title)
    makers: dict[ir.Value, int] = {}
    _add_graph(view, graph, placed, makers, "")
    view.makers = {value.name or "": index for value, index in makers.items() if not view.nodes[index].inside}
    return view


def _add_graph(
    view: View, graph: ir.Graph, placed: Mapping[ir.Node, PlacedNode], makers: dict[ir.Value, int], inside: str
) -> list[int]:
    """Add a graph; return the nodes that make its outputs."""
    for value in graph.inputs:
        if not inside and not value.is_initializer():
            makers[value] = view.add(
                _Node(_name(value.name), "input", "input", shape=_shape(value), outputs=[_text(value)])
            )
    for node in graph:
        if node.op_type == "Constant" and not node.domain:
            continue
        name = origins(node)[-1]
        where = placed.get(node)
        bodies = [
            maker
            for body in subgraphs(node)
            for maker in _add_graph(view, body, placed, makers, f"{node.op_type} {_name(name)}")
        ]
        sources = [makers[value] for value in node.inputs if value is not None and value in makers]
        index = view.add(
            _Node(
                _name(name),
                _own(where.kernel) if where else _operator(node),
                where.provider if where else "",
                where.reason if where else "",
                inside,
                inputs=[_text(value) for value in node.inputs if value is not None],
                outputs=[_text(value) for value in node.outputs],
                attributes=list(_attributes(node)),
                shape=_shape(node.outputs[0]) if node.outputs else "",
            ),
            [*sources, *bodies],
            origins(node),
        )
        makers |= dict.fromkeys(node.outputs, index)
    if not inside:
        for value in graph.outputs:
            source = [makers[value]] if value in makers else []
            view.add(_Node(_name(value.name), "output", "output", shape=_shape(value), inputs=[_text(value)]), source)
    return [makers[value] for value in graph.outputs if value in makers]


def _own(kernel: str) -> str:
    """A kernel without the domains that are py_ort's own: "nhwc::Conv", "ElementwiseChain"."""
    return kernel.removeprefix(f"{INTERNAL_DOMAIN}.").removeprefix(f"{INTERNAL_DOMAIN}::")


def _operator(node: ir.Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def _name(name: str | None) -> str:
    text = name or ""
    return text if len(text) <= _MOST_NAME else f"{text[:_MOST_NAME]}…"


def _text(value: ir.Value) -> str:
    """A value in words: name, dtype, shape, and whether it is a constant."""
    dtype = value.dtype.name.lower() if value.dtype is not None else ""
    known = dims(value)
    shape = "" if known is None else f"[{', '.join(map(_dim, known))}]"
    constant = "constant" if value.const_value is not None else ""
    return " ".join(part for part in (_name(value.name), dtype + shape, constant) if part)


def _shape(value: ir.Value) -> str:
    """A shape that stands in a drawing: formulas of sizes are too long for that."""
    known = dims(value)
    if known is None:
        return ""
    return "×".join(text if len(text := _dim(d)) <= _MOST_DIM else "?" for d in known) or "scalar"


def _dim(dim: int | ir.SymbolicDim) -> str:
    """A size as text; ONNX's inference names those that it does not know."""
    text = _name(str(dim))
    return "?" if text == "None" or text.startswith("unk__") else text


def _attributes(node: ir.Node) -> Iterator[str]:
    for name, attribute in node.attributes.items():
        if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            continue
        value = attribute.value
        if attribute.type == ir.AttributeType.TENSOR:
            text = f"{value.dtype.name.lower()}{list(value.shape)}"
        elif name == EPILOGUE:
            text = str(Epilogue.of(node))
        else:
            text = str(
                list(value[:_MOST_ATTRIBUTE]) if isinstance(value, Sequence) and not isinstance(value, str) else value
            )
        yield f"{_name(name)} = {text if len(text) <= _MOST_ATTRIBUTE else text[:_MOST_ATTRIBUTE] + '…'}"
