"""Motifs of passes that make functions and normalizations of their parts."""

from __future__ import annotations

import numpy as np
from random_graphs import RandomGraph, Shape

from motifs.motif import Motifs, image_of, rows_of

MOTIFS = Motifs()


@MOTIFS.motif("batch_normalization", "scale_shift")
def _normalized_channels(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = image_of(g, x, shape, 3)
    positive = g.constant(np.float32([0.5, 1, 2]))
    return g.op("BatchNormalization", [image, g.floats(3), g.floats(3), g.floats(3), positive], made)


@MOTIFS.motif("hard_swish")
def _hard_swish(g: RandomGraph, x: str, shape: Shape) -> str:
    raised = g.op("Add", [x, g.number(3)], shape)
    cut = g.op("Clip", [raised, g.number(0), g.number(6)], shape)
    return g.op("Div", [g.op("Mul", [x, cut], shape), g.number(6)], shape)


@MOTIFS.motif("gelu")
def _gelu(g: RandomGraph, x: str, shape: Shape) -> str:
    bent = g.op("Erf", [g.op("Div", [x, g.number(2**0.5)], shape)], shape)
    sides = [x, g.op("Add", [g.number(1), bent], shape)]
    return g.op("Mul", [g.number(0.5), g.op("Mul", sides if g.chance() else sides[::-1], shape)], shape)


@MOTIFS.motif("gates")
def _gate(g: RandomGraph, x: str, shape: Shape) -> str:
    gate = g.op("HardSigmoid", [g.op("GlobalAveragePool", [x], (*shape[:2], 1, 1))], (*shape[:2], 1, 1))
    return g.op("Add", [x, g.op("Mul", [x, gate], shape)], shape)


@MOTIFS.motif("affine")
def _affine(g: RandomGraph, x: str, shape: Shape) -> str:
    for op_type in ("Add", "Mul", "Sub", "Div"):
        x = g.op(op_type, [x, g.number(g.integer(1, 5))], shape)
    return x


def _normal(g: RandomGraph, x: str, shape: Shape, axes: list[int], *, centered: bool = True) -> str:
    few = tuple(1 if i in axes else d for i, d in enumerate(shape))
    if centered:
        x = g.op("Sub", [x, g.op("ReduceMean", [x, g.ints(*axes)], few)], shape)
    mean = g.op("ReduceMean", [g.op("Mul", [x, x], shape), g.ints(*axes)], few)
    root = g.op("Sqrt", [g.op("Add", [mean, g.number(1e-2)], few)], few)
    if g.chance():
        return g.op("Div", [x, root], shape)
    return g.op("Mul", [g.op("Reciprocal", [root], few), x], shape)


@MOTIFS.motif("instance_norm", provider="wasm")
def _each_image(g: RandomGraph, x: str, shape: Shape) -> str:
    normal = _normal(g, x, shape, [2, 3])
    return g.op("Mul", [normal, g.floats(shape[1], 1, 1)], shape)


@MOTIFS.motif("layer_norm")
def _layer_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = rows_of(g, x, shape, 6)
    return g.op("Add", [g.op("Mul", [_normal(g, rows, made, [2]), g.floats(6)], made), g.floats(6)], made)


@MOTIFS.motif("rms_norm", provider="wasm")
def _rms_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = rows_of(g, x, shape, 6)
    return g.op("Mul", [g.floats(6), _normal(g, rows, made, [2], centered=False)], made)


@MOTIFS.motif("group_norm", provider="wasm")
def _groups(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = image_of(g, x, shape, 4)
    n, _, h, w = made
    rows = g.op("Reshape", [image, g.ints(0, 2, -1)], (n, 2, 2 * h * w))
    ones, zeros = (g.constant(np.full(2, k, np.float32)) for k in (1, 0))
    normal = g.op("InstanceNormalization", [rows, ones, zeros], (n, 2, 2 * h * w))
    return g.op("Reshape", [normal, g.op("Shape", [image], (4,))], made)


@MOTIFS.motif("skip_norm", "linear")
def _skip_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = rows_of(g, x, shape, 6)
    more = g.op("Add", [g.op("MatMul", [rows, g.floats(6, 6)], made), g.floats(6)], made)
    total = g.op("Add", [rows, more], made)
    return g.op("LayerNormalization", [total, g.floats(6), g.floats(6)], made)
