"""Motifs of attention."""

from __future__ import annotations

import numpy as np
from random_graphs import RandomGraph, Shape

from motifs.motif import Motifs, image_of, rows_of

MOTIFS = Motifs()


def _heads(g: RandomGraph, x: str, shape: Shape) -> list[str]:
    """Queries, keys and values of two heads of [n, h, 8]: [n, 2, h, 4]."""
    rows, (n, h, _) = rows_of(g, x, shape, 8)
    found = []
    for _ in range(3):
        wide = g.op("MatMul", [rows, g.floats(8, 8)], (n, h, 8))
        apart = g.op("Reshape", [wide, g.ints(0, 0, 2, 4)], (n, h, 2, 4))
        found.append(g.op("Transpose", [apart], (n, 2, h, 4), perm=[0, 2, 1, 3]))
    return found


def _mixed(g: RandomGraph, q: str, k: str, v: str, shape: Shape) -> str:
    n, heads, places, size = shape
    scores = (n, heads, places, places)
    transposed = g.op("Transpose", [k], (n, heads, size, places), perm=[0, 1, 3, 2])
    chosen = g.op("Mul", [g.op("MatMul", [q, transposed], scores), g.number(size**-0.5)], scores)
    mixed = g.op("MatMul", [g.op("Softmax", [chosen], scores, axis=-1), v], shape)
    rows = g.op("Transpose", [mixed], (n, places, heads, size), perm=[0, 2, 1, 3])
    return g.op("Reshape", [rows, g.ints(0, 0, heads * size)], (n, places, heads * size))


@MOTIFS.motif("attention", "packed_projections")
def _attention(g: RandomGraph, x: str, shape: Shape) -> str:
    return _mixed(g, *_heads(g, x, shape), (shape[0], 2, shape[2], 4))


@MOTIFS.motif("interleaved_heads")
def _interleaved_heads(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, (n, h, _) = rows_of(g, x, shape, 8)
    wide = g.op("MatMul", [rows, g.floats(8, 24)], (n, h, 24))
    five = g.op("Reshape", [wide, g.ints(0, 0, 2, 3, 4)], (n, h, 2, 3, 4))
    parts = [g.op("Gather", [five, g.constant(np.int64(i))], (n, h, 2, 4), axis=3) for i in range(3)]
    transposed = [g.op("Transpose", [part], (n, 2, h, 4), perm=[0, 2, 1, 3]) for part in parts]
    return _mixed(g, *transposed, (n, 2, h, 4))


@MOTIFS.motif("transposed_norms")
def _normalized_heads(g: RandomGraph, x: str, shape: Shape) -> str:
    q, k, v = _heads(g, x, shape)
    heads = (shape[0], 2, shape[2], 4)
    return _mixed(g, g.op("LayerNormalization", [q, g.floats(4)], heads), k, v, heads)


@MOTIFS.motif("stacked_heads")
def _windows(g: RandomGraph, x: str, shape: Shape) -> str:
    image, (n, _, h, w) = image_of(g, x, shape, 4)
    five, scores = (n, 2, 2, h * w, 1), (n, 2, 2, h * w, h * w)
    t = g.op("Reshape", [image, g.ints(0, 2, 2, -1, 1)], five)
    transposed = g.op("Transpose", [t], (n, 2, 2, 1, h * w), perm=[0, 1, 2, 4, 3])
    weights = g.op("Softmax", [g.op("MatMul", [t, transposed], scores)], scores, axis=-1)
    return g.op("MatMul", [weights, t], five)


@MOTIFS.motif("transposed_attention")
def _transposed_attention(g: RandomGraph, x: str, shape: Shape) -> str:
    image, (n, _, h, w) = image_of(g, x, shape, 4)
    columns = g.op("Reshape", [image, g.ints(0, 1, 4, -1)], (n, 1, 4, h * w))
    rows = g.op("Transpose", [columns], (n, 1, h * w, 4), perm=[0, 1, 3, 2])
    weights = g.op("Softmax", [g.op("MatMul", [rows, columns], (n, 1, h * w, h * w))], (n, 1, h * w, h * w), axis=-1)
    transposed = g.op("Transpose", [weights], (n, 1, h * w, h * w), perm=[0, 1, 3, 2])
    return g.op("MatMul", [columns, transposed], (n, 1, 4, h * w))


@MOTIFS.motif("rotary_embedding", provider="wasm", known=True)
def _rotary(g: RandomGraph, x: str, shape: Shape) -> str:
    q, k, v = _heads(g, x, shape)
    heads, half = (shape[0], 2, shape[2], 4), (shape[0], 2, shape[2], 2)
    angles = np.tile(np.outer(np.arange(shape[2]), [1.0, 0.1]), 2).astype(np.float32)[None, None]
    cos, sin = (g.constant(f(angles)) for f in (np.cos, np.sin))
    transposed = []
    for t in (q, k):
        a, b = g.add("Split", [t, g.ints(2, 2)], [half, half], axis=-1)
        crossed = g.op("Concat", [g.op("Neg", [b], half), a], heads, axis=-1)
        transposed.append(g.op("Add", [g.op("Mul", [t, cos], heads), g.op("Mul", [crossed, sin], heads)], heads))
    return _mixed(g, *transposed, v, heads)
