"""Attention with axes between batch and positions, such as heads and windows → one axis of heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.attention.attention_scores import factor_of, scores_of, unscaled
from py_ort.compiler.passes.fuse.transposed_products import swapped
from py_ort.compiler.passes.match import only_user, same_size
from py_ort.compiler.passes.rewrite import rewrite, runs
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins, rank, remove, replace_value, required
from py_ort.ir.shape_data import product

_HEADED = 4
"""Axes that an attention has: batch, heads, positions, size."""


@rewrite("Softmax", needs=runs("Attention"), before=("transposed_attention", "attention"))
def stacked_heads(softmax: ir.Node) -> bool:
    """[batch, heads, windows, positions, size], as Hiera and NesT write it: each window of a head is a head."""
    count = rank(softmax.outputs[0])
    if count is None or count <= _HEADED or attribute(softmax, "axis", -1) not in (-1, count - 1):
        return False
    scores, last = scores_of(softmax.inputs[0], softmax), only_user(softmax.outputs[0])
    if scores is None or any(node.op_type not in ("Mul", "Div") for node in scores.nodes):
        return False
    if last is None or last.domain != "" or last.op_type != "MatMul" or last.inputs[0] is not softmax.outputs[0]:
        return False
    operands = [*scores.product.inputs, last.inputs[1]]
    shapes = [dims(v) for v in (*operands, last.outputs[0])]
    if any(shape is None or len(shape) != count for shape in shapes) or len(last.inputs) > 2:
        return False
    leads = [required(shape)[:-2] for shape in shapes]
    if not all(same_size(a, b) for lead in leads[1:] for a, b in zip(lead, leads[0], strict=True)):
        return False
    back = reshape_target(shapes[3] or [], _flat(shapes[3]))
    if any(_target(shape) is None for shape in shapes[:3]) or back is None:
        return False
    scales: list[ir.Node] = []
    scale = scores.scale * unscaled(operands[0], scales) * unscaled(operands[1], scales)
    for node in scales:
        replace_value(node.outputs[0], required(factor_of(node))[0])
        remove(node)
    nodes = [scores.product, *scores.nodes, softmax, last]
    build = Builder(last, origin=[name for node in nodes for name in origins(node)])
    keys = swapped(scores.product.inputs[1])  # attention expects keys that are not transposed
    transposed = _merged(build, keys or scores.product.inputs[1])
    if keys is not None:
        transposed = build.op("Transpose", transposed, perm=[0, 1, 3, 2])
    made = build.op("MatMul", _merged(build, scores.product.inputs[0]), transposed)
    made = build.op("Mul", made, np.array(scale, made.dtype.numpy())) if scale != 1 else made
    build.finish(
        build.op("Reshape", build.op("MatMul", build.op("Softmax", made, axis=-1), _merged(build, operands[2])), back)
    )
    for node in reversed(nodes[:-1]):
        remove(node)
    return True


def _flat(shape: Sequence[Any] | None) -> list[Any] | None:
    heads = product(shape[1:-2]) if shape else None
    return None if heads is None or not shape else [shape[0], heads, *shape[-2:]]


def _target(shape: Sequence[Any] | None) -> list[int] | None:
    flat = _flat(shape)
    return None if flat is None else reshape_target(flat, shape)


def _merged(build: Builder, value: ir.Value | None) -> ir.Value:
    made: ir.Value = build.op("Reshape", value, _target(dims(value)))
    return made
