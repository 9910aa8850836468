"""Mul and Add of constants per channel beside a Conv, ConvTranspose or Gemm → into its weights and bias."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb
from py_ort.compiler.passes.match import made_by, only_for, per_channel, split_constant, split_mul_add, times
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, dims, origins, rank, remove, replace_value, set_origins, static_sizes

_SMALLEST = 1e-3  # factors below are not divided by


@rewrite(
    *("Mul", "Add"),
    after=("batch_normalization", "affine"),  # which leave Mul, then Add
    before=("activation", "residual", "nhwc"),  # nothing is folded from behind these
)
def conv_affine(node: ir.Node) -> bool:
    """conv(x) * s + b → conv'(x)."""
    return after(node)


def _channels(node: ir.Node) -> int | None:
    weights = static_sizes(dims(node.inputs[1]))
    if weights is None:
        return None
    if node.op_type == "Conv":
        return weights[0]
    if node.op_type == "ConvTranspose":
        return weights[1] * int(attribute(node, "group", 1))
    return weights[0 if attribute(node, "transB", 0) else 1]


def _weights_name(node: ir.Node) -> str | None:
    return node.inputs[1].name if node.inputs[1] is not None else None


def _scaled_weights(node: ir.Node, w: np.ndarray, factor: np.ndarray) -> np.ndarray | None:
    """Scale the weights of each output channel; None where their dtype cannot hold that."""
    if node.op_type == "Conv":
        return times(w, factor.reshape(-1, *[1] * (w.ndim - 1)))
    if node.op_type == "ConvTranspose":  # [C, M / group, …], group by group
        group = attribute(node, "group", 1)
        split = w.reshape(group, w.shape[0] // group, *w.shape[1:])
        scaled = times(split, factor.reshape(group, 1, w.shape[1], *[1] * (w.ndim - 2)))
        return None if scaled is None else scaled.reshape(w.shape)
    return times(w, factor.reshape(-1, 1) if attribute(node, "transB", 0) else factor)


def after(node: ir.Node) -> bool:
    """Fold `node`, a Mul or Add, into the convolution that makes its input."""
    found = split_constant(node)
    if found is None:
        return False
    x, constant = found
    conv = made_by(x, "Conv", "ConvTranspose", "Gemm")
    if conv is None or not only_for(x, node) or has_epilogue(conv) or len(conv.inputs) > 3:
        return False
    if conv.op_type == "Gemm" and (attribute(conv, "alpha", 1.0) != 1.0 or attribute(conv, "beta", 1.0) != 1.0):
        return False
    channels = _channels(conv)
    weights = array(conv.inputs[1])
    bias = conv.inputs[2] if len(conv.inputs) > 2 else None
    old_bias = array(bias)
    known = rank(x)
    if (
        channels is None
        or known is None
        or weights is None
        or weights.dtype != constant.dtype
        or (bias is not None and old_bias is None)
    ):
        return False
    each = per_channel(constant, known, channels) if known > 2 or constant.ndim < 2 else None
    if conv.op_type == "Gemm":
        flat = constant.reshape(-1)
        each = (
            np.broadcast_to(flat, (channels,))
            if constant.ndim <= 2 and constant.size in (1, channels) and (constant.ndim < 2 or constant.shape[0] == 1)
            else None
        )
        if old_bias is not None and old_bias.size not in (1, channels):
            return False
    if each is None:
        return False
    before = (
        np.zeros(channels, weights.dtype) if old_bias is None else np.broadcast_to(old_bias.reshape(-1), (channels,))
    )
    wide = each.astype(np.float64)
    build = Builder(conv)
    new_bias = None
    if node.op_type == "Add" or old_bias is not None:
        with np.errstate(all="ignore"):
            changed = before.astype(np.float64) + wide if node.op_type == "Add" else before.astype(np.float64) * wide
            new_bias = changed.astype(weights.dtype)
        if not np.array_equal(np.isfinite(new_bias), np.isfinite(changed)):
            return False
    if node.op_type == "Mul":
        scaled = _scaled_weights(conv, weights, wide)
        if scaled is None:
            return False
        conv.replace_input_with(1, build.constant(scaled, _weights_name(conv)))
    if new_bias is not None:
        if len(conv.inputs) < 3:
            conv.resize_inputs(3)
        conv.replace_input_with(2, build.constant(new_bias, bias.name if bias is not None else None))
    absorb(conv, node)
    return True


@conv_affine.also("Conv")
def _all_before(conv: ir.Node) -> int:
    count = 0
    while _before(conv):
        count += 1
    return count


def _before(conv: ir.Node) -> bool:
    """Fold a Mul (and, without padding, an Add) of constants in front of a convolution into its weights (and bias)."""
    x = conv.inputs[0]
    node = made_by(x, "Mul", "Add")
    weights, bias = array(conv.inputs[1]), conv.inputs[2] if len(conv.inputs) > 2 else None
    found = None if node is None else split_constant(node)
    if x is None or node is None or found is None or weights is None or not only_for(x, conv) or len(conv.inputs) > 3:
        return False
    source, constant = found
    group = attribute(conv, "group", 1)
    per_group, known = weights.shape[1], rank(x)
    each = None if known is None else per_channel(constant, known, per_group * group)
    if each is None or constant.dtype != weights.dtype or rank(source) != known:
        return False
    # In of output channel m: the channels of its group.
    inputs = each.astype(np.float64).reshape(group, 1, per_group)
    grouped = weights.reshape(group, weights.shape[0] // group, per_group, -1)
    build = Builder(conv)
    if node.op_type == "Mul":
        made = times(grouped, inputs[..., None])
        if made is None:
            return False
        conv.replace_input_with(1, build.constant(made.reshape(weights.shape), _weights_name(conv)))
    else:
        pads = attribute(conv, "pads")
        old_bias = array(bias)
        if pads is None or any(pads) or (bias is not None and old_bias is None):
            return False  # the padding must not be shifted
        shift = (grouped.sum(-1, dtype=np.float64) * inputs).sum(-1).reshape(-1)
        total = shift + (0 if old_bias is None else old_bias.astype(np.float64))
        if len(conv.inputs) < 3:
            conv.resize_inputs(3)
        conv.replace_input_with(2, build.constant(total.astype(weights.dtype), bias.name if bias is not None else None))
    conv.replace_input_with(0, source)
    set_origins(conv, (*origins(node), *origins(conv)))
    remove(node)
    return True


@conv_affine.also("Add")
def _scale_later(add: ir.Node) -> bool:
    """conv(x * s + b) → conv'(x + b / s): padding keeps the sum out of the weights, but not the factor."""
    found = split_mul_add(add)
    if found is None:
        return False
    (mul, source, factor, shift), output = found, add.outputs[0]
    users = [use.node for use in output.uses()]
    if output.is_graph_output() or not users or shift.dtype != factor.dtype or rank(source) != rank(output):
        return False
    if not np.all(np.abs(factor) > _SMALLEST) or (factor.size != 1 and shift.size != 1 and factor.size != shift.size):
        return False
    for use in output.uses():
        weights = (
            array(use.node.inputs[1]) if use.node.op_type == "Conv" and use.node.domain == "" and use.idx == 0 else None
        )
        if weights is None or weights.dtype != factor.dtype:
            return False
        channels = weights.shape[1] * attribute(use.node, "group", 1)
        if per_channel(factor, rank(source) or 0, channels) is None:
            return False
    build = Builder(add, origin=(*origins(mul), *origins(add)))
    shifted = build.op("Add", source, (shift.astype(np.float64) / factor).astype(factor.dtype))
    replace_value(output, build.op("Mul", shifted, factor))
    remove(add)
    remove(mul)
    # Each convolution gets its own Mul by the factor, which then folds into its weights.
    final = shifted.uses()
    product = next(iter(final)).node
    for conv in dict.fromkeys(users):
        own = Builder(conv, origin=origins(product)).op("Mul", shifted, factor)
        conv.replace_input_with(0, own)
        _before(conv)
    remove(product)
    return True
