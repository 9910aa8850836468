"""LayerNormalization from its parts: (x - mean) / sqrt(mean((x - mean)²) + ε) * scale + bias, over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import dims, replace_value
from py_ort.passes.match import nodes_of
from py_ort.passes.norm_parts import Fit, affine_after, builder_for, clear, is_float, normal_of, numbers
from py_ort.passes.pass_base import Pass


class LayerNorm(Pass):
    """Found from its quotient, forwards to scale and bias."""

    def call(self, model: ir.Model) -> int:
        """Try each Div, and each Mul by a reciprocal."""
        return sum(fuse_last_axes(node, "LayerNormalization", centred=True) for node in nodes_of(model, "Div", "Mul"))


def fuse_last_axes(node: ir.Node, op_type: str, *, centred: bool) -> bool:
    """Put one node in the place of a normalisation over the last axes, with its scale and, if centred, its bias."""
    normal = normal_of(node)
    axis = None if normal is None else normal.last_axes()
    if normal is None or axis is None or normal.centred != centred or not is_float(normal.x):
        return False
    wide: list[Any] = list((dims(normal.x) or [])[axis:])
    affine = affine_after(normal.value, normal.x, fits(wide), shift=centred)
    if affine.value.producer().graph is not normal.nodes[-1].graph:  # type: ignore[union-attr]
        return False
    if affine.scale is None and not all(isinstance(d, int) for d in wide):
        return False
    build = builder_for(normal, affine)
    scale = numbers(build, affine.scale, affine.x, np.ones(wide if affine.scale is None else 0))
    shift = None if affine.shift is None else numbers(build, affine.shift, affine.x, np.zeros(0))
    inputs = [scale] if shift is None else [scale, shift]
    result = build.op(op_type, affine.x, *inputs, axis=axis, epsilon=normal.epsilon)
    replace_value(affine.value, result)
    clear(normal, affine)
    return True


def fits(wide: Sequence[Any]) -> Fit:
    """Constants of the shape of the normalised axes; leading axes of size 1 may be there."""

    def fit(contents: np.ndarray) -> np.ndarray | None:
        lead = contents.ndim - len(wide)
        if lead < 0 or contents.shape[:lead] != (1,) * lead or list(contents.shape[lead:]) != list(wide):
            return None
        return contents.reshape(contents.shape[lead:])

    return fit
