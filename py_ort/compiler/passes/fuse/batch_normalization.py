"""BatchNormalization with given statistics → Mul and Add for each channel.

Convolutions take both into their weights later (conv_affine).
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, rank, required


@rewrite("BatchNormalization")
def batch_normalization(node: ir.Node) -> bool:
    """x * scale + shift."""
    return take_apart(node)


def take_apart(node: ir.Node) -> bool:
    """Rewrite one; return True if its scale, bias, mean and variance are constants that allow it."""
    unread = not any(o.uses() or o.is_graph_output() for o in node.outputs[1:])
    if attribute(node, "training_mode", 0) or not unread:
        return False
    x = node.inputs[0]
    known = rank(x)
    parts = [array(v) for v in node.inputs[1:5]]
    if x is None or x.dtype is None or known is None or known < 2 or any(part is None for part in parts):
        return False
    scale, bias, mean, variance = (required(part).astype(np.float64) for part in parts)
    factor = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    shift = bias - mean * factor
    shape = [-1] + [1] * (known - 2)
    dtype = x.dtype.numpy()
    build = Builder(node)
    scaled = build.op("Mul", x, factor.astype(dtype).reshape(shape))
    build.finish(build.op("Add", scaled, shift.astype(dtype).reshape(shape)))
    return True
