"""LayerNormalization from its parts: (x - mean) / sqrt(mean((x - mean)²) + ε) * scale + bias, over the last axes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, array, attribute, dims, ints, origins, rank, remove, replace_value
from py_ort.passes.match import made_by, near, nodes_of, only_for, only_user, split_constant
from py_ort.passes.pass_base import Pass


class LayerNorm(Pass):
    """Found from its division, forwards to scale and bias."""

    def call(self, model: ir.Model) -> int:
        """Try each Div, and each Mul by a reciprocal."""
        return sum(_fuse(node) for node in nodes_of(model, "Div"))


def last_axes(node: ir.Node) -> int | None:
    """For a ReduceMean that keeps its axes and reduces the last ones: the first of them, counted from the end."""
    axes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    known = rank(node.inputs[0])
    if axes is None or known is None or not attribute(node, "keepdims", 1):
        return None
    from_end = sorted(a - known if a >= 0 else a for a in axes)
    return from_end[0] if from_end == list(range(from_end[0], 0)) else None


def _squared(value: ir.Value | None, centred: ir.Value) -> ir.Node | None:
    node = made_by(value, "Pow", "Mul")
    if node is None or node.inputs[0] is not centred:
        return None
    square = near(node.inputs[1], 2) if node.op_type == "Pow" else node.inputs[1] is centred
    return node if square else None


def _fuse(div: ir.Node) -> bool:
    centred, deviation = div.inputs
    sub = made_by(centred, "Sub")
    root = made_by(deviation, "Sqrt")
    if sub is None or root is None or centred is None:
        return False
    x = sub.inputs[0]
    mean = made_by(sub.inputs[1], "ReduceMean")
    plus = made_by(root.inputs[0], "Add")
    if x is None or mean is None or plus is None or mean.inputs[0] is not x:
        return False
    inside = split_constant(plus)
    variance = None if inside is None else made_by(inside[0], "ReduceMean")
    if inside is None or variance is None or inside[1].size != 1:
        return False
    square = _squared(variance.inputs[0], centred)
    axis = last_axes(mean)
    if square is None or axis is None or last_axes(variance) != axis:
        return False
    epsilon = float(inside[1].reshape(-1)[0])
    normal = div.outputs[0]
    parts = [div, root, plus, variance, square, sub, mean]
    scaled = follow(normal, "Mul", axis, x)
    scale = bias = None
    last = div
    if scaled is not None:
        last, scale = scaled
        shifted = follow(last.outputs[0], "Add", axis, x)
        if shifted is not None:
            last, bias = shifted
    wide = list((dims(x) or [])[axis:])
    if scale is None and not all(isinstance(d, int) for d in wide):
        return False
    trail = [div] if last is div else [div, last] if bias is None else [div, scaled[0], last]  # type: ignore[index]
    build = Builder(last, origin=[n for part in (*reversed(parts), *trail[1:]) for n in origins(part)])
    if scale is None:
        dtype = (x.dtype or ir.DataType.FLOAT).numpy()
        scale = build.constant(np.ones([int(d) for d in wide], dtype))  # type: ignore[arg-type]
    result = build.op("LayerNormalization", x, scale, bias, axis=axis, epsilon=epsilon)
    replace_value(last.outputs[0], result)
    for part in (*reversed(trail[1:]), *parts):
        if not any(o.uses() or o.is_graph_output() for o in part.outputs):
            remove(part)
    return True


def follow(value: ir.Value, op_type: str, axis: int, x: ir.Value) -> tuple[ir.Node, ir.Value] | None:
    """The Mul or Add that alone reads `value`, and its constant of the normalised axes' shape."""
    user = only_user(value)
    if user is None or user.op_type != op_type or user.domain != "" or not only_for(value, user):
        return None
    other = user.inputs[1] if user.inputs[0] is value else user.inputs[0]
    contents = array(other)
    known = dims(x)
    if other is None or contents is None or known is None:
        return None
    wide = known[axis:]
    if contents.ndim != -axis or list(contents.shape) != wide:
        return None
    return user, other
