"""RMSNormalization from its parts: x / sqrt(mean(x²) + ε) * scale, over the last axes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, array, dims, origins, remove, replace_value
from py_ort.passes.layer_norm import follow, last_axes
from py_ort.passes.match import made_by, near, nodes_of, split_constant
from py_ort.passes.pass_base import HasOperator, Pass


class RmsNorm(Pass):
    """Found from its division, or from the product with the reciprocal."""

    def __init__(self, has_operator: HasOperator) -> None:
        """`has_operator` tells whether the first provider has RMSNormalization."""
        self._has_operator = has_operator

    def call(self, model: ir.Model) -> int:
        """Try each Div and Mul."""
        if not self._has_operator("", "RMSNormalization"):
            return 0
        return sum(_fuse(node) for node in nodes_of(model, "Div", "Mul"))


def _root(node: ir.Node) -> tuple[ir.Value, ir.Value, list[ir.Node]] | None:
    """For x / root, or x times the reciprocal of a root: x, what the root is taken of, and the nodes between."""
    if node.op_type == "Div":
        root = made_by(node.inputs[1], "Sqrt")
        if root is None or node.inputs[0] is None or root.inputs[0] is None:
            return None
        return node.inputs[0], root.inputs[0], [root]
    for at in (0, 1):
        x, inverse = node.inputs[1 - at], made_by(node.inputs[at], "Reciprocal", "Div")
        if x is None or inverse is None:
            continue
        if inverse.op_type == "Div" and not near(inverse.inputs[0], 1):
            continue
        root = made_by(inverse.inputs[-1], "Sqrt")
        if root is not None and root.inputs[0] is not None:
            return x, root.inputs[0], [inverse, root]
    return None


def _fuse(node: ir.Node) -> bool:
    found = _root(node)
    plus = None if found is None else made_by(found[1], "Add")
    inside = None if plus is None else split_constant(plus)
    mean = None if inside is None else made_by(inside[0], "ReduceMean")
    if found is None or plus is None or inside is None or mean is None or inside[1].size != 1:
        return False
    x, axis = found[0], last_axes(mean)
    square = made_by(mean.inputs[0], "Pow", "Mul")
    if square is None or axis is None or square.inputs[0] is not x:
        return False
    if not (near(square.inputs[1], 2) if square.op_type == "Pow" else square.inputs[1] is x):
        return False
    wide = list((dims(x) or [])[axis:])
    scaled = follow(node.outputs[0], "Mul", axis, x)
    last = node if scaled is None else scaled[0]
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) or last.graph is not mean.graph:
        return False
    if scaled is None and not all(isinstance(d, int) for d in wide):
        return False
    parts = [node, *found[2], plus, mean, square]
    build = Builder(last, origin=[n for part in reversed(parts) for n in origins(part)] + list(origins(last)))
    scale = build.constant(np.ones(wide, x.dtype.numpy())) if scaled is None else scaled[1]  # type: ignore[arg-type]
    assert array(scale) is not None
    epsilon = float(inside[1].reshape(-1)[0])
    result = build.op("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)
    replace_value(last.outputs[0], result)
    for part in dict.fromkeys([last, *parts]):
        if not any(o.uses() or o.is_graph_output() for o in part.outputs):
            remove(part)
    return True
