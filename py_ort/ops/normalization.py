"""Normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, rank, set_attributes
from py_ort.ir.operators import MICROSOFT, Operator, in_parts, lowering
from py_ort.ir.value_types import like


def _infer_like_input(node: ir.Node) -> None:
    for output in node.outputs:
        like(output, node.inputs[0])


def _infer_with_statistics(node: ir.Node) -> None:
    """Mean and inverse deviation lie between the result and the sum, and are float32 whatever that is."""
    _infer_like_input(node)
    x = node.inputs[0]
    for output in node.outputs[1:3]:
        output.type = ir.TensorType(ir.DataType.FLOAT)
        output.shape = None if x is None or x.shape is None else ir.Shape([*x.shape[:-1], 1])


def _infer_simplified(node: ir.Node) -> None:
    """The second output is the inverse deviation."""
    _infer_like_input(node)
    for output in node.outputs[1:]:
        output.type, output.shape = ir.TensorType(ir.DataType.FLOAT), None


def _infer_embeddings(node: ir.Node) -> None:
    """A row for each word, how many words a mask leaves of each text, and the rows before they are normalized."""
    words, table = dims(node.inputs[0]), dims(node.inputs[2])
    for i, output in enumerate(node.outputs):
        like(output, node.inputs[2])
        output.shape = None if words is None or table is None else ir.Shape([*words, table[1]])
        if i == 1:
            output.type, output.shape = _INT32, None if words is None else ir.Shape(words[:1])


_INT32 = ir.TensorType(ir.DataType.INT32)

OPERATORS = [
    Operator("BatchNormalization", layout="channels", optional_outputs=True),
    Operator("InstanceNormalization", layout="channels", heavy=True),
    Operator(
        "LayerNormalization",
        lenient=True,
        layout="trailing_axes",
        expand=False,
        optional_outputs=True,
        skip="SkipLayerNormalization",
    ),
    Operator(
        "RMSNormalization",
        layout="trailing_axes",
        expand=False,
        skip="SkipSimplifiedLayerNormalization",
    ),
    Operator("GroupNormalization", layout="channels", heavy=True),
    Operator("LpNormalization", layout="axis"),
    Operator("MeanVarianceNormalization"),
    Operator("LRN", layout="channels", heavy=True),
    Operator("SkipLayerNormalization", domain=MICROSOFT, infer=_infer_with_statistics),
    Operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT, infer=_infer_with_statistics),
    *(Operator(name, domain=MICROSOFT, infer=_infer_like_input) for name in ("GroupNorm", "SkipGroupNorm")),
    Operator("EmbedLayerNormalization", domain=MICROSOFT, infer=_infer_embeddings),
    Operator("QEmbedLayerNormalization", domain=MICROSOFT),
    # These two live in ai.onnx in onnxruntime's own exports.
    Operator("SimplifiedLayerNormalization", infer=_infer_simplified, lenient=True),
    Operator("SimplifiedLayerNormalization", domain=MICROSOFT, infer=_infer_simplified),
]


@lowering("BatchNormalization", before=14)
def inference_form(node: ir.Node, build: Builder) -> Any:
    """Training outputs and flags were optional; what is used for inference has one output."""
    trained = any(output.uses() or output.is_graph_output() for output in node.outputs[1:])
    spatial = attribute(node, "spatial", 1) != 0
    set_attributes(node, is_test=None, spatial=None, consumed_inputs=None)
    if not trained:
        node.resize_outputs(1)
        set_attributes(node, training_mode=0)
    # Before opset 7 statistics had an element for each channel in any case.
    if spatial or rank(node.inputs[1]) == 1:
        return None
    if trained:
        raise NotImplemented(
            "BatchNormalization with spatial=0 has its outputs for training read, which is not supported: "
            "use the first output only",
            node=node.name or "",
            op_type=node.op_type,
        )
    return _normalized_elements(node, build)


def _normalized_elements(node: ir.Node, build: Builder) -> Any:
    """Statistics, scale and bias for each element of an image: [C, D1, …], which broadcasts to X."""
    x, scale, bias, mean, variance = node.inputs[:5]
    dtype = next((v.dtype for v in node.inputs if v is not None and v.dtype is not None), ir.DataType.FLOAT)
    epsilon = np.array(attribute(node, "epsilon", 1e-5), dtype.numpy())
    deviation = build.op("Sqrt", build.op("Add", variance, epsilon))
    centered = build.op("Sub", x, mean)
    return build.op("Add", build.op("Mul", centered, build.op("Div", scale, deviation)), bias)


@lowering("GroupNormalization", before=21)
def scale_per_group(node: ir.Node, build: Builder) -> None:
    """Scale and bias were given per group."""
    groups = attribute(node, "num_groups")
    x, known = node.inputs[0], dims(node.inputs[0])
    if known is not None and isinstance(known[1], int):
        shape = build.constant(np.array([groups, known[1] // groups]))
    else:
        each = build.op("Div", build.op("Shape", x, start=1, end=2), [groups])
        shape = build.op("Concat", [groups], each, axis=0)
    for index in (1, 2):
        wide = build.op("Expand", build.op("Unsqueeze", node.inputs[index], [1]), shape)
        node.replace_input_with(index, build.op("Reshape", wide, [-1]))


@lowering("MeanVarianceNormalization")
def axes_of_the_image(node: ir.Node, build: Builder) -> None:
    """Axes that the image does not have do not count, as natively; the default is those of an image of rank 4."""
    axes, size = attribute(node, "axes", (0, 2, 3)), rank(node.inputs[0])
    kept = axes if size is None else [axis for axis in axes if -size <= axis < size]
    if 0 < len(kept) < len(axes):
        set_attributes(node, axes=list(kept))


@in_parts("MeanVarianceNormalization", "Cast", "ReduceMean", "Sub", "Mul", "Sqrt", "Add", "Div", domain="")
def mean_variance_normalization(node: ir.Node, build: Builder) -> Any:
    """By distances from the mean: of ONNX's own parts, mean squares less squared means, a large mean leaves nothing."""
    x, axes = node.inputs[0], list(attribute(node, "axes", (0, 2, 3)))
    if x is None or x.dtype is None:
        return None
    wide = x if x.dtype == ir.DataType.FLOAT else build.op("Cast", x, to=int(ir.DataType.FLOAT))
    for _ in range(2):  # the second mean is the rounding error of the first
        wide = build.op("Sub", wide, build.op("ReduceMean", wide, axes, keepdims=1))
    variance = build.op("ReduceMean", build.op("Mul", wide, wide), axes, keepdims=1)
    deviation = build.op("Add", build.op("Sqrt", variance), np.array(1e-9, np.float32))
    y = build.op("Div", wide, deviation)
    return y if x.dtype == ir.DataType.FLOAT else build.op("Cast", y, to=int(x.dtype))


