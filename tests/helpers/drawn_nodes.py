"""Single invalid nodes, for inference: sizes, attributes, constants and types of node cases, changed at random.

`python drawn_nodes.py SEED COUNT` infers some in this process and requests their function bodies. It ends with 0 if
each one was answered, or refused by a typed error.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from typing import Any

import onnx
import onnx_ir as ir
from onnx import AttributeProto, numpy_helper

from py_ort.exceptions import PyOrtError
from py_ort.ir.onnx_calls import dependent_body, infer_outputs
from py_ort.ir.schemas import schema

SIZES = (0, 1, 2, 3, 7, -1, -2, -5, 2**31, 2**62, -(2**63), None)
NUMBERS = (0, 1, 2, 3, 5, -1, -2, -5, 100, 2**31, -(2**31), 2**63 - 1, -(2**63))
_WORDS = (b"", b"SAME_UPPER", b"VALID", b"i,j->k", b"...ii->i", b"reverse", b"bidirectional")
_SMALL = 64  # elements


def cases() -> list[onnx.ModelProto]:
    """Return models of one node each, with small integers among its inputs as initializers."""
    from onnx.backend.test.case.node import collect_testcases

    found = []
    for case in collect_testcases(None):
        model = case.model
        if len(model.graph.node) != 1 or not case.data_sets:
            continue
        made = onnx.ModelProto()
        made.CopyFrom(model)
        for value, contents in zip(model.graph.input, case.data_sets[0][0], strict=False):
            if getattr(contents, "size", _SMALL + 1) <= _SMALL and getattr(contents, "dtype", None) in (
                "int64",
                "int32",
            ):
                made.graph.initializer.append(numpy_helper.from_array(contents, value.name))
        found.append(made)
    return found


def change(rng: random.Random, model: onnx.ModelProto) -> None:
    """Make one change: of a size, a type, a constant, an attribute, or an input."""
    graph, node = model.graph, model.graph.node[0]
    ways: list[Any] = []
    tensors = [value for value in graph.input if value.type.HasField("tensor_type")]
    if tensors:
        ways += [lambda: _size(rng, rng.choice(tensors).type.tensor_type.shape)] * 3
        ways.append(lambda: rng.choice(graph.input).ClearField("type"))
    if graph.initializer:
        ways.append(lambda: _constant(rng, rng.choice(graph.initializer)))
        ways.append(lambda: graph.initializer.pop(rng.randrange(len(graph.initializer))))
    if node.attribute:
        ways += [lambda: _attribute(rng, rng.choice(node.attribute))] * 2
    if node.input:
        ways.append(lambda: node.input.__setitem__(rng.randrange(len(node.input)), ""))
    if len(node.output) > 1:
        ways.append(node.output.pop)
    if ways:
        rng.choice(ways)()


def _size(rng: random.Random, shape: Any) -> None:
    if not shape.dim or rng.random() < 0.2:
        shape.dim.add().dim_value = rng.choice((0, 1, 2, -1))
    elif rng.random() < 0.2:
        del shape.dim[rng.randrange(len(shape.dim))]
    else:
        dim, size = rng.choice(shape.dim), rng.choice(SIZES)
        dim.Clear()
        if size is not None:
            dim.dim_value = size


def _constant(rng: random.Random, tensor: onnx.TensorProto) -> None:
    contents = numpy_helper.to_array(tensor).copy()
    if contents.size:
        number = rng.choice(NUMBERS)
        contents.reshape(-1)[rng.randrange(contents.size)] = number if contents.dtype == "int64" else number % 2**31
        tensor.CopyFrom(numpy_helper.from_array(contents, tensor.name))


def _attribute(rng: random.Random, item: AttributeProto) -> None:
    if item.type == AttributeProto.INT:
        item.i = rng.choice(NUMBERS)
    elif item.type == AttributeProto.INTS and item.ints and rng.random() < 0.7:
        item.ints[rng.randrange(len(item.ints))] = rng.choice(NUMBERS)
    elif item.type == AttributeProto.INTS:
        item.ints.append(rng.choice(NUMBERS))
    elif item.type == AttributeProto.STRING:
        item.s = rng.choice(_WORDS)
    elif item.type == AttributeProto.GRAPH and item.g.output:
        item.g.output[0].ClearField("type")


def infer(proto: onnx.ModelProto) -> None:
    """Infer a model's one node, and request its function body; typed errors are permitted."""
    try:
        model = ir.from_proto(proto)
    except Exception:  # unreadable models are not inferred
        return
    for value in model.graph.initializers.values():
        value.shape = ir.Shape(value.const_value.shape.numpy())
    node = model.graph[0]
    version = model.opset_imports.get(node.domain, 1)
    found = schema(node.domain, node.op_type, version)
    if found is None:
        return
    with contextlib.suppress(PyOrtError):
        infer_outputs(node, found, version, strict=True)
    if found.has_context_dependent_function and node.op_type != "SequenceMap":  # a lowering of ours replaces this one
        dependent_body(node, found, version)


def main(seed: int, count: int) -> None:
    rng = random.Random(seed)
    known = cases()
    for number in range(count):
        model = onnx.ModelProto()
        model.CopyFrom(rng.choice(known))
        for _ in range(rng.choice((1, 1, 2, 3))):
            change(rng, model)
        print(f"\r{number}: {onnx.helper.printable_node(model.graph.node[0])}", end="", flush=True, file=sys.stderr)
        infer(model)
    print(count)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:]))
