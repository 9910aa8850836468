"""Tables of cosines and sines that hold each number twice, as they multiply whole heads: their one half."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.match import made_by, same_size, size_at
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, attributes_of, dims, ints, rank, scalar
from py_ort.ir.operators import operator
from py_ort.ir.rules import Rules

_DEPTH = 16
Make = Callable[[Builder], ir.Value]
"""Makes a value in front of a builder's anchor."""
_rule = Rules[Callable[[ir.Node, bool, int], "Make | None"]]()
"""Functions that derive the half of an operator's output from its inputs' halves; elementwise operators need none."""


def half_of(value: ir.Value | None, interleaved: bool, depth: int = _DEPTH) -> Make | None:
    """For a value whose last axis has everything twice, as two halves or as equal neighbors: how to make it once."""
    known = dims(value)
    if value is None or not known or not isinstance(known[-1], int) or known[-1] % 2 or depth == 0:
        return None
    contents = array(value)
    if contents is not None:
        return _constant(contents, interleaved)
    node = value.producer()
    if node is None or node.domain != "" or len(node.outputs) != 1:
        return None
    rule = _rule.of(node)
    if rule is None and operator("", node.op_type).layout == "elementwise":
        rule = {1: _again, 2: _by_number}.get(len(node.inputs))
    return None if rule is None else rule(node, interleaved, depth - 1)


def _constant(contents: np.ndarray, interleaved: bool) -> Make | None:
    one, other = (contents[..., ::2], contents[..., 1::2]) if interleaved else np.split(contents, 2, axis=-1)
    return (lambda build: build.constant(np.ascontiguousarray(one))) if np.array_equal(one, other) else None


def _again(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    """The same operator on half of its first input."""
    half = half_of(node.inputs[0], interleaved, depth)
    if half is None:
        return None
    return lambda build: build.op(node.op_type, half(build), *node.inputs[1:], **attributes_of(node))


def _by_number(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    for at in (0, 1):
        number = node.inputs[at]
        if scalar(number) is None or (rank(number) or 0) > 1:
            continue
        half = half_of(node.inputs[1 - at], interleaved, depth)
        if half is None:
            return None
        return lambda build: build.op(
            node.op_type, *((number, half(build)) if at == 0 else (half(build), number)), **attributes_of(node)
        )
    return None


@_rule("Slice", "Gather", "Squeeze", "Unsqueeze", "Transpose")
def _on_axes(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    """Slice, Gather, Squeeze, Unsqueeze and Transpose that leave the last axis where it is, and whole."""
    count = rank(node.inputs[0]) or 0
    axes: list[int] | None
    if node.op_type == "Gather":
        axes = [attribute(node, "axis", 0)]
    elif node.op_type == "Transpose":
        perm = attribute(node, "perm")
        axes = None if perm is None or perm[-1] != count - 1 else []
    elif node.op_type == "Slice":
        axes = ints(node.inputs[3]) if len(node.inputs) > 3 else None
    else:
        axes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
        count = rank(node.outputs[0]) or 0 if node.op_type == "Unsqueeze" else count
    if axes is None or count == 0 or any(axis % count == count - 1 for axis in axes):
        return None
    return _again(node, interleaved, depth)


@_rule("Concat")
def _joined(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    """Concat(f, f): two halves."""
    count = rank(node.outputs[0])
    whole = count is not None and attribute(node, "axis", 0) % count == count - 1
    same = len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
    return _value(node.inputs[0]) if whole and same and not interleaved else None


@_rule("Tile")
def _tiled(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    repeats = ints(node.inputs[1])
    twice = repeats is not None and repeats[-1] == 2 and set(repeats[:-1]) <= {1}
    return _value(node.inputs[0]) if twice and not interleaved else None


@_rule("Reshape")
def _reshaped(node: ir.Node, interleaved: bool, depth: int) -> Make | None:
    """[…, f, 2] of equal neighbors, made […, 2 f]; or a Reshape of the axes before."""
    known, source = dims(node.outputs[0]), node.inputs[0]
    before = dims(source)
    if known is None or before is None:
        return None
    if same_size(before[-1], known[-1]):
        half = half_of(source, interleaved, depth)
        target = reshape_target([*known[:-1], int(known[-1]) // 2], before)  # type: ignore[arg-type]
        return None if half is None or target is None else lambda build: build.op("Reshape", half(build), target)
    if not interleaved or len(before) != len(known) + 1 or not all(map(same_size, before[:-2], known[:-1])):
        return None
    stacked = made_by(source, "Expand", "Tile", "Concat")
    if stacked is None or before[-1] != 2:
        return None
    if stacked.op_type == "Concat":
        if len(stacked.inputs) != 2 or stacked.inputs[0] is not stacked.inputs[1]:
            return None
    elif not all(map(same_size, (dims(stacked.inputs[0]) or before)[:-1], before[:-1])):
        return None
    one, target = stacked.inputs[0], reshape_target(before[:-1], dims(stacked.inputs[0]))
    return None if target is None or size_at(one) != 1 else lambda build: build.op("Reshape", one, target)


def _value(value: ir.Value | None) -> Make | None:
    return None if value is None else lambda build: value
