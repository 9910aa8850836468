"""Mutations of nodes, of their connections, and of the graph around them."""

from __future__ import annotations

import random

import onnx
from onnx import TensorProto, helper

from mutations.places import (
    Changes,
    Mutation,
    copied,
    names,
    product,
    reorder_drop_or_repeat,
    some,
    some_graph,
    some_node,
    some_value,
)

MUTATIONS: Changes[Mutation] = Changes()
_DOMAINS = (
    "",
    "ai.onnx",
    "ai.onnx.ml",
    "com.microsoft",
    "com.ms.internal",
    "com.ms.internal.nhwc",
    "nobody",
    "ai.onnx.preview",
)
_OPERATORS = sorted({found.name for found in onnx.defs.get_all_schemas()} | {"Frobnicate", "", "ElementwiseChain"})


@MUTATIONS.add
def _inputs_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = some_node(decide, model)
    return node is not None and reorder_drop_or_repeat(decide, node.input)


@MUTATIONS.add
def _outputs_of_node(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = some_node(decide, model)
    return node is not None and reorder_drop_or_repeat(decide, node.output)


@MUTATIONS.add
def _other_input(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Cycles, values of other types and of other graphs, omitted inputs."""
    return _other(decide, model, "input")


@MUTATIONS.add
def _other_output(decide: random.Random, model: onnx.ModelProto) -> bool:
    return _other(decide, model, "output")


def _other(decide: random.Random, model: onnx.ModelProto, which: str) -> bool:
    node = some_node(decide, model)
    if node is None:
        return False
    name, known = decide.choice(names(model)), getattr(node, which)
    if known and decide.random() < 0.7:
        known[decide.randrange(len(known))] = name
    else:
        known.append(name)
    return True


@MUTATIONS.add
def _nodes(decide: random.Random, model: onnx.ModelProto) -> bool:
    return reorder_drop_or_repeat(decide, some_graph(decide, model).node)


@MUTATIONS.add
def _interface(decide: random.Random, model: onnx.ModelProto) -> bool:
    graph = some_graph(decide, model)
    return reorder_drop_or_repeat(decide, decide.choice([graph.input, graph.output, graph.initializer]))


@MUTATIONS.add
def _value_to_constant(decide: random.Random, model: onnx.ModelProto) -> bool:
    graph = some_graph(decide, model)
    value = some(decide, graph.input)
    if value is None or not value.type.tensor_type.HasField("shape"):
        return False
    dims = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
    kind = value.type.tensor_type.elem_type
    if kind not in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8) or product(dims) > 9999:
        return False
    contents = [decide.choice([0, 1, 2, 3]) for _ in range(product(dims))]
    graph.initializer.append(helper.make_tensor(value.name, kind, dims, contents))
    if decide.random() < 0.8:
        graph.input.remove(value)
    return True


@MUTATIONS.add
def _name(decide: random.Random, model: onnx.ModelProto) -> bool:
    value = some_value(decide, model)
    if value is None:
        return False
    value.name = decide.choice(names(model))
    return True


@MUTATIONS.add
def _operator(decide: random.Random, model: onnx.ModelProto) -> bool:
    node = some_node(decide, model)
    if node is None:
        return False
    if decide.random() < 0.7:
        node.op_type = decide.choice(_OPERATORS)
    else:
        node.domain = decide.choice(_DOMAINS)
    return True


@MUTATIONS.add
def _versions(decide: random.Random, model: onnx.ModelProto) -> bool:
    if decide.random() < 0.2:
        model.ir_version = decide.choice([0, 1, 2, 3, 4, 6, 9, 13, 14, 99, 2**40])
    elif model.opset_import and decide.random() < 0.7:
        model.opset_import[0].version = decide.choice([0, 1, 5, 7, 9, 11, 13, 17, 18, 21, 22, 23, 26, 99, -1])
    elif decide.random() < 0.5:
        return reorder_drop_or_repeat(decide, model.opset_import)
    else:
        model.opset_import.append(helper.make_opsetid(decide.choice(_DOMAINS), decide.choice([1, 2, 3, 13, 21])))
    return True


@MUTATIONS.add
def _nested(decide: random.Random, model: onnx.ModelProto) -> bool:
    """Moves a node into the branches of an If, or into the body of a Loop."""
    graph = some_graph(decide, model)
    if not graph.node:
        return False
    at = decide.randrange(len(graph.node))
    node = copied(graph.node[at])
    outer = [f"{name}_outer" if decide.random() < 0.9 else name for name in node.output]
    bodies = [
        helper.make_graph([copied(node)], branch, [], [onnx.ValueInfoProto(name=name) for name in node.output])
        for branch in ("then_branch", "else_branch")
    ]
    truth = helper.make_tensor("truth", TensorProto.BOOL, [], [decide.random() < 0.5])
    graph.initializer.append(truth)
    made = helper.make_node("If", ["truth"], list(node.output), **{body.name: body for body in bodies})
    if decide.random() < 0.3:
        for body in bodies:
            for value, name in zip(body.node[0].output, outer, strict=True):
                body.node[0].output[list(body.node[0].output).index(value)] = name
    graph.node[at].CopyFrom(made)
    return True
