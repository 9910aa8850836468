"""The parts that normalizations are written in: a mean, a root, a quotient; then scale and shift, and casts.

Matched by meaning, not by the order in which exporters write them; casts from and to float16 included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, near, only_user, reduced_axes, split_constant
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, origins, rank, remove, required

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
Fit = Callable[[np.ndarray], "np.ndarray | None"]
"""Brings a constant to the form that an operator's scale has; None when it does not fit."""


@dataclass
class Normal:
    """`value` is x, less its mean over `axes` if `centered`, over the root of its variance plus `epsilon`."""

    x: ir.Value
    axes: tuple[int, ...]
    epsilon: float
    centered: bool
    value: ir.Value
    nodes: list[ir.Node]

    def last_axes(self) -> int | None:
        """The first of the axes, from the end, when they are the last ones."""
        count = rank(self.x) or 0
        return self.axes[0] - count if self.axes == tuple(range(self.axes[0], count)) else None


@dataclass
class Affine:
    """The scale and shift after a normalization, as `Fit` returned them, or None; `value` is the result with both."""

    x: ir.Value
    value: ir.Value
    scale: ir.Value | np.ndarray | None
    shift: ir.Value | np.ndarray | None
    nodes: list[ir.Node]


def normal_of(node: ir.Node) -> Normal | None:
    """Look for a normalization whose quotient `node` is: a Div, or a Mul by a reciprocal."""
    for top, inside, nodes in _quotients(node):
        found = _variance(inside)
        if found is None or found[0] is not top:
            continue
        _, axes, epsilon, more = found
        parts = [node, *nodes, *more]
        center = less_mean(top, axes)
        if center is None:
            return Normal(top, axes, epsilon, False, node.outputs[0], parts)
        return Normal(center[0], axes, epsilon, True, node.outputs[0], [*parts, *center[1]])
    return None


def multiplied_out(node: ir.Node) -> tuple[Normal, Affine] | None:
    """Look for x k + (shift - mean k), k being the scale over the root, as Keras writes normalizations."""
    for left, right in ((0, 1), (1, 0)):
        product, rest = made_by(node.inputs[left], "Mul"), made_by(node.inputs[right], "Sub")
        subtracted = None if rest is None else made_by(rest.inputs[1], "Mul")
        shared = None if product is None or subtracted is None else set(product.inputs) & set(subtracted.inputs)
        if product is None or rest is None or subtracted is None or not shared or len(shared) != 1:
            continue
        k = next(iter(shared))
        x, mean = (next((v for v in each.inputs if v is not k), None) for each in (product, subtracted))
        scaled, scale, inverse = made_by(k, "Mul"), None, k
        sides = None if scaled is None else split_constant(scaled)
        if scaled is not None and sides is not None:
            inverse = sides[0]
            scale = next(v for v in scaled.inputs if v is not inverse)
        root = _power(inverse, -0.5)
        found = None if root is None else _variance(root[0])
        center = None if found is None else less_mean(found[0], found[1])
        if x is None or root is None or found is None or center is None or rest.inputs[0] is None:
            continue
        if center[0] is not x or center[1][1].outputs[0] is not mean or rest.inputs[0].const_value is None:
            continue
        parts = [
            node,
            product,
            rest,
            subtracted,
            *([scaled] if scale is not None and scaled else []),
            *root[1],
            *found[3],
        ]
        normal = Normal(x, found[1], found[2], True, node.outputs[0], [*parts, *center[1]])
        return normal, Affine(x, node.outputs[0], scale, rest.inputs[0], [])
    return None


def _variance(inside: ir.Value | None) -> tuple[ir.Value, tuple[int, ...], float, list[ir.Node]] | None:
    """For mean(x²) + ε: x, the axes, ε and the nodes. Rounded to float16 a small ε is 0, and not added any more."""
    plus = made_by(inside, "Add")
    sides = (inside, np.zeros(1)) if plus is None else split_constant(plus)
    mean = None if sides is None else made_by(sides[0], "ReduceMean")
    if sides is None or mean is None or sides[1].size != 1:
        return None
    square, axes = made_by(mean.inputs[0], "Pow", "Mul"), _axes(mean)
    if square is None or axes is None or square.inputs[0] is None:
        return None
    if not (near(square.inputs[1], 2) if square.op_type == "Pow" else square.inputs[1] is square.inputs[0]):
        return None
    return square.inputs[0], axes, float(sides[1].reshape(-1)[0]), [*([plus] if plus else []), mean, square]


