"""Reshape, Squeeze and Unsqueeze on permuted axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import Forms, Perm, identity, inverse, reshape_target, same_memory, without_axes
from py_ort.compiler.layout.rules import Wanted, form_rule, permuted_vector, rule
from py_ort.ir.graph import array, attribute, dims, ints
from py_ort.ir.shape_data import known, product

Group = tuple[list[int], list[int]]


@form_rule("squeeze")
def squeeze(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """The axes move, then they disappear."""
    axes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    if axes is None:
        return False
    gone = [a % len(perm) for a in axes]
    moved = sorted(inverse(perm)[a] for a in gone)
    forms.emit(node, [x, forms.constant(np.array(moved, np.int64))], without_axes(perm, gone))
    return True


@form_rule("unsqueeze")
def unsqueeze(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """A new axis goes in front of the axis that it precedes in the value."""
    axes = ints(node.inputs[1])
    if axes is None:
        return False
    count = len(perm) + len(axes)
    new = sorted(a % count for a in axes)
    old = [a for a in range(count) if a not in new]
    order = [old[a] for a in perm]
    for axis in reversed(new):
        follower = next((a for a in range(axis + 1, count) if a in order), None)
        order.insert(len(order) if follower is None else order.index(follower), axis)
    moved = [order.index(a) for a in new]
    forms.emit(node, [x, forms.constant(np.array(sorted(moved), np.int64))], tuple(order))
    return True


@dataclass(frozen=True)
class _Choice:
    """One way to do a Reshape: on this form of the input, giving the output under `order`."""

    perm: Perm
    order: Perm
    target: list[int] | Perm


@rule("reshape")
def reshape(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """Reshape a permuted form if its bytes are in the value's order, or if groups of axes become groups of axes."""
    value, shape = node.inputs[0], node.inputs[1]
    if value is None or shape is None or value.const_value is not None:
        return False
    source, target = dims(value), dims(node.outputs[0])
    there = forms.available(value)
    if source is None or target is None or list(there) == [identity(len(source))]:
        return False
    preferred = wanted(node.outputs[0])
    choices = [choice for perm in there for choice in _choices(node, perm, source, target, preferred)]
    best = next((c for c in choices if _agree(c.order, preferred, target)), None)
    if best is None and not forms.is_plain(value):
        best = next(iter(choices), None)
    if best is None:
        return False
    forms.emit(node, [forms.form(value, best.perm), _shape_value(best.target, shape, forms)], best.order, allowzero=0)
    return True


def _agree(order: Perm, preferred: Perm | None, target: list[Any]) -> bool:
    """Return True if two orders of axes are equal except for axes of size 1."""
    if preferred is None or len(preferred) != len(order):
        return False
    ones = {axis for axis, size in enumerate(target) if isinstance(size, int) and size == 1}
    return [a for a in order if a not in ones] == [a for a in preferred if a not in ones]


def source_order(node: ir.Node, preferred: Perm | None) -> Perm | None:
    """The order of the input's axes with which a Reshape can give its output's as they are preferred, or nearly so."""
    source, target = dims(node.inputs[0]), dims(node.outputs[0])
    if preferred is None or source is None or target is None:
        return None
    groups = axis_groups(source, target)
    if groups is None or any(not left or not right for left, right in groups):
        return None
    ordered = sorted(groups, key=lambda group: min(preferred.index(a) for a in group[1]))
    return tuple(axis for left, _ in ordered for axis in left)


def _choices(
    node: ir.Node, perm: Perm, source: list[Any], target: list[Any], preferred: Perm | None
) -> Iterator[_Choice]:
    plain = identity(len(target))
    if same_memory(perm, source):
        found = _target(node, [source[a] for a in perm], target, plain)
        if found is not None:
            yield _Choice(perm, plain, found)
    groups = axis_groups(source, target)
    if groups is None:
        return
    order = _ordered(groups, perm)
    if order is None:  # a group is torn apart: one transpose mends it, and the rest stays as it is
        perm = _mended(groups, perm)
        order = _ordered(groups, perm)
        if order is None or order == plain or perm == identity(len(perm)) or order != preferred:
            return
    found = _target(node, [source[a] for a in perm], [target[a] for a in order], order)
    if found is not None:
        yield _Choice(perm, order, found)


def axis_groups(source: list[Any], target: list[Any]) -> list[Group] | None:
    """Pair runs of axes with equal products; None when the sizes do not tell."""
    groups: list[Group] = []
    i = j = 0
    while i < len(source) or j < len(target):
        left, right = [i] if i < len(source) else [], [j] if j < len(target) else []
        i, j = i + len(left), j + len(right)
        while True:
            a, b = product([source[k] for k in left]), product([target[k] for k in right])
            if a is None or b is None:
                return None
            if a == b:
                break
            if isinstance(a, int) and isinstance(b, int):
                grow_left = a < b
            else:  # symbols: take more on the side that has fewer of them
                grow_left = _symbols(a) < _symbols(b) or (_symbols(a) == _symbols(b) and i < len(source))
            if grow_left and i < len(source):
                left.append(i)
                i += 1
            elif j < len(target):
                right.append(j)
                j += 1
            elif i < len(source):
                left.append(i)
                i += 1
            else:
                return None
        groups.append((left, right))
    return groups


def _symbols(value: Any) -> int:
    return 0 if isinstance(value, int) else len(value.free_symbols())


def _ordered(groups: list[Group], perm: Perm) -> Perm | None:
    """The outputs' axes in the order in which the form has the groups; None when a group is torn apart."""
    order: list[int] = []
    at = 0
    starts = {tuple(left): right for left, right in groups if left}
    stray = [right for left, right in groups if not left]
    while at < len(perm):
        match = next((left for left in starts if left[0] == perm[at]), None)
        if match is None or tuple(perm[at : at + len(match)]) != match:
            return None
        order += starts[match]
        at += len(match)
    for right in stray:
        order += right
    return tuple(order) if sorted(order) == list(range(len(order))) else None


def _mended(groups: list[Group], perm: Perm) -> Perm:
    """The nearest permutation that keeps each group together and in order: groups in the order of their first axes."""
    ordered = sorted((left for left, _ in groups if left), key=lambda left: min(perm.index(a) for a in left))
    return tuple(axis for left in ordered for axis in left)


def _target(node: ir.Node, source: list[Any], target: list[Any], order: Perm) -> list[int] | Perm | None:
    """The new shape as constants, or, as a tuple, the order in which to take the elements of the old one."""
    constant = reshape_target(target, source)
    if constant is not None:
        return constant
    contents = array(node.inputs[1])
    if contents is not None and (attribute(node, "allowzero", 0) or np.any(contents == 0)):
        return None
    if contents is None and any(not known(d) for d in target):
        return None
    return tuple(order)


def _shape_value(plan: list[int] | Perm, shape: ir.Value, forms: Forms) -> ir.Value:
    if isinstance(plan, list):
        return forms.constant(np.array(plan, np.int64))
    return permuted_vector(shape, plan, forms)
