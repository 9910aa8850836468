"""Motifs around convolutions and products."""

from __future__ import annotations

import numpy as np
from random_graphs import RandomGraph, Shape

from motifs.motif import Motifs, image_of, rows_of

MOTIFS = Motifs()


@MOTIFS.motif("padded_windows", "nhwc")
def _padded(g: RandomGraph, x: str, shape: Shape) -> str:
    n, c, h, w = shape
    pad = g.op("Pad", [x, g.ints(0, 0, 1, 0, 0, 0, 2, 1)], (n, c, h + 3, w + 1))
    return g.op("Conv", [pad, g.floats(2, c, 3, 3)], (n, 2, h + 1, w - 1))


@MOTIFS.motif("conv_affine", "activation")
def _scaled_convolution(g: RandomGraph, x: str, shape: Shape) -> str:
    made = (shape[0], 2, *shape[2:])
    y = g.op("Conv", [x, g.floats(2, shape[1], 1, 1)], made)
    y = g.op("Add", [g.op("Mul", [y, g.floats(2, 1, 1)], made), g.floats(1, 2, 1, 1)], made)
    y = g.op(g.pick("Relu", "Sigmoid", "Tanh", "HardSwish"), [y], made)
    return g.op("Add", [y, g.number(0.25)], made)


@MOTIFS.motif("activation_forms", "activation")
def _slope(g: RandomGraph, x: str, shape: Shape) -> str:
    made = (shape[0], 2, *shape[2:])
    y = g.op("Conv", [x, g.floats(2, shape[1], 1, 1)], made)
    return g.op("PRelu", [y, g.constant(np.full((2, 1, 1), 0.25, np.float32))], made)


@MOTIFS.motif("residual")
def _residual(g: RandomGraph, x: str, shape: Shape) -> str:
    y = g.op("Conv", [x, g.floats(shape[1], shape[1], 1, 1)], shape)
    return g.op("Relu", [g.op("Add", [y, x] if g.chance() else [x, y], shape)], shape)


@MOTIFS.motif("residual")
def _residual_of_a_transposed(g: RandomGraph, x: str, shape: Shape) -> str:
    y = g.op("ConvTranspose", [x, g.floats(shape[1], shape[1], 1, 1)], shape)
    return g.op("Relu", [g.op("Add", [y, x] if g.chance() else [x, y], shape)], shape)


@MOTIFS.motif("product_residual")
def _residual_of_rows(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = rows_of(g, x, shape, 6)
    kept = g.op("Abs", [rows], made)
    y = g.op("MatMul", [kept, g.floats(6, 6)], made)
    if g.chance():
        y = g.op("Add", [y, g.floats(6)], made)
    if g.chance():
        y = g.op("Relu", [y], made)
    return g.op("Tanh", [g.op("Add", [y, kept] if g.chance() else [kept, y], made)], made)


@MOTIFS.motif("flat_products")
def _flat(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, (n, h, width) = rows_of(g, x, shape, 6)
    flat = g.op("Reshape", [rows, g.ints(-1, width)], (n * h, width))
    made = g.op("Gemm", [flat, g.floats(width, 3), g.floats(3)], (n * h, 3))
    sizes = g.op("Slice", [g.op("Shape", [rows], (3,)), g.ints(0), g.ints(-1), g.ints(0)], (2,))
    return g.op("Reshape", [made, g.op("Concat", [sizes, g.ints(3)], (3,), axis=0)], (n, h, 3))


@MOTIFS.motif("concats")
def _rejoined(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = image_of(g, x, shape, 4)
    halves = g.add("Split", [image, g.ints(1, 3)], [(made[0], size, *made[2:]) for size in (1, 3)], axis=1)
    return g.op("Concat", [*halves, image], (made[0], 8, *made[2:]), axis=1)


@MOTIFS.motif("transposed_products")
def _transposed(g: RandomGraph, x: str, shape: Shape) -> str:
    n, c, h, w = shape
    transposed = g.op("Transpose", [g.op("Relu", [x], shape)], (n, c, w, h), perm=[0, 1, 3, 2])
    return g.op("MatMul", [x, transposed], (n, c, h, h))