def _quotients(node: ir.Node) -> list[tuple[ir.Value, ir.Value, list[ir.Node]]]:
    """Return, for x / root or x times the root's reciprocal: x, the root's argument, and the nodes between."""
    if len(node.inputs) != 2 or None in node.inputs:
        return []
    first, second = map(required, node.inputs)
    if node.op_type == "Div":
        root = _power(second, 0.5)
        return [] if root is None else [(first, *root)]
    found = []
    for top, inverse in ((first, second), (second, first)):
        root = _power(inverse, -0.5)
        if root is not None:
            found.append((top, *root))
    return found


def _power(value: ir.Value | None, exponent: float) -> tuple[ir.Value, list[ir.Node]] | None:
    """Return the argument of a root or of its reciprocal, and the nodes."""
    node = made_by(value, "Sqrt", "Pow", "Reciprocal", "Div")
    if node is None or node.inputs[0] is None:
        return None
    if node.op_type == "Sqrt":
        return (node.inputs[0], [node]) if exponent > 0 else None
    if node.op_type == "Pow":
        return (node.inputs[0], [node]) if near(node.inputs[1], exponent) else None
    if exponent > 0 or (node.op_type == "Div" and not near(node.inputs[0], 1)):
        return None
    inner = _power(node.inputs[-1], -exponent)
    return None if inner is None else (inner[0], [node, *inner[1]])


def less_mean(value: ir.Value, axes: tuple[int, ...]) -> tuple[ir.Value, list[ir.Node]] | None:
    """For x less its mean over the axes: x, and the nodes."""
    sub = made_by(value, "Sub")
    mean = None if sub is None else made_by(sub.inputs[1], "ReduceMean")
    if sub is None or mean is None or mean.inputs[0] is not sub.inputs[0] or _axes(mean) != axes:
        return None
    return None if sub.inputs[0] is None else (sub.inputs[0], [sub, mean])


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    """Return the axes of a reduction with keepdims; None without keepdims."""
    return reduced_axes(node) if attribute(node, "keepdims", 1) else None


def affine_after(value: ir.Value, x: ir.Value, fit: Fit, *, shift: bool = True) -> Affine:
    """Follow a Mul and, with `shift`, an Add by constants, and the Cast back where x is made float32 of float16."""
    wide = made_by(x, "Cast")
    narrow = wide.inputs[0] if wide is not None and wide.inputs[0] is not None else None
    if narrow is not None and (x.dtype, narrow.dtype) != (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        narrow = None
    found = Affine(x, value, None, None, [])
    while (user := only_user(found.value)) is not None and user.domain == "":
        if user.op_type == "Cast" and found.x is not narrow and narrow is not None:
            if user.outputs[0].dtype != narrow.dtype:
                break
            found.x = narrow
        elif user.op_type == "Mul" and found.scale is None and found.shift is None:
            found.scale = _fitting(user, found.value, fit)
            if found.scale is None:
                break
        elif user.op_type == "Add" and found.shift is None and shift:
            found.shift = _fitting(user, found.value, fit)
            if found.shift is None:
                break
        else:
            break
        found.nodes.append(user)
        found.value = user.outputs[0]
    return found


def _fitting(node: ir.Node, value: ir.Value, fit: Fit) -> ir.Value | np.ndarray | None:
    """The constant of a Mul or Add; the value itself where it has the right form already."""
    other = node.inputs[1] if node.inputs[0] is value else node.inputs[0]
    contents = array(other)
    made = None if contents is None else fit(contents)
    return other if made is not None and contents is not None and made.shape == contents.shape else made


def numbers(build: Builder, given: ir.Value | np.ndarray | None, like: ir.Value, default: np.ndarray) -> ir.Value:
    """A scale or a shift as an input of the dtype of `like`; `default` where there is none."""
    dtype = (like.dtype or ir.DataType.FLOAT).numpy()
    if isinstance(given, ir.Value) and given.dtype == like.dtype:
        return given
    contents = array(given) if isinstance(given, ir.Value) else default if given is None else given
    assert contents is not None
    return build.constant(np.ascontiguousarray(contents, dtype))


def is_float(value: ir.Value) -> bool:
    """Return True if kernels of normalizations accept the value."""
    return value.dtype in _FLOATS


def builder_for(normal: Normal, affine: Affine) -> Builder:
    """A builder in front of the last node, of all nodes' origins."""
    parts = [*reversed(normal.nodes), *affine.nodes]
    last = affine.value.producer()
    assert last is not None
    return Builder(last, origin=[name for part in parts for name in origins(part)])


def clear(normal: Normal, affine: Affine) -> None:
    """Remove nodes that are now unused."""
    for part in (*reversed(affine.nodes), *normal.nodes):
        if part.graph is not None and not any(o.uses() or o.is_graph_output() for o in part.outputs):
            remove(part)
