"""Operators that make tensors from little: Range, ConstantOfShape, OneHot, EyeLike, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import Builder, array, attribute, set_attributes
from py_ort.ops.declaration import Operator, lowering
from py_ort.ops.symbolic_dims import infer_constant_of_shape, refine_range


def _fold_constant_of_shape(node: ir.Node, inputs: Any) -> np.ndarray:
    value = attribute(node, "value")
    element = np.float32(0) if value is None else value.numpy().reshape(-1)[0]
    return np.broadcast_to(element, tuple(int(d) for d in inputs[0]))


_EXACT = 1 << 24  # floats up to here have all integers


def _fold_range(node: ir.Node, inputs: Any) -> np.ndarray | None:
    start, limit, step = (i.reshape(-1)[0] for i in inputs)
    exact = inputs[0].dtype.kind in "iu" or all(float(i).is_integer() and abs(i) < _EXACT for i in (start, limit, step))
    if step == 0 or not exact:
        return None  # sums of fractions depend on their order
    return np.arange(start, limit, step, dtype=inputs[0].dtype)


_RANDOM = ("RandomNormal", "RandomUniform", "Multinomial", "Bernoulli")

OPERATORS = [
    Operator(
        "ConstantOfShape", host=(0,), tolerance="exact", fold=_fold_constant_of_shape, infer=infer_constant_of_shape
    ),
    Operator("Range", refine=refine_range, host=(0, 1, 2), tolerance="tight", fold=_fold_range, expand=False),
    Operator("OneHot", host=(1,), tolerance="exact"),
    Operator("EyeLike", shape_only=(0,), tolerance="exact"),
    *(Operator(name, pure=False) for name in _RANDOM),
    *(Operator(name, pure=False, shape_only=(0,)) for name in ("RandomNormalLike", "RandomUniformLike")),
    Operator("Dropout"),
    Operator("BlackmanWindow", host=(0,)),
    Operator("HammingWindow", host=(0,)),
    Operator("HannWindow", host=(0,)),
    Operator("MelWeightMatrix", host=(0, 1, 2, 3, 4)),
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
