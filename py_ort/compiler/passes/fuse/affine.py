"""Chains of x + c, x - c, x * c, x / c with constants c → at most one Mul and one Add.

The normal form is Mul, then Add, which convolutions and matrix products can take over.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_of, only_for, rounded, split_constant
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims, origins, rank, remove, replace_value, required
from py_ort.ir.operators import operator

_LARGEST = 1 << 16  # elements of a constant that is computed again
_FAR = 4  # nodes that are looked at, one behind the other
#: Operators with steps, such as comparisons and Casts to integers.
_STEPS = ("Ceil", "Floor", "Mod", "Round", "Sign")


class Affine(Pass):
    """Merge constants of neighboring Add, Sub, Mul and Div."""

    def call(self, model: ir.Model) -> int:
        """First the normal form of each node, then runs of them, each from its last node, until none is left."""
        count = 0
        for node in nodes_of(model, "Sub", "Div"):
            count += not _is_stepped(node.outputs[0]) and _normalize(node)
        while merged := sum(map(_merge, reversed(list(nodes_of(model, "Add", "Mul"))))):
            count += merged
        return count


def _is_stepped(value: ir.Value) -> bool:
    """Return True if a step follows soon: the last bit decides there (41 / 41 is 1, 41 * (1 / 41) is less)."""
    found, seen = [value], {value}
    for _ in range(_FAR + 1):
        readers = dict.fromkeys(node for one in found for node, _ in one.uses())
        found = []
        for node in readers:
            made = node.outputs[0].dtype
            if node.op_type in _STEPS or (made is not None and not made.is_floating_point()):
                return True
            declared = operator(node.domain, node.op_type)
            if declared.view or declared.layout == "elementwise":
                found += [output for output in node.outputs if output not in seen]
        seen.update(found)
    return False


def _float_constant(node: ir.Node) -> tuple[ir.Value, np.ndarray] | None:
    found = split_constant(node)
    if found is None or found[1].dtype.kind != "f" or found[1].size > _LARGEST:
        return None
    other = rank(found[0])
    # The result must keep the shape of the variable side.
    return found if other is not None and found[1].ndim <= other and _broadcasts_into(found[1], found[0]) else None


def _broadcasts_into(contents: np.ndarray, value: ir.Value) -> bool:
    known = dims(value) or []
    return all(size == 1 or size == dim for size, dim in zip(reversed(contents.shape), reversed(known), strict=False))


def _normalize(node: ir.Node) -> bool:
    """x - c → x + (-c); x / c → x * (1 / c)."""
    if node.inputs[1] is None or node.inputs[1].const_value is None:
        return False
    found = _float_constant(node)
    if found is None:
        return False
    x, c = found
    build = Builder(node)
    if node.op_type == "Sub":
        build.finish(build.op("Add", x, -c))
        return True
    with np.errstate(all="ignore"):
        inverse = rounded(1.0 / c.astype(np.float64), c.dtype)
    if inverse is None or not np.all(np.isfinite(inverse)):
        return False
    build.finish(build.op("Mul", x, inverse))
    return True


def _merge(last: ir.Node) -> bool:
    """Make a Mul and an Add of the run of nodes that ends here, all at once: runs may be long."""
    if last.graph is None or _is_stepped(last.outputs[0]):
        return False
    run, scale, offset = _run(last)
    if len(run) < 2 or [node.op_type for node in run] == ["Mul", "Add"]:
        return False
    build = Builder(last, origin=tuple(origin for node in run for origin in origins(node)))
    result = required(split_constant(run[0]))[0]
    for op, constant in (("Mul", scale), ("Add", offset)):
        if constant is not None:
            result = build.op(op, result, constant)
    replace_value(last.outputs[0], result)
    for node in reversed(run):
        remove(node)
    return True


def _run(last: ir.Node) -> tuple[list[ir.Node], np.ndarray | None, np.ndarray | None]:
    """Return the nodes that can be merged, in order, with their total factor and shift.

    The constants are small together, too, and their type holds what becomes of them.
    """
    run: list[ir.Node] = []
    scale = offset = None  # of all behind a node, exactly
    held: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    shape: tuple[int, ...] = ()
    dtype: np.dtype | None = None
    node: ir.Node | None = last
    while node is not None and (found := _float_constant(node)) is not None:
        x, c = found
        shape, dtype = np.broadcast_shapes(shape, c.shape), dtype or c.dtype
        if math.prod(shape) > _LARGEST or dtype != c.dtype:
            break
        exact = c.astype(np.float64)
        with np.errstate(all="ignore"):
            if node.op_type == "Mul":
                scale = exact if scale is None else exact * scale
            else:  # (y + d) * c = y * c + d * c
                more = exact if scale is None else exact * scale
                offset = more if offset is None else more + offset
        made = [None if one is None else rounded(one, c.dtype) for one in (scale, offset)]
        if (scale is not None and made[0] is None) or (offset is not None and made[1] is None):
            break
        held = made[0], made[1]
        run.append(node)
        node = made_by(x, "Add", "Mul") if only_for(x, node) else None
    return run[::-1], *held
