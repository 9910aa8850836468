"""Pools and their NHWC forms."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, set_attributes
from py_ort.ir.operators import MICROSOFT, NHWC, Operator, lowering
from py_ort.ir.spatial import explicit_pads, fill_spatial, infer_window
from py_ort.ir.value_types import like
from py_ort.schema.dialect import POOL_INTO, X_COLUMNS


def _infer_pool(node: ir.Node) -> None:
    last = node.domain == NHWC
    known = dims(node.inputs[0])
    infer_window(node, (known[-1] if last else known[1]) if known else None, channels_last=last)
    if len(node.outputs) > 1:  # MaxPool's indices
        node.outputs[1].type, node.outputs[1].shape = ir.TensorType(ir.DataType.INT64), node.outputs[0].shape


def _infer_global(node: ir.Node) -> None:
    known = dims(node.inputs[0])
    like(node.outputs[0], node.inputs[0], None if known is None else [known[0], *[1] * (len(known) - 2), known[-1]])


OPERATORS = [
    Operator("MaxPool", layout="pool", infer=_infer_pool, heavy=True, optional_outputs=True),
    Operator("AveragePool", layout="pool", infer=_infer_pool, heavy=True),
    Operator("LpPool", layout="pool", infer=_infer_pool, heavy=True),
    *(Operator(name, layout="pool") for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    *(
        Operator(name, domain=NHWC, infer=_infer_pool, columns={0: X_COLUMNS}, into=POOL_INTO)
        for name in ("MaxPool", "AveragePool", "LpPool")
    ),
    *(
        Operator(name, domain=NHWC, infer=_infer_global)
        for name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    ),
    Operator("MaxpoolWithMask", domain=MICROSOFT, infer=_infer_pool),
    Operator("MaxUnpool", host=(2,), indices=(1,)),
    Operator("MaxRoiPool"),
    Operator("RoiAlign", heavy=True, indices=(2,)),
]


@lowering("MaxPool", "AveragePool", "LpPool")
def pool(node: ir.Node, build: Builder) -> None:
    """Fill in strides, dilations and pads."""
    fill_spatial(node)
    explicit_pads(node)


@lowering("MaxUnpool")
def max_unpool(node: ir.Node, build: Builder) -> None:
    """Fill in strides and pads."""
    fill_spatial(node)
    set_attributes(node, dilations=None)
    explicit_pads(node)


@lowering("LpPool", "GlobalLpPool", before=2)
def float_norm(node: ir.Node, build: Builder) -> None:
    """The norm's order was a float."""
    set_attributes(node, p=int(attribute(node, "p", 2.0)))


@lowering("RoiAlign", before=16)
def roi_align_without_offset(node: ir.Node, build: Builder) -> None:
    """Before half_pixel there was no shift by half a pixel."""
    set_attributes(node, coordinate_transformation_mode="output_half_pixel")
