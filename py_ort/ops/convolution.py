"""Convolutions: explicit kernel shapes and pads, NHWC forms, epilogues."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, rank, set_attributes, static_sizes
from py_ort.ir.operators import MICROSOFT, NHWC, Operator, in_parts, lowering
from py_ort.ir.spatial import conv_transpose_output, explicit_pads, fill_spatial, infer_window
from py_ort.ops.activations import activated
from py_ort.schema.dialect import (
    CONV_INTO,
    CONV_TRANSPOSE_INTO,
    HWIO,
    OUT_CHANNELS,
    PRODUCT_RESIDUAL,
    RESIDUAL_COLUMNS,
    WEIGHT_LAYOUT,
    X_COLUMNS,
)


def _infer_conv(node: ir.Node) -> None:
    infer_window(node, _output_channels(node), channels_last=node.domain == NHWC)


def _output_channels(node: ir.Node) -> Any:
    packed = attribute(node, OUT_CHANNELS)
    weights = dims(node.inputs[1])
    if packed is not None or weights is None:
        return packed
    group = attribute(node, "group", 1)
    if node.op_type == "Conv":
        return weights[-1] if attribute(node, WEIGHT_LAYOUT) == HWIO else weights[0]
    each = weights[-1] if attribute(node, WEIGHT_LAYOUT) == HWIO else weights[1]
    return each * group if isinstance(each, int) else None


OPERATORS = [
    Operator("Conv", layout="conv", infer=_infer_conv, heavy=True),
    Operator("ConvTranspose", layout="conv", infer=_infer_conv, heavy=True),
    Operator(
        "Conv",
        domain=NHWC,
        infer=_infer_conv,
        columns={0: X_COLUMNS, PRODUCT_RESIDUAL: RESIDUAL_COLUMNS},
        into=CONV_INTO,
    ),
    Operator("ConvTranspose", domain=NHWC, infer=_infer_conv, columns={0: X_COLUMNS}, into=CONV_TRANSPOSE_INTO),
    Operator("FusedConv", domain=MICROSOFT, infer=_infer_conv, heavy=True),
    Operator("NhwcConv", domain=MICROSOFT),
    Operator("DeformConv", heavy=True),
    Operator("Col2Im", host=(1, 2)),
]


@lowering("Conv", "ConvInteger")
def conv(node: ir.Node, build: Builder) -> None:
    """Fill in kernel_shape, strides, dilations and pads."""
    _kernel_shape_from(node, 1)
    fill_spatial(node)
    explicit_pads(node)


@lowering("QLinearConv")
def qlinear_conv(node: ir.Node, build: Builder) -> None:
    """As Conv, with the weights in input 3."""
    _kernel_shape_from(node, 3)
    fill_spatial(node)
    explicit_pads(node)


@in_parts("NhwcConv", "Conv", "Transpose")
def nhwc_conv(node: ir.Node, build: Builder) -> Any:
    """Images and weights have channels last; the layout pass takes the transposes away again."""
    x, w = (build.op("Transpose", value, perm=[0, 3, 1, 2]) for value in node.inputs[:2])
    return build.op("Transpose", build.op("Conv", x, w, *node.inputs[2:], **attributes_of(node)), perm=[0, 2, 3, 1])


@lowering("FusedConv", domain=MICROSOFT, replaces=True)
def fused_conv(node: ir.Node, build: Builder) -> Any:
    """com.microsoft's fused convolution in its parts, which passes join where a kernel does them in one."""
    kept = {name: item for name, item in attributes_of(node).items() if not name.startswith("activation")}
    x, w, bias, residual = [*node.inputs, None, None][:4]
    result = build.op("Conv", x, w, bias, **kept)
    conv(result.producer(), build)
    summed = result if residual is None else build.op("Add", result, residual)
    return activated(summed, attribute(node, "activation", ""), attribute(node, "activation_params", ()), build)


@lowering("ConvTranspose")
def conv_transpose(node: ir.Node, build: Builder) -> None:
    """Fill in omitted attributes; output_shape and auto_pad become pads if the sizes are known."""
    _kernel_shape_from(node, 1)
    fill_spatial(node)
    spatial = (rank(node.inputs[0]) or rank(node.inputs[1]) or 0) - 2
    if spatial > 0 and not attribute(node, "output_padding"):
        set_attributes(node, output_padding=[0] * spatial)
    conv_transpose_output(node)


