"""x * k + b of an image, with constants per channel → a depthwise convolution of 1x1, which takes an activation too.

What is left of a BatchNormalization before its convolution (DenseNet) is one kernel instead of three. Where channels
come first it would be two transposes more.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.windows import TRANSPARENT
from py_ort.compiler.passes.match import per_channel, split_mul_add
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims, origins, remove, replace_value
from py_ort.ir.operators import operator

_WINDOWS = ("conv", "pool")
_FAR = 4  # nodes that are looked at, one behind the other


def _layout(node: ir.Node) -> str:
    return operator(node.domain, node.op_type).layout


def _is_window_before(value: ir.Value | None, depth: int = _FAR) -> bool:
    """Return True if a convolution or pool makes the image, through operators that keep the order of axes."""
    node = None if value is None else value.producer()
    if node is None or depth == 0:
        return False
    inputs = node.inputs if _layout(node) in ("elementwise", "concat") else node.inputs[:1]
    return _layout(node) in _WINDOWS or (
        _layout(node) in TRANSPARENT and any(_is_window_before(v, depth - 1) for v in inputs)
    )


def _is_window_behind(value: ir.Value, depth: int = _FAR) -> bool:
    """Return True if a convolution or pool reads the image, through such operators."""
    if depth == 0:
        return False
    if any(index == 0 and _layout(node) in _WINDOWS for node, index in value.uses()):
        return True
    readers = [node for node, _ in value.uses() if _layout(node) in TRANSPARENT]
    return any(_is_window_behind(output, depth - 1) for node in readers for output in node.outputs)


@rewrite("Add", repeat=True, after=("conv_affine",))  # which takes the Adds that follow a convolution
def scale_shift(add: ir.Node) -> bool:
    """Replace x * constant + constant by a depthwise 1x1 Conv, if x comes from a window or goes to one.

    The new Conv is a window, too, so its neighbors may be replaced in the next round.
    """
    found = split_mul_add(add)
    if found is None:
        return False
    mul, x, factor, shift = found
    known = dims(x)
    if (
        known is None
        or len(known) != 4
        or not isinstance(known[1], int)
        or known[1] < 2
        or x.dtype != ir.DataType.FLOAT
    ):
        return False
    if all(d == 1 for d in known[2:]) or not (_is_window_behind(add.outputs[0]) or _is_window_before(x)):
        return False  # a vector is not worth a window; nor is an image that has channels first anyway
    factors, terms = (per_channel(c, 4, known[1]) for c in (factor, shift))
    if factors is None or terms is None:
        return False
    build = Builder(add, origin=(*origins(mul), *origins(add)))
    result = build.op(
        "Conv",
        x,
        np.ascontiguousarray(factors).reshape(-1, 1, 1, 1),
        np.ascontiguousarray(terms),
        kernel_shape=[1, 1],
        strides=[1, 1],
        dilations=[1, 1],
        pads=[0, 0, 0, 0],
        group=known[1],
    )
    replace_value(add.outputs[0], result)
    remove(add)
    remove(mul)
    return True
