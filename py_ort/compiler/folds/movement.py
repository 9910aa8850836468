"""Operators that only move elements: axes permuted, joined, cut, repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.folds.declaration import ANY, Arrays, fold
from py_ort.ir.graph import attribute
from py_ort.ir.slicing import sliced

_PACKED = (ir.DataType.INT4, ir.DataType.UINT4)  # weights are transposed before they are dequantized


def _numbers(contents: np.ndarray) -> tuple[int, ...]:
    return tuple(int(n) for n in contents.reshape(-1))


@fold("Reshape", dtypes=(*ANY, *_PACKED))
def _reshaped(node: ir.Node, inputs: Arrays) -> Any:
    data, shape = inputs[0], list(_numbers(inputs[1]))
    if not attribute(node, "allowzero", 0):
        shape = [data.shape[i] if d == 0 else d for i, d in enumerate(shape)]
    return data.reshape(shape)


@fold("Flatten", dtypes=ANY)
def _flat(node: ir.Node, inputs: Arrays) -> Any:
    data, axis = inputs[0], attribute(node, "axis", 1)
    if not -data.ndim <= axis <= data.ndim:
        return None
    rows = data.shape[:axis] if axis >= 0 else data.shape[: axis + data.ndim]
    columns = data.shape[len(rows) :]
    return data.reshape(int(np.prod(rows, dtype=np.int64)), int(np.prod(columns, dtype=np.int64)))


@fold("Squeeze", dtypes=(*ANY, *_PACKED))
def _squeezed(node: ir.Node, inputs: Arrays) -> Any:
    axes = inputs[1] if len(inputs) > 1 else None
    return np.squeeze(inputs[0], None if axes is None or axes.size == 0 else _numbers(axes))


@fold("Unsqueeze", dtypes=(*ANY, *_PACKED))
def _unsqueezed(node: ir.Node, inputs: Arrays) -> Any:
    return np.expand_dims(inputs[0], _numbers(inputs[1]))


@fold("Transpose", dtypes=(*ANY, *_PACKED))
def _transposed(node: ir.Node, inputs: Arrays) -> Any:
    return np.ascontiguousarray(np.transpose(inputs[0], attribute(node, "perm"))).reshape(
        np.transpose(inputs[0], attribute(node, "perm")).shape
    )


@fold("Expand", dtypes=ANY)
def _expanded(node: ir.Node, inputs: Arrays) -> Any:
    return np.broadcast_to(inputs[0], np.broadcast_shapes(inputs[0].shape, _numbers(inputs[1])))


@fold("Tile", dtypes=ANY)
def _repeated(node: ir.Node, inputs: Arrays) -> Any:
    data, repeats = inputs[0], _numbers(inputs[1])
    return np.tile(data, repeats) if len(repeats) == data.ndim and min(repeats, default=0) >= 0 else None


@fold("Concat", dtypes=ANY)
def _joined(node: ir.Node, inputs: Arrays) -> Any:
    axis = attribute(node, "axis")
    # Parts of size 0 along the axis may have other sizes along the others.
    parts = [each for each in inputs if each.size or each.shape[axis]]
    return np.concatenate(parts or inputs[:1], axis=axis)


@fold("Split", dtypes=ANY)
def _parts(node: ir.Node, inputs: Arrays) -> Any:
    if len(inputs) < 2 or inputs[1] is None:
        return None
    data, sizes, axis = inputs[0], _numbers(inputs[1]), attribute(node, "axis", 0)
    if min(sizes) < 0 or sum(sizes) != data.shape[axis]:
        return None
    return tuple(np.split(data, np.cumsum(sizes)[:-1], axis=axis))


@fold("Slice", dtypes=ANY)
def _cut(node: ir.Node, inputs: Arrays) -> Any:
    data, starts, ends, axes, steps = (*inputs, None, None)[:5]
    places = range(len(starts)) if axes is None else [int(axis) for axis in axes]
    strides = [1] * len(starts) if steps is None else _numbers(steps)
    cut: list[slice] = [slice(None)] * data.ndim
    seen = set()
    for start, end, axis, step in zip(_numbers(starts), _numbers(ends), places, strides, strict=True):
        if axis % data.ndim in seen or not -data.ndim <= axis < data.ndim:
            return None
        seen.add(axis % data.ndim)
        elements = sliced(data.shape[axis], start, end, step)
        # An end before the first element has no other name in Python.
        stop = elements.stop if elements.stop >= 0 else None
        cut[axis] = slice(elements.start, stop, step) if elements else slice(0, 0)
    return data[tuple(cut)]


@fold("Pad", dtypes=ANY)
def _padded(node: ir.Node, inputs: Arrays) -> Any:
    """With a constant; negative pads cut."""
    data, pads, value, axes = (*inputs, None, None)[:4]
    if attribute(node, "mode", "constant") != "constant":
        return None
    places = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
    amounts = np.zeros((data.ndim, 2), np.int64)
    for axis, *pair in zip(places, *np.split(pads.astype(np.int64), 2), strict=True):
        amounts[axis] = pair
    if np.any(data.shape + amounts.sum(axis=1) < 0) or np.any(data.shape + np.minimum(amounts, 0).sum(axis=1) < 0):
        return None
    kept = data[
        tuple(
            slice(max(-before, 0), size - max(-after, 0))
            for size, (before, after) in zip(data.shape, amounts.tolist(), strict=True)
        )
    ]
    if data.dtype == object and value is None:
        return None
    filling = data.dtype.type(0) if value is None else value.reshape(-1)[0]
    return np.pad(kept, np.maximum(amounts, 0), constant_values=filling)


@fold("Trilu", dtypes=tuple(t for t in ANY if t != ir.DataType.STRING))
def _triangle(node: ir.Node, inputs: Arrays) -> Any:
    data, k = (*inputs, None)[:2]
    if data.ndim < 2:
        return None
    most = max(data.shape[-2:])
    diagonal = 0 if k is None else max(-most - 1, min(int(k.reshape(-1)[0]), most + 1))
    return np.triu(data, diagonal) if attribute(node, "upper", 1) else np.tril(data, diagonal)
