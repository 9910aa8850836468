"""Types in the bodies of If, Loop and Scan, and of the outputs of these nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import attribute, detach, set_attributes, subgraphs
from py_ort.ir.rules import Rules
from py_ort.ir.value_types import like

Visit = Callable[[ir.Graph], None]
_rule = Rules[Callable[[ir.Node, Visit], None]]()


def infer_control(node: ir.Node, visit: Visit) -> None:
    """Give the subgraphs' inputs their types, infer inside, and take the outputs' types from there."""
    (_rule.of(node) or _infer_bodies)(node, visit)


def _infer_bodies(node: ir.Node, visit: Visit) -> None:
    for body in subgraphs(node):
        visit(body)


def _merge(value: ir.Value, sources: list[ir.Value]) -> None:
    """Give `value` the type and sizes that all of `sources` have in common."""
    types = [s.type for s in sources if s.type is not None]
    if not types:
        return
    value.type = types[0]
    shapes = [s.shape for s in sources]
    if any(s is None or len(s) != len(shapes[0]) for s in shapes):  # type: ignore[arg-type]
        value.shape = None
        return
    value.shape = ir.Shape([d[0] if all(e == d[0] for e in d) else None for d in zip(*shapes, strict=True)])


@_rule("If")
def _infer_if(node: ir.Node, visit: Visit) -> None:
    _infer_bodies(node, visit)
    branches = subgraphs(node)
    for i, output in enumerate(node.outputs):
        _merge(output, [branch.outputs[i] for branch in branches])


#: Of a Loop: the states whose rank is not known to be the same in all iterations.
_RANKLESS = "py_ort.states_without_rank"


def _give_states(node: ir.Node, body: ir.Graph, rankless: Collection[int]) -> None:
    for value, dtype in zip(body.inputs[:2], (ir.DataType.INT64, ir.DataType.BOOL), strict=False):
        value.type = ir.TensorType(dtype)
    body.inputs[0].shape = ir.Shape([])
    for i, (inner, outer) in enumerate(zip(body.inputs[2:], node.inputs[2:], strict=False)):
        if outer is not None and outer.type is not None:
            inner.type = outer.type
            # A state may change its sizes from iteration to iteration: trust the rank only.
            inner.shape = ir.Shape([None] * len(outer.shape)) if outer.shape is not None and i not in rankless else None


def _same_rank(before: ir.Value, after: ir.Value) -> bool:
    return before.shape is not None and after.shape is not None and len(before.shape) == len(after.shape)


@_rule("Loop")
def _infer_loop(node: ir.Node, visit: Visit) -> None:
    body = attribute(node, "body")
    carried = len(node.inputs) - 2
    first = _RANKLESS not in node.meta
    rankless: set[int] = node.meta.setdefault(_RANKLESS, set())
    while True:
        _give_states(node, body, rankless)
        # Rewrites rely on ranks: a body that was visited with a wrong one is of no use.
        untouched = body.clone(allow_outer_scope_values=True) if first and carried > len(rankless) else None
        visit(body)
        pairs = zip(body.inputs[2:], body.outputs[1 : 1 + carried], strict=False)
        found = {i for i, (before, after) in enumerate(pairs) if before.shape is None or not _same_rank(before, after)}
        if found == rankless or untouched is None:
            break
        rankless |= found
        detach(body)
        body = untouched
        set_attributes(node, body=body)
    if untouched is not None:
        detach(untouched)
    for output, inner in zip(node.outputs[:carried], body.outputs[1:], strict=False):
        output.type = inner.type
        output.shape = None if inner.shape is None else ir.Shape([None] * len(inner.shape))
    for output, inner in zip(node.outputs[carried:], body.outputs[1 + carried :], strict=False):
        like(output, inner, None if inner.shape is None else [None, *inner.shape])


def _check_axis(node: ir.Node, axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        where: dict[str, Any] = {"node": node.name or "", "op_type": node.op_type, "domain": node.domain}
        raise InvalidGraph(f"axis {axis} of Scan is none of a tensor of rank {rank}", **where)


@_rule("Scan")
def _infer_scan(node: ir.Node, visit: Visit) -> None:
    if (
        node.version is not None and node.version < 9
    ):  # its inputs have a batch, and lengths come first: see `batched_scan`
        return _infer_bodies(node, visit)
    body = attribute(node, "body")
    scanned: int = attribute(node, "num_scan_inputs")
    states = len(node.inputs) - scanned
    in_axes: Any = attribute(node, "scan_input_axes") or [0] * scanned
    for inner, outer in zip(body.inputs[:states], node.inputs[:states], strict=False):
        if outer is not None:
            like(inner, outer)
    for inner, outer, axis in zip(body.inputs[states:], node.inputs[states:], in_axes, strict=False):
        if outer is not None and outer.type is not None:
            inner.type = outer.type
            if outer.shape is not None:
                kept = list(outer.shape)
                _check_axis(node, axis, len(kept))
                del kept[axis]
                inner.shape = ir.Shape(kept)
    visit(body)
    for output, inner in zip(node.outputs[:states], body.outputs, strict=False):
        like(output, inner)
    out_axes: Any = attribute(node, "scan_output_axes") or [0] * (len(node.outputs) - states)
    for output, inner, axis in zip(node.outputs[states:], body.outputs[states:], out_axes, strict=False):
        if inner.shape is None:
            like(output, inner)
            continue
        grown = list(inner.shape)
        _check_axis(node, axis, len(grown) + 1)
        grown.insert(axis if axis >= 0 else axis + len(grown) + 1, None)
        like(output, inner, grown)