@lowering("Conv", "ConvTranspose")
def over_many_axes(node: ir.Node, build: Builder) -> Any:
    """Beyond three spatial axes: over all but the first, with an output channel for each of that axis' taps.

    Then along the first axis, where the tap of each such channel is the only one that reads it.
    """
    weights: Any = dims(node.inputs[1])
    kernel = attribute(node, "kernel_shape")
    axes = (rank(node.inputs[0]) or rank(node.inputs[1]) or 0) - 2
    if axes <= 3 or not kernel or weights is None or not all(isinstance(size, int) for size in weights):
        return None
    if any(len(attribute(node, name) or kernel) not in (axes, 2 * axes) for name in _OF_AXES):
        return None  # they are of other axes: the kernel says so
    x, w, bias = (*node.inputs, None)[:3]
    transposed, taps = node.op_type == "ConvTranspose", kernel[0]
    channels = weights[1] * attribute(node, "group", 1) if transposed else weights[0]

    def along(*places: int) -> dict[str, Any]:
        """The window over some axes; pads are two numbers for each, and output_shape may have more in front."""
        found: dict[str, Any] = {"auto_pad": attribute(node, "auto_pad")}
        for name in _OF_AXES:
            starts = (-2 * axes, -axes) if name == "pads" else (-axes,)
            given = list(attribute(node, name) or [])
            found[name] = [given[start + at] for start in starts for at in places] if given else None
        return found

    def parts_of_shape(value: Any, *places: int) -> Any:
        return build.op("Gather", build.op("Shape", value), np.array(places), axis=0)

    order = [*range(3, axes + 2)]
    if transposed:
        w = build.op("Reshape", w, [weights[0], weights[1] * taps, *kernel[1:]])
    else:
        w = build.op("Reshape", build.op("Transpose", w, perm=[0, 2, 1, *order]), [-1, weights[1], *kernel[1:]])
    images = build.op("Transpose", x, perm=[0, 2, 1, *order])
    images = build.op("Reshape", images, build.op("Concat", [-1], parts_of_shape(images, *range(2, axes + 2)), axis=0))
    shares = build.op(node.op_type, images, w, group=attribute(node, "group"), **along(*range(1, axes)))
    fewer = over_many_axes(shares.producer(), build)
    shares = shares if fewer is None else fewer
    sizes = parts_of_shape(shares, *range(2, axes + 1))
    pixels = build.op("ReduceProd", sizes)
    shape = build.op("Concat", parts_of_shape(x, 0, 2), [channels, taps], pixels, axis=0)
    shares = build.op("Reshape", shares, shape)
    lines = build.op("Transpose", shares, perm=[0, 2, 4, 3, 1])
    lines = build.op("Reshape", lines, build.op("Concat", [-1, taps], parts_of_shape(x, 2), axis=0))
    tap_of_each = np.eye(taps, dtype=np.float32)[:, None] if transposed else np.eye(taps, dtype=np.float32)[None]
    sums = build.op(node.op_type, lines, build.op("CastLike", tap_of_each, x), **along(0))
    size = parts_of_shape(sums, 2)
    sums = build.op("Reshape", sums, build.op("Concat", parts_of_shape(x, 0), [channels], pixels, size, axis=0))
    y = build.op("Transpose", sums, perm=[0, 1, 3, 2])
    y = build.op("Reshape", y, build.op("Concat", parts_of_shape(x, 0), [channels], size, sizes, axis=0))
    return y if bias is None else build.op("Add", y, build.op("Reshape", bias, [channels] + [1] * axes))


_OF_AXES = ("kernel_shape", "strides", "dilations", "pads", "output_padding", "output_shape")


def _kernel_shape_from(node: ir.Node, index: int) -> None:
    weights = dims(node.inputs[index])
    kernel = None if weights is None else static_sizes(weights[2:])
    if not attribute(node, "kernel_shape") and kernel is not None:
        set_attributes(node, kernel_shape=kernel)
