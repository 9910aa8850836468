"""Fourier transforms, their windows and weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, set_attributes
from py_ort.ir.operators import Operator, lowering

OPERATORS = [
    Operator("DFT", host=(1, 2), heavy=True),
    Operator("STFT", host=(1, 3), heavy=True),
    *(Operator(name, host=(0,)) for name in ("BlackmanWindow", "HammingWindow", "HannWindow")),
    Operator("MelWeightMatrix", host=(0, 1, 2, 3, 4)),
]


@lowering("DFT", before=20)
def axis_attribute(node: ir.Node, build: Builder) -> None:
    """The axis was an attribute."""
    axis = attribute(node, "axis", 1)
    set_attributes(node, axis=None)
    node.resize_inputs(3)
    node.replace_input_with(2, build.constant(np.array(axis, np.int64)))