_GROUPS = ("GroupNormalization", "Swish", "Transpose", "Cast", "Add", "Unsqueeze")


@in_parts("GroupNorm", *_GROUPS)
def group_norm(node: ir.Node, build: Builder) -> Any:
    """Channels last, unless said otherwise, and SiLU behind it if wanted."""
    return _normalized_groups(node, build, node.inputs[0])


@in_parts("SkipGroupNorm", *_GROUPS)
def skip_group_norm(node: ir.Node, build: Builder) -> Any:
    """The same of a sum: X, a skip (whole, or a number for each channel of each image), a bias of channels."""
    x, skip = node.inputs[0], node.inputs[3]
    bias = node.inputs[4] if len(node.inputs) > 4 else None
    last = attribute(node, "channels_last", 1)
    if rank(skip) is None:
        return None
    if rank(skip) == 2:
        skip = build.op("Unsqueeze", skip, [1, 2] if last else [2, 3])
    total = build.op("Add", x, skip)
    if bias is not None:
        total = build.op("Add", total, bias if last else build.op("Unsqueeze", bias, [1, 2]))
    y = _normalized_groups(node, build, total)
    return y if len(node.outputs) < 2 else (y, total)


def _normalized_groups(node: ir.Node, build: Builder, x: Any) -> Any:
    last = attribute(node, "channels_last", 1)
    factors = [v if v is None or v.dtype == x.dtype else build.op("Cast", v, to=int(x.dtype)) for v in node.inputs[1:3]]
    first = build.op("Transpose", x, perm=[0, 3, 1, 2]) if last else x
    given = {"num_groups": attribute(node, "groups"), "epsilon": attribute(node, "epsilon", 1e-5)}
    y = build.op("GroupNormalization", first, *factors, **given)
    if attribute(node, "activation", 0):
        y = build.op("Swish", y, alpha=1.0)
    return build.op("Transpose", y, perm=[0, 2, 3, 1]) if last else y


