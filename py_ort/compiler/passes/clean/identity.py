"""Removes nodes without effect: Identity, Dropout at inference, Cast to the same type, Add 0, Mul 1, and the like."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import same_size
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.graph import (
    add_constant,
    all_nodes,
    array,
    attribute,
    dims,
    ints,
    permutation,
    remove,
    replace_value,
    required,
    scalar,
    static_sizes,
)
from py_ort.ir.operators import operator
from py_ort.ir.rules import Rules

_rule = Rules[Callable[[ir.Node], bool]]()
"""Predicates: does a node return its input unchanged? By operator."""


class Identity(Pass):
    """Remove nodes that return their input unchanged."""

    def __init__(self, *, but: Collection[str] = ()) -> None:
        """`but`: operators to leave."""
        self._but = but

    def call(self, model: ir.Model) -> int:
        """Remove nodes that return their input."""
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.graph is None or node.op_type in self._but or not _passes_on(node):
                continue
            source, output = node.inputs[_data_input(node)], node.outputs[0]
            assert source is not None
            if any(o.uses() or o.is_graph_output() for o in node.outputs[1:]) and not _true_mask(node):
                continue
            if output.is_graph_output() and not _may_be_renamed(source, output):
                if node.op_type != "Identity":
                    continue
                if not output.uses():
                    continue
                for user, index in list(output.uses()):  # the graph's output keeps its copy, all others read the source
                    user.replace_input_with(index, source)
                count += 1
                continue
            replace_value(output, source)
            remove(node)
            count += 1
        return count


@_rule("Identity")
def _always(node: ir.Node) -> bool:
    return True


def _data_input(node: ir.Node) -> int:
    """The input passed on: for commutative operators the constant may come first."""
    return (
        1
        if operator("", node.op_type).commutative
        and node.inputs[0] is not None
        and node.inputs[0].const_value is not None
        else 0
    )


def _true_mask(node: ir.Node) -> bool:
    """Replace a Dropout's mask, which is all true at inference, by a constant, if its size is known."""
    if node.op_type != "Dropout":
        return False
    mask, known = node.outputs[1], static_sizes(dims(node.inputs[0]))
    if known is None or mask.is_graph_output() or node.graph is None:
        return False
    everything = np.broadcast_to(np.bool_(True), known)
    value = add_constant(node.graph, ir.tensor(everything), mask.name)
    mask.replace_all_uses_with(value)
    return True


def _may_be_renamed(source: ir.Value, output: ir.Value) -> bool:
    """Return True if `source` can replace `output` as the graph's output."""
    return (
        not (source.is_graph_output() or source.is_graph_input() or source.is_initializer())
        and source.graph is output.graph
    )


def _passes_on(node: ir.Node) -> bool:
    if node.domain != "" or not node.inputs or node.inputs[0] is None:
        return False
    rule = _rule.of(node)
    if rule is None:
        return operator("", node.op_type).neutral is not None and len(node.inputs) == 2 and _by_neutral(node)
    return rule(node)


@_rule("Dropout")
def _dropout(node: ir.Node) -> bool:
    training = node.inputs[2] if len(node.inputs) > 2 else None
    return training is None or (training.const_value is not None and not scalar(training))


@_rule("Cast")
def _cast(node: ir.Node) -> bool:
    dtype = required(node.inputs[0]).dtype
    return dtype is not None and int(dtype) == attribute(node, "to")


def _by_neutral(node: ir.Node) -> bool:
    """Return True if an operand is the neutral number, and does not widen the other operand."""
    declared = operator("", node.op_type)
    for at in (1, 0) if declared.commutative else (1,):
        constant, other = node.inputs[at], node.inputs[1 - at]
        single = constant is not None and constant.const_value is not None and constant.const_value.size == 1
        contents = array(constant) if single else None
        if contents is None or other is None or contents.reshape(-1)[0] != declared.neutral:
            continue
        known = None if other.const_value is not None else dims(other)
        if known is not None and contents.ndim <= len(known) and (at == 1 or _data_input(node) == 1):
            return True
    return False


@_rule("Reshape", "Expand", "Flatten")
def _same_shape(node: ir.Node) -> bool:
    before, after = dims(node.inputs[0]), dims(node.outputs[0])
    if before is None or after is None or len(before) != len(after):
        return False
    return all(map(same_size, before, after))


@_rule("Transpose")
def _no_permutation(node: ir.Node) -> bool:
    perm = permutation(node)
    return perm is not None and perm == sorted(perm)


@_rule("Squeeze", "Unsqueeze")
def _no_axes(node: ir.Node) -> bool:
    return len(node.inputs) > 1 and ints(node.inputs[1]) == []


@_rule("Pad")
def _no_pads(node: ir.Node) -> bool:
    pads = ints(node.inputs[1]) if len(node.inputs) > 1 else None  # which older ones have as attributes
    return pads is not None and not any(pads)


@_rule("Slice")
def _whole(node: ir.Node) -> bool:
    if len(node.inputs) < 3:  # an older one, which has attributes
        return False
    step = node.inputs[4] if len(node.inputs) > 4 else None
    starts, ends, steps = ints(node.inputs[1]), ints(node.inputs[2]), ints(step)
    if starts is None or ends is None or (step is not None and steps is None):
        return False
    if not all(s == 1 for s in steps or []):
        return False
    return (all(s == 0 for s in starts) and all(e >= 2**31 - 1 for e in ends)) or _same_shape(node)


@_rule("Concat")
def _one_input(node: ir.Node) -> bool:
    return len(node.inputs) == 1


@_rule("Tile")
def _all_one(node: ir.Node) -> bool:
    repeats = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    return repeats is not None and all(r == 1 for r in repeats)
