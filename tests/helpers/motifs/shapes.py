"""Motifs of passes that know constants, branches, types and sizes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper
from random_graphs import RandomGraph, Shape

from motifs.motif import Motifs

MOTIFS = Motifs()


@MOTIFS.motif("constants", "folding", "dead_code")
def _constants(g: RandomGraph, x: str, shape: Shape) -> str:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5])
    two = g.op("Constant", [], (1,), value=value)
    g.number(0.5)  # no node reads this one
    return g.op("Add", [g.op("Neg", [two], (1,)), x], shape)


@MOTIFS.motif("branches")
def _known_branch(g: RandomGraph, x: str, shape: Shape) -> str:
    bodies = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op_type, [x], [f"{x}_{name}"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{x}_{name}", TensorProto.FLOAT, None)],
        )
        for name, op_type in (("then", "Relu"), ("else", "Neg"))
    }
    condition = g.op("Greater", [g.ints(2), g.ints(g.integer(0, 4))], (1,))
    return g.op("If", [condition], shape, **bodies)


@MOTIFS.motif("identity", "canonicalize")
def _dropout(g: RandomGraph, x: str, shape: Shape) -> str:
    return g.op("Mul", [g.op("Dropout", [x], shape), g.constant(np.float32([1]))], shape)


@MOTIFS.motif("casts")
def _detour(g: RandomGraph, x: str, shape: Shape) -> str:
    wide = g.op("Cast", [x], shape, to=TensorProto.DOUBLE)
    return g.op("Cast", [wide], shape, to=TensorProto.FLOAT)


@MOTIFS.motif("expansions")
def _gate_as_wide(g: RandomGraph, x: str, shape: Shape) -> str:
    gate = g.op("Sigmoid", [g.op("GlobalAveragePool", [x], (*shape[:2], 1, 1))], (*shape[:2], 1, 1))
    return g.op("Mul", [x, g.op("Expand", [gate, g.op("Shape", [x], (4,))], shape)], shape)


@MOTIFS.motif("subexpressions", "functions")
def _twice(g: RandomGraph, x: str, shape: Shape) -> str:
    first, second = (g.op("ReduceSumSquare", [x, g.ints(1)], (shape[0], 1, *shape[2:])) for _ in range(2))
    return g.op("Add", [g.op("Mul", [x, first], shape), second], shape)


@MOTIFS.motif("free_dimensions", known=False, free_dimension_overrides={"n": 2})
def _free(g: RandomGraph, x: str, shape: Shape) -> str:
    return g.op("Relu", [x], shape)


@MOTIFS.motif("sizes", known=False)
def _asked_size(g: RandomGraph, x: str, shape: Shape) -> str:
    made = g.op("Relu", [x], shape)
    sizes = [g.op("Gather", [g.op("Shape", [made], (4,)), g.ints(axis)], (1,), axis=0) for axis in (2, 3)]
    target = g.op("Concat", [g.ints(-1), *sizes], (3,), axis=0)
    return g.op("Reshape", [made, target], (shape[0] * shape[1], *shape[2:]))


@MOTIFS.motif("stacked_transposes")
def _swapped(g: RandomGraph, x: str, shape: Shape) -> str:
    def part(start: int, end: int) -> str:
        return g.op("Slice", [sizes, g.ints(start), g.ints(end), g.ints(0)], (len(range(4)[start:end]),))

    sizes = g.op("Shape", [x], (4,))
    n, c, h, w = shape
    last, before = part(-1, 9), part(-2, -1)
    three = g.op("Reshape", [x, g.op("Concat", [g.ints(-1), before, last], (3,), axis=0)], (n * c, h, w))
    transposed = g.op("Transpose", [three], (n * c, w, h), perm=[0, 2, 1])
    return g.op("Reshape", [transposed, g.op("Concat", [part(0, -2), last, before], (4,), axis=0)], (n, c, w, h))


@MOTIFS.motif("reshapes")
def _reshapes(g: RandomGraph, x: str, shape: Shape) -> str:
    flat = g.op("Reshape", [x, g.ints(0, -1)], (shape[0], int(np.prod(shape[1:]))))
    return g.op("Unsqueeze", [flat, g.ints(1)], (shape[0], 1, int(np.prod(shape[1:]))))