_EMBEDDING = ("Gather", "Add", "LayerNormalization", "Slice", "Equal", "Cast", "ReduceSum", "Sub")


@in_parts("EmbedLayerNormalization", *_EMBEDDING)
def embed_layer_normalization(node: ir.Node, build: Builder) -> Any:
    """The sum of a word's, its position's and its segment's embeddings, normalized; how many words a mask leaves."""
    given = [*node.inputs, *[None] * (9 - len(node.inputs))]
    words, segments, word_table, place_table, segment_table, scale, bias, mask, places = given
    if places is not None:
        at = build.op("Gather", place_table, places, axis=0)
    else:
        length = build.op("Shape", words, start=1, end=2)
        at = build.op("Slice", place_table, [0], length, [0])
    total = build.op("Add", build.op("Gather", word_table, words, axis=0), at)
    if segment_table is not None:  # without ids all are of the first segment
        rows = np.array([0]) if segments is None else segments
        total = build.op("Add", total, build.op("Gather", segment_table, rows, axis=0))
    return _normalized_embeddings(node, build, total, scale, bias, mask)


@lowering("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embeddings(node: ir.Node, build: Builder) -> Any:
    """Rows of quantized tables are dequantized as they are taken."""
    given: list[Any] = [*node.inputs, *[None] * (18 - len(node.inputs))]
    words, segments, word_table, place_table, segment_table, scale, bias, mask = given[:8]
    steps, zeros = given[8:13], given[13:18]

    def real(index: int, quantized: Any) -> Any:
        step, zero = (build.op("Reshape", item[index], np.array([], np.int64)) for item in (steps, zeros))
        return build.op("DequantizeLinear", quantized, step, zero)

    length = build.op("Shape", words, start=1, end=2)
    total = real(0, build.op("Gather", word_table, words, axis=0))
    if segments is not None and segment_table is not None:
        total = build.op("Add", total, real(2, build.op("Gather", segment_table, segments, axis=0)))
    total = build.op("Add", total, real(1, build.op("Slice", place_table, [0], length, [0])))
    return _normalized_embeddings(node, build, total, real(3, scale), real(4, bias), mask)


def _normalized_embeddings(node: ir.Node, build: Builder, total: Any, scale: Any, bias: Any, mask: Any) -> Any:
    words = node.inputs[0]
    y = build.op("LayerNormalization", total, scale, bias, axis=-1, epsilon=attribute(node, "epsilon", 1e-12))
    results = [y]
    if len(node.outputs) > 1:
        # Without a mask no word is counted.
        known: Any = mask if mask is not None else build.op("Sub", words, words)
        one = build.constant(np.array(1, known.dtype.numpy()))
        left = build.op("Cast", build.op("Equal", known, one), to=int(ir.DataType.INT32))
        results.append(build.op("ReduceSum", left, [1], keepdims=0))
    return (*results, total) if len(node.outputs) > 2 else tuple(results)
