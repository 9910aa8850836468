"""Operators that work element by element, with broadcasting: arithmetic, comparison, logic, activations, Cast."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, rank, set_attributes
from py_ort.ir.operators import INTERNAL, MICROSOFT, Operator, lowering
from py_ort.ir.symbolic_dims import broadcast
from py_ort.ir.value_types import infer_like_input
from py_ort.schema.dialect import FAKE_QUANTIZE, FAKE_QUANTIZE16
from py_ort.schema.scalar_functions import FUNCTIONS

_UNARY = ("IsInf", "IsNaN", "BitwiseNot")
_BINARY = ("Mod", "Mean", "Sum", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
_IN_CHAINS = (
    *("And", "Or", "Xor", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
    *("Max", "Min", "PRelu", "Where"),
)
_COMMUTATIVE = ("And", "Or", "Xor", "Equal", "Max", "Min", "Mean", "Sum", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
_ACTIVATIONS_OF_MICROSOFT = ("QuickGelu", "FastGelu", "BiasGelu", "BiasAdd", "Gelu")


OPERATORS = [
    *(Operator(name, layout="elementwise") for name in _UNARY),
    Operator("Not", layout="elementwise", in_chains=True),
    *(Operator(row.name, layout="elementwise") for row in FUNCTIONS.values() if "" in row.domains),
    Operator("Add", layout="elementwise", refine=broadcast, neutral=0, commutative=True, in_chains=True),
    Operator("Sub", layout="elementwise", refine=broadcast, neutral=0, in_chains=True),
    Operator("Mul", layout="elementwise", refine=broadcast, neutral=1, commutative=True, in_chains=True),
    Operator("Div", layout="elementwise", refine=broadcast, neutral=1, in_chains=True),
    Operator("Pow", layout="elementwise", refine=broadcast, neutral=1),
    *(
        Operator(
            name,
            layout="elementwise",
            refine=broadcast,
            commutative=name in _COMMUTATIVE,
            in_chains=name in _IN_CHAINS,
        )
        for name in (*_BINARY, *_IN_CHAINS)
    ),
    *(
        Operator(
            name, domain=MICROSOFT, layout="" if name.startswith("Bias") else "elementwise", infer=infer_like_input
        )
        for name in _ACTIVATIONS_OF_MICROSOFT
    ),
    Operator("Clip", layout="elementwise", host_if_constant=(1, 2)),
    Operator("Cast", layout="elementwise", converts=True),
    Operator("CastLike", layout="elementwise", shape_only=(1,), converts=True),
    *(Operator(name) for name in ("BitCast", "SwiGLU")),
    Operator("BiasSplitGelu", domain=MICROSOFT),
    *(
        Operator(name, domain=INTERNAL, layout="elementwise", infer=infer_like_input, rounds_to=bits)
        for name, bits in ((FAKE_QUANTIZE, 8), (FAKE_QUANTIZE16, 16))
    ),
]


@lowering("Clip", before=11)
def clip_attributes(node: ir.Node, build: Builder) -> None:
    """Bounds were attributes."""
    dtype = (node.inputs[0].dtype if node.inputs[0] is not None else None) or ir.DataType.FLOAT
    limits = (np.finfo(np.float32).min, np.finfo(np.float32).max)
    for index, name in enumerate(("min", "max"), start=1):
        bound = attribute(node, name)
        node.attributes.pop(name, None)
        # The default bounds say nothing, and float16 cannot even hold them.
        if bound is None or np.float32(bound) == limits[index - 1]:
            continue
        node.resize_inputs(max(len(node.inputs), index + 1))
        node.replace_input_with(index, build.constant(np.array(bound, dtype.numpy())))


@lowering("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "Pow", "PRelu", before=7)
def legacy_broadcast(node: ir.Node, build: Builder) -> None:
    """Broadcasting had to be asked for, and could start at an axis."""
    axis = attribute(node, "axis")
    asked = attribute(node, "broadcast", 0)
    set_attributes(node, axis=None, broadcast=None, consumed_inputs=None)
    first, second = (rank(v) for v in node.inputs[:2])
    if node.op_type == "PRelu":  # a slope per channel was a vector, and channels are axis 1
        if first is not None and second == 1 and first > 2:
            node.replace_input_with(1, build.op("Unsqueeze", node.inputs[1], list(range(1, first - 1))))
        return
    if not asked or axis is None or first is None or second is None:
        return
    axis = axis % first if axis < 0 else axis
    behind = first - axis - second
    if behind > 0:
        node.replace_input_with(1, build.op("Unsqueeze", node.inputs[1], list(range(second, second + behind))))


@lowering("Cast", before=6)
def cast_to_name(node: ir.Node, build: Builder) -> None:
    """The type was given by its name."""
    to = attribute(node, "to")
    if isinstance(to, str):
        set_attributes(node, to=int(ir.DataType[to.upper()]))


@lowering("Sum", "Max", "Min", "Mean", before=8)
def variadic_without_broadcast(node: ir.Node, build: Builder) -> None:
    """All inputs had one shape, which the newer rule allows too."""
    node.attributes.pop("consumed_inputs", None)


@lowering("Sum", "Max", "Min", "Mean")
def variadic_of_few(node: ir.Node, build: Builder) -> Any:
    """One input is passed on; a Sum of two is an Add, which every provider has."""
    if len(node.inputs) == 1:
        return build.op("Identity", node.inputs[0])
    if node.op_type == "Sum":
        total = node.inputs[0]
        for item in node.inputs[1:]:
            total = build.op("Add", total, item)
        return total
    return None


@lowering("CastLike")
def cast_like(node: ir.Node, build: Builder) -> Any:
    """A cast to a type that is known now."""
    like_input = node.inputs[1]
    if like_input is None or like_input.dtype is None:
        return None
    kept = {name: attribute(node, name) for name in ("saturate", "round_mode") if name in node.attributes}
    return build.op("Cast", node.inputs[0], to=int(like_input.dtype), **kept)
