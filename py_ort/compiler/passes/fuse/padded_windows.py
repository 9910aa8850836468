"""Pad before a Conv or pool → the window's own pads, where it pads with that number itself."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.graph import attribute, ints, origins, rank, remove, scalar, set_attributes, set_origins
from py_ort.schema.scalar_functions import FUNCTIONS


@rewrite("Conv", "AveragePool", "MaxPool", before=("nhwc",))
def padded_windows(node: ir.Node) -> bool:
    """Take the Pad that one window alone reads, as TensorFlow's exporters write strided convolutions."""
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
    # The average over a padded tensor includes the padding.
    if node.op_type == "AveragePool" and (
        attribute(node, "ceil_mode", 0) or (any(own) and not attribute(node, "count_include_pad", 0))
    ):
        return False
    count = rank(x)
    extra = _all_axes(pad, count)
    if count is None or extra is None:
        return False
    spatial = count - 2
    if any(extra[:2] + extra[count : count + 2]) or any(p < 0 for p in extra):
        return False
    added = extra[2:count] + extra[count + 2 :]
    if not (_below_every_maximum(node, pad, added) if node.op_type == "MaxPool" else _number(pad) == 0):
        return False
    set_attributes(node, pads=[a + b for a, b in zip(own, added, strict=True)])
    if node.op_type == "AveragePool":
        set_attributes(node, count_include_pad=1)
    assert len(added) == 2 * spatial
    node.replace_input_with(0, pad.inputs[0])
    set_origins(node, (*origins(pad), *origins(node)))
    remove(pad)
    return True


def _number(pad: ir.Node) -> float | None:
    """Return the number that a Pad adds; None if unknown."""
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    return 0 if value is None else scalar(value)


def _below_every_maximum(node: ir.Node, pad: ir.Node, added: list[int]) -> bool:
    """Return True if a MaxPool never picks added elements: every window has others.

    Exporters write a type's least number for -infinity: where a window has only that, either may come out of a pool.
    """
    x, number = pad.inputs[0], _number(pad)
    dtype = None if x is None else x.dtype
    if number is None or dtype not in _LEAST or len(node.outputs) > 1 or attribute(node, "ceil_mode", 0):
        return False
    if number > (0 if made_by(x, *_NOT_NEGATIVE) else _LEAST[dtype]):
        return False
    own, kernel, dilations = attribute(node, "pads"), attribute(node, "kernel_shape"), attribute(node, "dilations")
    # Pads as large as the kernel are no valid model.
    fits = all(a + b < size for a, b, size in zip(own, added, [*kernel, *kernel], strict=True))
    return fits and all(d == 1 for d in dilations or ())


#: The number that no other is below.
_LEAST = {
    ir.DataType.FLOAT: float(np.finfo(np.float32).min),
    ir.DataType.FLOAT16: float(np.finfo(np.float16).min),
    ir.DataType.INT8: -128,
    ir.DataType.UINT8: 0,
}
_NOT_NEGATIVE = ("Softmax", *(row.name for row in FUNCTIONS.values() if row.never_negative))


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
