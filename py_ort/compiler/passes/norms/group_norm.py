"""GroupNormalization from the form that exporters write it in: InstanceNormalization between two reshapes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.match import (
    made_by,
    nodes_reading,
    only_user,
    per_channel,
    same_dims,
    split_constant,
)
from py_ort.compiler.passes.rewrite import rewrite, runs
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, origins, remove, replace_value


@rewrite(
    "InstanceNormalization", needs=runs("GroupNormalization"), after=("instance_norm",)
)  # groups are made of these
def group_norm(node: ir.Node) -> bool:
    """[N, C, …] → [N, groups, -1] → normalized → [N, C, …], scaled and shifted by channel."""
    before, after = made_by(node.inputs[0], "Reshape"), only_user(node.outputs[0])
    if before is None or after is None or after.domain != "" or after.op_type != "Reshape" or node.inputs[0] is None:
        return False
    wide, grouped = dims(after.outputs[0]), dims(node.inputs[0])
    scale, shift = array(node.inputs[1]), array(node.inputs[2])
    if wide is None or grouped is None or scale is None or shift is None:
        return False
    if len(wide) < 3 or len(grouped) != 3 or wide[0] != grouped[0]:
        return False
    channels, groups = wide[1], grouped[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or channels % groups != 0 or groups != scale.size:
        return False
    if node.inputs[0] is not None and only_user(node.inputs[0]) is not node:
        return False
    x = _of_shape(before, after.outputs[0])
    if x is None:
        return False
    nodes = [before, node, after]
    scale, shift = np.repeat(scale, channels // groups), np.repeat(shift, channels // groups)
    for op_type in ("Mul", "Add"):
        user = only_user(nodes[-1].outputs[0])
        found = split_constant(user) if user is not None and user.domain == "" and user.op_type == op_type else None
        each = None if found is None else per_channel(found[1], len(wide), channels)
        if user is None or each is None or user.graph is not node.graph:
            continue
        scale, shift = (scale * each, shift * each) if op_type == "Mul" else (scale, shift + each)
        nodes.append(user)
    last = nodes[-1]
    build = Builder(last, origin=[name for each_node in nodes for name in origins(each_node)])
    result = build.op(
        "GroupNormalization",
        x,
        build.constant(scale.astype(x.dtype.numpy()) if x.dtype is not None else scale),
        build.constant(shift.astype(x.dtype.numpy()) if x.dtype is not None else shift),
        num_groups=groups,
        epsilon=attribute(node, "epsilon", 1e-5),
    )
    result.type, result.shape = last.outputs[0].type, ir.Shape(wide)
    replace_value(last.outputs[0], result)
    for each_node in reversed(nodes):
        remove(each_node)
    return True


def _of_shape(before: ir.Node, like: ir.Value) -> ir.Value | None:
    """Return the source of the Reshape `before` in the shape of `like`, also if two Reshapes became one."""
    source = before.inputs[0]
    if source is None or same_dims(source, like):
        return source
    nodes = list(before.graph) if before.graph is not None else []
    for other in nodes_reading(source):
        found = other.domain == "" and other.op_type == "Reshape" and same_dims(other.outputs[0], like)
        if found and other.inputs[0] is source and other in nodes[: nodes.index(before)]:
            return other.outputs[0]
    target = reshape_target(dims(like) or [], dims(source))
    if target is None:
        return None
    made: ir.Value = Builder(before).op("Reshape", source, target)
    made.type, made.shape = like.type, like.shape
    return made
