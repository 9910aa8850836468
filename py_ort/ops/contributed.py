"""Operators of com.microsoft that ONNX took over, or that are another one by a different name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, rank
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ops.convolution import conv_transpose, qlinear_conv
from py_ort.ops.pooling import pool

_SAME_AS_ONNX = ("GatherND", "Pad", "Trilu")


OPERATORS = [
    *(
        Operator(name, domain=MICROSOFT)
        for name in (
            *(*_SAME_AS_ONNX, "CDist", "ConvTransposeWithDynamicPads", "ExpandDims", "GridSample", "MatMulInteger16"),
            *(
                "NhwcMaxPool",
                "QLinearConv",
                "Range",
                "SampleOp",
                "SparseToDenseMatMul",
                "TransposeMatMul",
                "UnfoldTensor",
                "Unique",
            ),
        )
    ),
]


@lowering(*_SAME_AS_ONNX, domain=MICROSOFT)
def as_of_onnx(node: ir.Node, build: Builder) -> Any:
    """ONNX's mean the same."""
    return build.op(node.op_type, *node.inputs, **attributes_of(node))


@lowering("Range", domain=MICROSOFT)
def range_(node: ir.Node, build: Builder) -> Any:
    """Steps of 1 need not be given."""
    start, limit, step = (*node.inputs, None)[:3]
    if step is None:
        step = build.op("CastLike", np.array(1), start)
    return build.op("Range", start, limit, step)


@lowering("ExpandDims", domain=MICROSOFT)
def expand_dims(node: ir.Node, build: Builder) -> Any:
    """Unsqueeze at one axis, which comes as a number of 32 bits."""
    axis = build.op("Cast", node.inputs[1], to=int(ir.DataType.INT64))
    return build.op("Unsqueeze", node.inputs[0], build.op("Reshape", axis, np.array([1], np.int64)))


@lowering("GridSample", domain=MICROSOFT)
def grid_sample(node: ir.Node, build: Builder) -> Any:
    """Modes had the names that they have for images."""
    mode = attribute(node, "mode", "bilinear")
    given = {**attributes_of(node), "mode": {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)}
    return build.op("GridSample", *node.inputs, **given)


@lowering("TransposeMatMul", domain=MICROSOFT)
def transpose_matmul(node: ir.Node, build: Builder) -> Any:
    """FusedMatMul's first name."""
    return build.op("FusedMatMul", *node.inputs, domain=MICROSOFT, **attributes_of(node))


@lowering("Unique", domain=MICROSOFT)
def unique(node: ir.Node, build: Builder) -> Any:
    """In order of appearance, and without the places of the first ones."""
    y, _, inverse, counts = build.op("Unique", node.inputs[0], outputs=4, sorted=0)
    return (y, inverse, counts)[: len(node.outputs)]


@lowering("SampleOp", domain=MICROSOFT)
def sample_op(node: ir.Node, build: Builder) -> Any:
    """An echo."""
    return build.op("Identity", node.inputs[0])


@lowering("SparseToDenseMatMul", domain=MICROSOFT)
def sparse_matmul(node: ir.Node, build: Builder) -> Any:
    """Sparse weights are dense when they are loaded."""
    return build.op("FusedMatMul", *node.inputs, domain=MICROSOFT, **attributes_of(node))


@lowering("MatMulInteger16", domain=MICROSOFT)
def matmul_integer16(node: ir.Node, build: Builder) -> Any:
    """A product of wider integers."""
    return build.op("MatMul", *(build.op("Cast", x, to=int(ir.DataType.INT32)) for x in node.inputs))


@lowering("CDist", domain=MICROSOFT)
def distances(node: ir.Node, build: Builder) -> Any:
    """Distances of all rows of A from all rows of B: sums of squares less twice the products, as natively."""
    a, b = node.inputs[:2]
    metric = attribute(node, "metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean"):
        raise NotImplemented(
            f"CDist by {metric!r}: sqeuclidean and euclidean are supported",
            node=node.name or "", op_type=node.op_type, domain=node.domain,
        )  # fmt: skip
    dtype = ((a.dtype if a is not None else None) or ir.DataType.FLOAT).numpy()
    left, right = (build.op("ReduceSumSquare", x, [1], keepdims=1) for x in (a, b))
    products = build.op("Mul", build.op("MatMul", a, build.op("Transpose", b, perm=[1, 0])), np.array(-2, dtype))
    squares = build.op("Add", build.op("Add", products, left), build.op("Transpose", right, perm=[1, 0]))
    squares = build.op("Max", squares, np.array(0, dtype))
    return build.op("Sqrt", squares) if metric == "euclidean" else squares


@lowering("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(node: ir.Node, build: Builder) -> Any:
    """Return all windows along an axis, with their elements along a new last axis."""
    x, count = node.inputs[0], _known_rank(node)
    axis, size, step = attribute(node, "dim", -1) % count, attribute(node, "size"), attribute(node, "step", 1)
    length = build.op("Shape", x, start=axis, end=axis + 1)
    # The first places from which a window fits.
    end = build.op("Squeeze", build.op("Sub", length, np.array([size - 1])), [0])
    firsts = build.op("Unsqueeze", build.op("Range", np.array(0), end, np.array(step)), [1])
    windows = build.op("Gather", x, build.op("Add", firsts, np.arange(size)), axis=axis)
    order = [d for d in range(count + 1) if d != axis + 1]
    return windows if axis == count - 1 else build.op("Transpose", windows, perm=[*order, axis + 1])


@lowering("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def conv_transpose_with_pads(node: ir.Node, build: Builder) -> Any:
    """Compute the elements that the pads cut off, too, then cut them off."""
    given: list[Any] = [*node.inputs, *[None] * (4 - len(node.inputs))]
    x, weights, pads, bias = given
    whole = build.op("ConvTranspose", x, weights, bias, **attributes_of(node))
    conv_transpose(whole.producer(), build)
    if pads is None or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return whole
    spatial = _known_rank(node) - 2
    starts = build.op("Slice", pads, [0], [spatial], [0])
    ends = build.op("Sub", build.op("Shape", whole, start=2), build.op("Slice", pads, [spatial], [2 * spatial], [0]))
    return build.op("Slice", whole, starts, ends, list(range(2, 2 + spatial)))


@lowering("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(node: ir.Node, build: Builder) -> Any:
    """MaxPool between two transposes."""
    return _channels_last(node, build, "MaxPool", pool, attributes_of(node))


@lowering("QLinearConv", domain=MICROSOFT)
def integer_conv(node: ir.Node, build: Builder) -> Any:
    """ONNX's, if need be between two transposes."""
    given = attributes_of(node)
    last = given.pop("channels_last", None)
    if last is not None and last.value:
        return _channels_last(node, build, "QLinearConv", qlinear_conv, given)
    result = build.op("QLinearConv", *node.inputs, **given)
    qlinear_conv(result.producer(), build)
    return result


def _channels_last(node: ir.Node, build: Builder, op_type: str, settle: Any, given: dict[str, Any]) -> Any:
    count = _known_rank(node)
    first = build.op("Transpose", node.inputs[0], perm=[0, count - 1, *range(1, count - 1)])
    result = build.op(op_type, first, *node.inputs[1:], **given)
    settle(result.producer(), build)
    return build.op("Transpose", result, perm=[0, *range(2, count), 1])


def _known_rank(node: ir.Node) -> int:
    known = rank(node.inputs[0])
    if known is None:
        raise NotImplemented(
            f"{node.op_type} of an input of unknown rank: declare its shape",
            node=node.name or "", op_type=node.op_type, domain=node.domain,
        )  # fmt: skip
    return known
