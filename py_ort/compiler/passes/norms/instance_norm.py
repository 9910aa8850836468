"""InstanceNormalization from its parts: each channel less its mean, over its deviation; and groups of channels.

[N, C, …] normalized over …, scaled and shifted by channel           → InstanceNormalization
[N, C, …] → [N, groups, …] → normalized over … → [N, C, …], affine   → GroupNormalization
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_user, per_channel, same_dims, same_size
from py_ort.compiler.passes.norms.layer_norm import fits
from py_ort.compiler.passes.norms.norm_parts import (
    Fit,
    Normal,
    affine_after,
    builder_for,
    clear,
    is_float,
    normal_of,
    numbers,
)
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.graph import dims, replace_value


@rewrite("Div", "Mul")
def instance_norm(node: ir.Node, target: Target) -> bool:
    """Match by the quotient. Runs before `layer_norm`, which matches norms without a scale for each channel."""
    operators = [n for n in ("InstanceNormalization", "GroupNormalization") if target.has("", n)]
    normal = normal_of(node) if operators else None
    known = None if normal is None else dims(normal.x)
    if normal is None or known is None or not normal.centered or len(known) < 3:
        return False
    if normal.axes != tuple(range(2, len(known))) or not is_float(normal.x):
        return False
    if "GroupNormalization" in operators and _groups(normal, known):
        return True
    channels = known[1]
    if not isinstance(channels, int) or "InstanceNormalization" not in operators:
        return False
    affine = affine_after(normal.value, normal.x, _by_channel(len(known), channels))
    if affine.scale is None and (len(known) == 3 or _scaled_by_element(normal, known)):
        return False
    build = builder_for(normal, affine)
    inputs = [
        numbers(build, given, affine.x, default)
        for given, default in ((affine.scale, np.ones(channels)), (affine.shift, np.zeros(channels)))
    ]
    result = build.op("InstanceNormalization", affine.x, *inputs, epsilon=normal.epsilon)
    replace_value(affine.value, result)
    clear(normal, affine)
    return True


def _by_channel(count: int, channels: int) -> Fit:
    return lambda contents: per_channel(contents, count, channels)


def _scaled_by_element(normal: Normal, known: list[Any]) -> bool:
    """Return True if the scales make it a LayerNormalization over several axes."""
    return affine_after(normal.value, normal.x, fits(known[2:])).scale is not None


def _groups(normal: Normal, known: list[Any]) -> bool:
    """Make a GroupNormalization of a norm between two Reshapes that form its groups; return True on success."""
    before, after = made_by(normal.x, "Reshape"), only_user(normal.value)
    if before is None or after is None or after.domain != "" or after.op_type != "Reshape":
        return False
    x = before.inputs[0]
    wide = dims(x)
    if x is None or wide is None or len(wide) < 3 or not same_dims(x, after.outputs[0]):
        return False
    channels, groups = wide[1], known[1]
    if not isinstance(channels, int) or not isinstance(groups, int) or channels % groups != 0:
        return False
    if not same_size(wide[0], known[0]):
        return False
    affine = affine_after(after.outputs[0], x, _by_channel(len(wide), channels))
    affine.nodes.insert(0, after)
    build = builder_for(normal, affine)
    inputs = [
        numbers(build, given, affine.x, default)
        for given, default in ((affine.scale, np.ones(channels)), (affine.shift, np.zeros(channels)))
    ]
    result = build.op("GroupNormalization", affine.x, *inputs, num_groups=groups, epsilon=normal.epsilon)
    result.type, result.shape = affine.value.type, ir.Shape(wide)
    replace_value(affine.value, result)
    clear(normal, affine)
    return True
