"""Control flow: If, Loop, Scan. The executor walks their graphs itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.functions import inline
from py_ort.ir.graph import add_constant, attribute, detach, dims, rank, tensor_of
from py_ort.ir.operators import Operator, lowering
from py_ort.ir.schemas import CANONICAL_OPSET
from py_ort.ops.loops import loop

OPERATORS = [
    Operator("If", host=(0,), bodies=True, walked=True, expand=False),
    Operator("Loop", host=(0, 1), bodies=True, walked=True, expand=False),
    Operator("Scan", bodies=True, walked=True, expand=False),
    Operator("SequenceMap", bodies=True),
]


_DECLARED = "py_ort.declared"


def declared_shapes(node: ir.Node) -> list[list[int | ir.SymbolicDim] | None]:
    """Return the declared shapes of a body's outputs, all that is known if the body never runs."""
    found: list[list[int | ir.SymbolicDim] | None] = node.meta.get(_DECLARED, [])
    return found


def note_declared_shapes(node: ir.Node) -> None:
    """Keep them for `declared_shapes`, before inference takes their place."""
    if node.op_type in ("Loop", "Scan") and node.domain == "":
        node.meta[_DECLARED] = [dims(value) for value in attribute(node, "body").outputs]


def handed_in(node: ir.Node, index: int) -> ir.Value | None:
    """Return the value of the body that input `index` becomes, whole or row by row; None where it is read as it is."""
    first = {"Loop": 2, "Scan": 0}.get(node.op_type) if node.domain == "" else None
    if first is None or index < first:
        return None
    inputs = attribute(node, "body").inputs
    return inputs[index] if index < len(inputs) else None


@lowering("Loop")
def iterations_as_declared(node: ir.Node, build: Builder) -> None:
    """A body may declare the number of the iteration, or the condition, as a vector: the executor hands in scalars."""
    body: ir.Graph = attribute(node, "body")
    for value in body.inputs[:2]:
        if rank(value) != 1 or not value.uses():
            continue
        vector = ir.Node(
            "", "Reshape", [value, add_constant(body, tensor_of(np.array([1])), value.name)], num_outputs=1
        )
        vector.version = CANONICAL_OPSET
        value.replace_all_uses_with(vector.outputs[0])
        vector.replace_input_with(0, value)
        value.shape = ir.Shape([])
        body.insert_before(body[0], vector)


@lowering("SequenceMap", replaces=True)
def loop_over_sequences(node: ir.Node, build: Builder) -> Any:
    """A Loop over the elements of sequences; tensors among the inputs are the same for all elements."""
    body: ir.Graph = attribute(node, "body")

    def elements(inner: Builder, number: ir.Value) -> list[Any]:
        """The body's inputs for an element."""
        values = [value for value in node.inputs if value is not None]
        return [inner.op("SequenceAt", v, number) if isinstance(v.type, ir.SequenceType) else v for v in values]

    def turn(inner: Builder, number: ir.Value, made: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        results = inline(body, elements(inner, number), inner.anchor)
        return np.array(True), [inner.op("SequenceInsert", *pair) for pair in zip(made, results, strict=True)], []

    empty = [build.op("SequenceEmpty", dtype=int(dtype)) for dtype in _results_of_map(node, body, build)]
    made, _ = loop(build, build.op("SequenceLength", node.inputs[0]), empty, turn)
    detach(body)
    return tuple(made)


def _results_of_map(node: ir.Node, body: ir.Graph, build: Builder) -> list[ir.DataType]:
    """Return the dtypes of the outputs of a SequenceMap's body: declared, or else inferred."""
    if any(value is None or value.type is None for value in node.inputs) or len(node.inputs) != len(body.inputs):
        raise inconsistent(node, "it maps values of unknown types, or its body takes another number of them")
    outputs = list(body.outputs)
    if any(value.dtype is None for value in outputs):
        trial = body.clone(allow_outer_scope_values=True)
        for inner, outer in zip(trial.inputs, node.inputs, strict=True):
            kind = None if outer is None else outer.type
            inner.type = kind.elem_type if isinstance(kind, ir.SequenceType) else kind
        assert build.settle is not None
        build.settle(list(trial))
        outputs = list(trial.outputs)
        detach(trial)
    dtypes = [value.dtype for value in outputs if value.dtype is not None]
    if len(dtypes) < len(outputs):
        raise inconsistent(node, "the types of what its body makes are not known: declare those of the body's outputs")
    return dtypes


@lowering("Scan", before=9)
def batched_scan(node: ir.Node, build: Builder) -> Any:
    """Scan-8 ran over a batch of sequences: a Scan over the batch, of which each iteration is a Scan over its sequence.

    A sequence that has a length is cut to it, and what the iterations give is filled up with zeros again.
    """
    lengths, values = node.inputs[0], list(node.inputs[1:])
    body: ir.Graph = attribute(node, "body")
    scanned: int = attribute(node, "num_scan_inputs")
    states = len(values) - scanned
    directions = attribute(node, "directions")
    inputs = []
    batches = values if lengths is None else [*values, lengths]
    for i, value in enumerate(batches):
        known = dims(value)
        shape = None if known is None else ir.Shape(known[1:])
        inputs.append(
            ir.Value(name=f"{body.name}_batch_{i}", type=value.type if value is not None else None, shape=shape)
        )
    iteration = ir.Graph(inputs, [], nodes=[], name=f"{body.name}_batch")
    sequences: list[ir.Value | None] = list(inputs[: len(values)])
    if lengths is not None:
        start, length = _constant(iteration, [0]), _add(iteration, "Reshape", inputs[-1], _constant(iteration, [1]))
        missing = _add(iteration, "Sub", _add(iteration, "Shape", inputs[states], start=0, end=1), length)
        sequences[states:] = [_add(iteration, "Slice", each, start, length, start) for each in sequences[states:]]
    attributes = [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", scanned)]
    if directions:
        attributes.append(ir.AttrInt64s("scan_input_directions", list(directions)))
    inner = ir.Node("", "Scan", sequences, attributes, num_outputs=len(node.outputs), name=node.name)
    inner.version = CANONICAL_OPSET
    node.attributes.pop("body")
    for i, output in enumerate(inner.outputs):
        output.name = f"{body.name}_iteration_{i}"
    iteration.append(inner)
    iteration.outputs.extend(inner.outputs)
    if lengths is not None:
        pads = _add(iteration, "Concat", start, missing, axis=0)
        iteration.outputs[states:] = [
            _add(iteration, "Pad", each, pads, None, start) for each in inner.outputs[states:]
        ]
    return build.op(
        "Scan", *batches, outputs=len(node.outputs), body=ir.AttrGraph("body", iteration), num_scan_inputs=len(batches)
    )


def _add(graph: ir.Graph, op_type: str, *inputs: ir.Value | None, **attributes: int) -> ir.Value:
    """Append a node of one output to a body."""
    node = ir.Node("", op_type, inputs, [ir.AttrInt64(name, value) for name, value in attributes.items()])
    node.version = CANONICAL_OPSET
    graph.append(node)
    node.outputs[0].name = f"{graph.name}_{op_type}_{len(graph)}"
    return node.outputs[0]


def _constant(graph: ir.Graph, numbers: list[int]) -> ir.Value:
    return add_constant(graph, tensor_of(np.array(numbers)), graph.name)
