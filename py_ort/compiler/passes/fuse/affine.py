"""Chains of x + c, x - c, x * c, x / c with constants c → at most one Mul and one Add.

The normal form is Mul, then Add, which convolutions and matrix products can take over.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_of, only_for, rounded, split_constant
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims, origins, rank, remove, replace_value
from py_ort.ir.operators import operator

_LARGEST = 1 << 16  # elements of a constant that is computed again
_FAR = 4  # nodes that are looked at, one behind the other
#: Their results jump, as those of Casts to integers.
_STEPS = ("Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod", "Round", "Sign")


class Affine(Pass):
    """Merge constants of neighboring Add, Sub, Mul and Div."""

    def call(self, model: ir.Model) -> int:
        """First the normal form of each node, then pairs, until nothing is left to merge."""
        count = 0
        for node in nodes_of(model, "Sub", "Div"):
            count += not _is_stepped(node.outputs[0]) and _normalize(node)
        for node in nodes_of(model, "Add", "Mul"):
            while not _is_stepped(node.outputs[0]) and (merged := _merge(node)) is not None:
                node = merged
                count += 1
        return count


def _is_stepped(value: ir.Value, depth: int = _FAR) -> bool:
    """Return True if a step follows soon: the last bit decides there (41 / 41 is 1, 41 * (1 / 41) is less)."""
    for node, _ in value.uses():
        made = node.outputs[0].dtype
        if node.op_type in _STEPS or (node.op_type == "Cast" and made is not None and not made.is_floating_point()):
            return True
        declared = operator(node.domain, node.op_type)
        passes_on = declared.view or declared.layout == "elementwise"
        if depth and passes_on and any(_is_stepped(output, depth - 1) for output in node.outputs):
            return True
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


def _merge(node: ir.Node) -> ir.Node | None:
    """Merge `node` with the one before it; return the node that took its place."""
    found = _float_constant(node)
    if found is None:
        return None
    x, c = found
    before = made_by(x, "Add", "Mul")
    if before is None or not only_for(x, node):
        return None
    inner = _float_constant(before)
    if inner is None or inner[1].dtype != c.dtype:
        return None
    y, d = inner
    if node.op_type == "Add" and before.op_type == "Mul":
        return None  # y * d + c is the normal form
    combine = np.add if node.op_type == "Add" else np.multiply
    combined = rounded(combine(c, d, dtype=np.float64), c.dtype)
    if combined is None:
        return None
    build = Builder(node, origin=(*origins(before), *origins(node)))
    if before.op_type == node.op_type:
        result = build.op(node.op_type, y, combined)
    else:  # (y + d) * c = y * c + d * c
        result = build.op("Add", build.op("Mul", y, c), combined)
    for output in node.outputs:
        replace_value(output, result)
    remove(node)
    remove(before)
    made = result.producer()
    if node.op_type == "Mul" and before.op_type == "Add":
        inner_node = made.inputs[0].producer()
        _merge(inner_node)
    return made
