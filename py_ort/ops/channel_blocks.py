"""Operators that convert to and from native onnxruntime's blocks of channels, and its Upsample of blocks.

`py_ort/compiler/load/channel_blocks.py` replaces the other operators by ONNX's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, rank
from py_ort.ir.operators import NCHWC, Operator, lowering

OPERATORS = [Operator(name, domain=NCHWC) for name in ("ReorderInput", "ReorderOutput", "Upsample")]


@lowering("ReorderInput", domain=NCHWC)
def reorder_input(node: ir.Node, build: Builder) -> Any:
    """Zeros fill up the last block."""
    x, count = node.inputs[0], rank(node.inputs[0])
    known = dims(x)
    last = bool(attribute(node, "channels_last", 0))
    channels = known[-1 if last else 1] if known else None
    if count is None or not isinstance(channels, int):
        raise NotImplemented(
            f"node {node.name} (com.microsoft.nchwc::ReorderInput) has an input of unknown channels: have native "
            "onnxruntime write the model with the optimization level ORT_ENABLE_EXTENDED"
        )
    if last:
        x = build.op("Transpose", x, perm=[0, count - 1, *range(1, count - 1)])
    missing = -channels % int(attribute(node, "block"))
    return build.op("Pad", x, [0, missing], None, [1]) if missing else x


@lowering("ReorderOutput", domain=NCHWC)
def reorder_output(node: ir.Node, build: Builder) -> Any:
    """Only the channels that are asked for."""
    x, count = node.inputs[0], rank(node.inputs[0]) or 4
    channels = int(attribute(node, "channels"))
    known = dims(x)
    if not known or known[1] != channels:
        x = build.op("Slice", x, [0], [channels], [1])
    if attribute(node, "channels_last", 0):
        x = build.op("Transpose", x, perm=[0, *range(2, count), 1])
    return x


@lowering("Upsample", domain=NCHWC)
def upsample(node: ir.Node, build: Builder) -> Any:
    """Resize by whole numbers."""
    return build.op(
        "Resize", node.inputs[0], None, np.array(attribute(node, "scales"), np.float32),
        mode=attribute(node, "mode", "nearest"), nearest_mode="floor",
        coordinate_transformation_mode=attribute(node, "coordinate_transformation_mode", "asymmetric"),
    )  # fmt: skip
