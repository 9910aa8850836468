"""LayerNormalization from its parts: (x - mean) / sqrt(mean((x - mean)²) + ε) * scale + bias, over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import drop
from py_ort.compiler.passes.norms.norm_parts import (
    Affine,
    Fit,
    Normal,
    affine_after,
    builder_for,
    clear,
    is_float,
    less_mean,
    multiplied_out,
    normal_of,
    numbers,
)
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, attributes_of, dims, origins, rank, replace_value, required


@rewrite("Div", "Mul")
def layer_norm(node: ir.Node) -> bool:
    """Find it by its quotient, a Div or a Mul by a reciprocal, forwards to scale and bias."""
    return fuse_last_axes(node, "LayerNormalization", centered=True)


def fuse_last_axes(node: ir.Node, op_type: str, *, centered: bool) -> bool:
    """Put one node in the place of a normalization over the last axes, with its scale and, if centered, its bias."""
    normal = normal_of(node)
    axis = None if normal is None else normal.last_axes()
    if normal is None or axis is None or normal.centered != centered or not is_float(normal.x):
        return False
    fit = fits((dims(normal.x) or [])[axis:])
    return _replace(op_type, normal, axis, affine_after(normal.value, normal.x, fit, shift=centered))


def fuse_plain(node: ir.Node) -> bool:
    """Take only those that native onnxruntime fuses at its basic level: a Div, over one axis, with scale and bias."""
    normal = normal_of(node)
    if normal is None or normal.last_axes() != -1 or not normal.centered or not is_float(normal.x):
        return False
    affine = affine_after(normal.value, normal.x, fits((dims(normal.x) or [])[-1:]))
    whole = affine.scale is not None and affine.shift is not None
    return whole and _replace("LayerNormalization", normal, -1, affine)


@layer_norm.also("Add")
def _fuse_multiplied_out(node: ir.Node) -> bool:
    found = multiplied_out(node)
    axis = None if found is None else found[0].last_axes()
    if found is None or axis is None or not is_float(found[0].x):
        return False
    wide = (dims(found[0].x) or [])[axis:]
    given = [array(v) for v in (found[1].scale, found[1].shift) if isinstance(v, ir.Value)]
    if not all(contents is not None and list(contents.shape) == wide for contents in given):
        return False
    return _replace("LayerNormalization", found[0], axis, found[1])


@layer_norm.also("RMSNormalization")
def _fuse_centered(node: ir.Node) -> bool:
    """RMSNormalization(x - mean) is LayerNormalization without a bias."""
    centered, count = node.inputs[0], rank(node.inputs[0])
    axis = attribute(node, "axis", -1)
    if centered is None or not count:
        return False
    axis %= count
    found = less_mean(centered, tuple(range(axis, count)))
    if found is None:
        return False
    given = {name: value for name, value in attributes_of(node).items() if name in ("epsilon", "stash_type")}
    build = Builder(node, origin=[name for part in (*reversed(found[1]), node) for name in origins(part)])
    build.finish(build.op("LayerNormalization", found[0], node.inputs[1], axis=axis - count, **given))
    drop(centered)
    return True


def _replace(op_type: str, normal: Normal, axis: int, affine: Affine) -> bool:
    wide: list[Any] = list((dims(normal.x) or [])[axis:])
    if required(affine.value.producer()).graph is not normal.nodes[-1].graph:
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
    """Constants of the shape of the normalized axes; leading axes of size 1 may be there."""

    def fit(contents: np.ndarray) -> np.ndarray | None:
        lead = contents.ndim - len(wide)
        if lead < 0 or contents.shape[:lead] != (1,) * lead or list(contents.shape[lead:]) != list(wide):
            return None
        return contents.reshape(contents.shape[lead:])

    return fit
