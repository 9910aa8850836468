"""Rows written into a cache at their places along one axis → TensorScatter, which takes a cache on the GPU in place.

PyTorch's exporters write index_copy and index_put as ScatterND between transposes of the whole cache, or as
ScatterElements whose indices are repeated for each element of a row. Rows at places that nobody proves to lie one
behind the other stay ScatterElements, in place as well. Caches that a Concat makes grow with each run, so none of these
can be kept in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.attention.rotary_caches import Make
from py_ort.compiler.passes.match import drop, made_by, only_user, same_size, size_at
from py_ort.compiler.passes.rewrite import rewrite, runs
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, origins, rank, remove, replace_value, scalar
from py_ort.ir.operators import op_types
from py_ort.ir.shape_data import product

_DEPTH = 8
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


@rewrite(
    "ScatterND",
    needs=runs("TensorScatter"),
    before=("attention",),  # which may know a cache by its repeated heads, but none between transposes
)
def cache_writes(node: ir.Node) -> bool:
    """Take each ScatterND between transposes, then each ScatterElements of whole rows.

    Caches are [batch, …, length, …]; the axis that is written along is not the first.
    """
    return _fuse(node, _between_transposes(node))


@cache_writes.also("ScatterElements")
def _whole_rows(node: ir.Node) -> bool:
    return _fuse(node, _of_elements(node))


@dataclass
class _Write:
    """`update` is written into `cache` along `axis`, at `places`; `result` is all of the cache then."""

    cache: ir.Value
    update: Make
    rows: Any
    axis: int
    places: ir.Value
    result: ir.Value


def _between_transposes(node: ir.Node) -> _Write | None:
    """Transpose → ScatterND along the first axis → Transpose back."""
    transpose, back = made_by(node.inputs[0], "Transpose"), only_user(node.outputs[0])
    if transpose is None or back is None or back.domain != "" or back.op_type != "Transpose":
        return None
    cache, places, update = transpose.inputs[0], node.inputs[1], node.inputs[2]
    perm, inverse = attribute(transpose, "perm"), attribute(back, "perm")
    if cache is None or places is None or update is None or not perm or not inverse or rank(places) != 2:
        return None
    axis = perm[0]
    if axis == 0 or list(perm[1:]) != [a for a in range(len(perm)) if a != axis] or size_at(places) != 1:
        return None
    if [perm[i] for i in inverse] != list(range(len(perm))):
        return None

    def plain(build: Builder) -> ir.Value:
        made: ir.Value = build.op("Transpose", update, perm=list(inverse))
        return made

    return _Write(cache, plain, size_at(places, 0), axis, places, back.outputs[0])


def _of_elements(node: ir.Node) -> _Write | None:
    """ScatterElements whose indices are one number for each row of the update."""
    cache, indices, update = node.inputs[:3]
    if cache is None or indices is None or update is None:
        return None
    known, wide, rows = dims(cache), dims(update), dims(indices)
    if known is None or wide is None or rows is None or not len(known) == len(wide) == len(rows):
        return None
    axis = attribute(node, "axis", 0) % len(known)
    others = [i for i in range(len(known)) if i != axis]
    if axis == 0 or not all(same_size(known[i], wide[i]) for i in others):
        return None
    narrow = _one_for_each_row(indices, axis)
    return None if narrow is None else _Write(cache, lambda build: update, rows[axis], axis, narrow, node.outputs[0])


def _one_for_each_row(indices: ir.Value, axis: int) -> ir.Value | None:
    """Return the indices that were repeated along all axes but one."""
    node, count = made_by(indices, "Expand"), rank(indices) or 0
    contents = array(indices)
    if contents is not None and contents.size:
        first = contents[tuple(slice(None) if i == axis else slice(1) for i in range(count))]
        return indices if (contents == first).all() else None
    source = indices if node is None else node.inputs[0]
    known = dims(source)
    if source is None or known is None:
        return None
    padded = [1] * (count - len(known)) + known
    return source if all(size == 1 for i, size in enumerate(padded) if i != axis) else None


def _fuse(node: ir.Node, write: _Write | None) -> bool:
    if write is None or attribute(node, "reduction", "none") not in ("none", b"none"):
        return False
    if write.cache.const_value is not None or write.places.dtype not in _INTEGERS:
        return False
    first = _first_of(write.places, write.rows)
    if first is None and node.op_type == "ScatterElements":
        return False
    build = Builder(node, origin=origins(node))
    result = _anywhere(build, write) if first is None else _in_a_row(build, write, first(build))
    result.type, result.shape = write.cache.type, ir.Shape(dims(write.cache) or [])
    replace_value(write.result, result)
    inputs = list(node.inputs)
    maker = write.result.producer()
    if maker is not None and maker is not node:
        remove(maker)
    remove(node)
    for each in inputs:
        drop(each)
    return True


def _in_a_row(build: Builder, write: _Write, first: ir.Value) -> ir.Value:
    start = build.op("Reshape", build.op("Cast", first, to=int(ir.DataType.INT64)), [1])
    if size_at(write.cache, 0) != 1:
        start = build.op("Expand", start, build.op("Shape", write.cache, start=0, end=1))
    # Around the end, so that places may be counted from there, as they may by Scatter.
    made: ir.Value = build.op(
        "TensorScatter", write.cache, write.update(build), start, axis=write.axis, mode="circular"
    )
    return made


def _anywhere(build: Builder, write: _Write) -> ir.Value:
    """Rows at places of their own: the cache is not transposed, at least."""
    update, count = write.update(build), rank(write.cache) or 0
    places = build.op("Reshape", write.places, [-1 if i == write.axis else 1 for i in range(count)])
    indices = build.op("Expand", places, build.op("Shape", update))
    made: ir.Value = build.op("ScatterElements", write.cache, indices, update, axis=write.axis)
    return made


def _first_of(value: ir.Value | None, count: Any, depth: int = _DEPTH) -> Make | None:
    """Return a function that makes the first of `count` places; None if they are not known to be consecutive."""
    if value is None or depth == 0:
        return None
    contents = array(value)
    if contents is not None:
        flat = contents.reshape(-1)
        steady = flat.size > 0 and np.array_equal(flat, flat[0] + np.arange(flat.size))
        return (lambda build: build.constant(np.array([flat[0]], np.int64))) if steady else None
    if isinstance(count, int) and count == 1:
        return lambda build: build.op("Slice", build.op("Reshape", value, [-1]), [0], [1], [0])
    node = made_by(value, *op_types("view"), "Cast", "Range", "Add")
    if node is None:
        return None
    if node.op_type == "Range":
        start = node.inputs[0]
        return (lambda build: start) if start is not None and scalar(node.inputs[2]) == 1 else None
    if node.op_type != "Add":
        return _first_of(node.inputs[0], count, depth - 1)
    for at in (0, 1):
        moved = node.inputs[1 - at]
        one = dims(moved)
        inner = _first_of(node.inputs[at], count, depth - 1) if one is not None and product(one) == 1 else None
        if inner is not None:
            return lambda build, inner=inner, moved=moved: build.op(  # type: ignore[misc]
                "Add", build.op("Reshape", inner(build), [1]), build.op("Reshape", moved, [1])
            )
    return None
