"""Operators that give a tensor another shape (Reshape, Transpose, Expand, Tile), and Shape and Size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, ints, rank, remove, set_attributes
from py_ort.ir.operators import Operator, lowering
from py_ort.ir.symbolic_dims import infer_expand, infer_reshape, refine_tile

OPERATORS = [
    Operator("Identity", layout="elementwise", view=True),
    Operator("Reshape", host=(1,), layout="reshape", infer=infer_reshape, view=True),
    Operator("Flatten", view=True),
    Operator("Squeeze", host=(1,), layout="squeeze", view=True),
    Operator("Unsqueeze", host=(1,), layout="unsqueeze", view=True),
    Operator("Transpose", layout="transpose", moves=True),
    Operator("Expand", host=(1,), layout="expand", infer=infer_expand, moves=True, grows=True),
    Operator("Tile", refine=refine_tile, host=(1,), layout="vector", moves=True, grows=True),
    Operator("DepthToSpace", layout="channels", moves=True),
    Operator("SpaceToDepth", layout="channels", moves=True),
    Operator("Trilu", host=(1,)),
    Operator("Shape", shape_only=(0,), layout="shape"),
    Operator("Size", shape_only=(0,), layout="size"),
]


@lowering("Squeeze", "Unsqueeze", before=13)
def axes_attribute(node: ir.Node, build: Builder) -> None:
    """Axes were an attribute."""
    axes = attribute(node, "axes")
    set_attributes(node, axes=None)
    if axes is not None:
        node.resize_inputs(2)
        node.replace_input_with(1, build.constant(np.array(list(axes), np.int64)))


@lowering("Squeeze")
def explicit_axes(node: ir.Node, build: Builder) -> None:
    """Without axes, or with an empty list, every axis of size 1 goes; when the sizes are known, so are the axes."""
    if len(node.inputs) > 1 and node.inputs[1] is not None and ints(node.inputs[1]) != []:
        return
    node.resize_inputs(1)
    known = dims(node.inputs[0])
    if known is not None and all(isinstance(d, int) for d in known):
        node.resize_inputs(2)
        node.replace_input_with(1, build.constant(np.array([i for i, d in enumerate(known) if d == 1], np.int64)))


@lowering("Reshape", before=5)
def shape_attribute(node: ir.Node, build: Builder) -> None:
    """The shape was an attribute."""
    shape = attribute(node, "shape", ())
    set_attributes(node, shape=None, consumed_inputs=None)
    node.resize_inputs(2)
    node.replace_input_with(1, build.constant(np.array(list(shape), np.int64)))


@lowering("Transpose")
def explicit_perm(node: ir.Node, build: Builder) -> None:
    """No perm reverses the axes."""
    known = rank(node.inputs[0])
    if attribute(node, "perm") is None and known is not None:
        set_attributes(node, perm=list(reversed(range(known))))


@lowering("Flatten")
def flatten(node: ir.Node, build: Builder) -> Any:
    """Replace Flatten by a Reshape, if its axis allows that without known sizes."""
    assert node.inputs[0] is not None
    made = flattened(node.inputs[0], attribute(node, "axis", 1), build)
    producer = made.producer()
    if producer is not None and producer.op_type == "Flatten":
        remove(producer)
        return None
    return made


def flattened(x: ir.Value, axis: int, build: Builder) -> ir.Value:
    """Make `x` a matrix: the axes before `axis`, and the others."""
    known = rank(x)
    if known is not None and axis < 0:
        axis += known
    if axis == 0:
        return build.op("Reshape", x, [1, -1])
    if axis == 1 and known is not None and known >= 1 and not _may_be_empty(x):
        return build.op("Reshape", x, [0, -1])
    return build.op("Flatten", x, axis=axis)


def _may_be_empty(value: ir.Value | None) -> bool:
    found = dims(value)
    return found is None or any(d == 0 for d in found) or array(value) is not None


@lowering("Tile", before=6)
def tile_one_axis(node: ir.Node, build: Builder) -> Any:
    """Tile-1 repeated along one axis, both given as tensors."""
    data, tiles, axis = node.inputs
    known = dims(data)
    if known is None:
        return None
    length = build.constant(np.array([len(known)], np.int64))
    repeats = build.op(
        "OneHot",
        build.op("Cast", axis, to=7),
        length,
        build.op("Concat", np.array([1]), build.op("Cast", tiles, to=7), axis=0),
        axis=-1,
    )
    return build.op("Tile", data, build.op("Reshape", repeats, [-1]))


@lowering("SpaceToDepth", before=28)
def space_to_depth_mode(node: ir.Node, build: Builder) -> None:
    """There was one order only."""
    if rank(node.inputs[0]) is not None:
        set_attributes(node, mode="DCR")
