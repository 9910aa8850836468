"""Pad with zeros before a Conv or AveragePool → the window's own pads."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import attribute, ints, origins, rank, remove, scalar, set_attributes, set_origins
from py_ort.passes.match import made_by, nodes_of, only_for
from py_ort.passes.pass_base import Pass


class PaddedWindows(Pass):
    """As TensorFlow's exporters write strided convolutions."""

    before = ("nhwc",)

    def call(self, model: ir.Model) -> int:
        """Take each Pad that one window alone reads."""
        return sum(_fuse(node) for node in nodes_of(model, "Conv", "AveragePool"))


def _fuse(node: ir.Node) -> bool:
    x = node.inputs[0]
    pad = made_by(x, "Pad")
    own = attribute(node, "pads")
    if (
        x is None
        or pad is None
        or own is None
        or not only_for(x, node)
        or attribute(pad, "mode", "constant") != "constant"
    ):
        return False
    # The average of a padded tensor counts what was padded.
    if node.op_type == "AveragePool" and (
        attribute(node, "ceil_mode", 0) or (any(own) and not attribute(node, "count_include_pad", 0))
    ):
        return False
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    count = rank(x)
    extra = _all_axes(pad, count)
    if count is None or extra is None or (value is not None and scalar(value) != 0):
        return False
    spatial = count - 2
    if any(extra[:2] + extra[count : count + 2]) or any(p < 0 for p in extra):
        return False
    added = extra[2:count] + extra[count + 2 :]
    set_attributes(node, pads=[a + b for a, b in zip(own, added, strict=True)])
    if node.op_type == "AveragePool":
        set_attributes(node, count_include_pad=1)
    assert len(added) == 2 * spatial
    node.replace_input_with(0, pad.inputs[0])
    set_origins(node, (*origins(pad), *origins(node)))
    remove(pad)
    return True


def _all_axes(pad: ir.Node, count: int | None) -> list[int] | None:
    """The pads of every axis, begins then ends; None when they are not constants."""
    pads = ints(pad.inputs[1])
    named = pad.inputs[3] if len(pad.inputs) > 3 else None
    if pads is None or count is None:
        return None
    if named is None:
        return pads if len(pads) == 2 * count else None
    axes = ints(named)
    if axes is None:
        return None
    found = [0] * (2 * count)
    for i, axis in enumerate(axes):
        found[axis % count] = pads[i]
        found[axis % count + count] = pads[i + len(axes)]
    return found
