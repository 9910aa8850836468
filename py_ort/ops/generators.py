"""Operators that make tensors from little: Range, ConstantOfShape, OneHot, EyeLike, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, set_attributes
from py_ort.ir.operators import Operator, lowering
from py_ort.ir.symbolic_dims import infer_constant_of_shape, refine_range

_RANDOM = ("RandomNormal", "RandomUniform", "Multinomial", "Bernoulli", "Dropout")  # a Dropout that stays drops

OPERATORS = [
    Operator("ConstantOfShape", host=(0,), infer=infer_constant_of_shape, grows=True),
    Operator("Range", refine=refine_range, host=(0, 1, 2), expand=False, grows=True),
    Operator("OneHot", host=(1,), indices=(0,)),
    Operator("EyeLike", shape_only=(0,)),
    *(Operator(name, pure=False) for name in _RANDOM),
    *(Operator(name, pure=False, shape_only=(0,)) for name in ("RandomNormalLike", "RandomUniformLike")),
]


@lowering("Dropout")
def dropout(node: ir.Node, build: Builder) -> Any:
    """At inference nothing is dropped: the mask, if anybody reads it, is all true."""
    training = node.inputs[2] if len(node.inputs) > 2 else None
    flag = array(training)
    if training is not None and (flag is None or bool(flag.reshape(-1)[0])):
        return None
    set_attributes(node, ratio=None, is_test=None)
    x = node.inputs[0]
    data = build.op("Identity", x)
    if len(node.outputs) < 2 or not (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return data
    mask = build.op("ConstantOfShape", build.op("Shape", x, start=0), value=np.array([True]))
    return data, mask
