"""Reads quantized values: integers with scale and zero point, and floats that are multiples of a scale.

An integer q stands for (q - zero point) * scale. A model has QuantizeLinear and DequantizeLinear around the integers.
For providers that compute with floats, passes put a FakeQuantize in their place (`fuse/round_trips.py`), alone or at
the end of an epilogue: a `Rounding` describes the steps of such floats.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue, has_epilogue
from py_ort.ir.graph import array, attribute, input_at
from py_ort.ir.operators import INTERNAL, MICROSOFT, NHWC, op_types, roundings
from py_ort.schema.dialect import DYNAMIC_FAKE_QUANTIZE

Kinds = Collection[ir.DataType | None]
BYTES: Kinds = (ir.DataType.INT8, ir.DataType.UINT8)


@dataclass(frozen=True)
class Quantization:
    """The quantization that a QuantizeLinear makes, or a DequantizeLinear undoes, by constants.

    Attributes:
        node: The QuantizeLinear or DequantizeLinear.
        integers: Its integers.
        scale: The scale: one, or one for each index along `axis`.
        steps: The contents of the scale.
        zeros: The zero points, in the type of the integers.
    """

    node: ir.Node
    integers: ir.Value
    scale: ir.Value
    steps: np.ndarray
    zeros: np.ndarray

    @classmethod
    def of(cls, node: ir.Node, kinds: Kinds) -> Quantization | None:
        """Return the quantization of a QuantizeLinear or DequantizeLinear; None of blocks, of scales that are no
        constant float32, and of integers of other types.
        """
        integers = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0]
        scale, zero_point = node.inputs[1], input_at(node, 2)
        steps, zeros = array(scale), array(zero_point)
        if integers is None or integers.dtype is None or integers.dtype not in kinds or scale is None or steps is None:
            return None
        if scale.dtype != ir.DataType.FLOAT or attribute(node, "block_size", 0):
            return None
        if zero_point is None:
            zeros = np.zeros(steps.shape, integers.dtype.numpy())
        return None if zeros is None else cls(node, integers, scale, steps, zeros)

    @cached_property
    def zero_point(self) -> ir.Value:
        """The zero point; a new constant where the node has none."""
        given = input_at(self.node, 2)
        return Builder(self.node).constant(self.zeros) if given is None else given

    @property
    def parts(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Integers, scale and zero point, as operators on integers have them."""
        return self.integers, self.scale, self.zero_point

    @property
    def is_of_all(self) -> bool:
        """True if all integers have one scale."""
        return self.steps.size == 1

    @property
    def step(self) -> float:
        """The first scale, which is that of all integers if `is_of_all`."""
        return float(self.steps.reshape(-1)[0])

    @property
    def zero(self) -> int:
        """The first zero point."""
        return int(self.zeros.reshape(-1)[0])

    @property
    def limits(self) -> np.iinfo:
        """The range of the integers."""
        return np.iinfo(self.zeros.dtype)

    def is_along(self, axis: int | None, rank: int | None) -> bool:
        """Return True if all integers have one scale, or each index of `axis` has one."""
        if self.is_of_all:
            return True
        return axis is not None and rank is not None and attribute(self.node, "axis", 1) % rank == axis % rank

    def equals(self, other: Quantization) -> bool:
        """Return True if both have the same scale, and equal integers represent equal floats."""
        return self.is_of_all and other.is_of_all and (self.step, self.zero) == (other.step, other.zero)


def quantized_by(node: ir.Node | None, kinds: Kinds = BYTES) -> Quantization | None:
    """Return the quantization of a QuantizeLinear, if it has one scale."""
    if node is None or node.domain != "" or node.op_type != "QuantizeLinear":
        return None
    found = Quantization.of(node, kinds)
    return found if found is not None and found.is_of_all else None


def dequantized(value: ir.Value | None, kinds: Kinds = BYTES) -> Quantization | None:
    """Return the quantization that a DequantizeLinear undoes to make a value."""
    node = made_by(value, "DequantizeLinear")
    return None if node is None else Quantization.of(node, kinds)


class Rounding(NamedTuple):
    """Steps that floats are rounded to: the operator, the size of a step, and the steps from the least one to 0."""

    op_type: str
    step: float
    zero: float


def is_rounding(node: ir.Node) -> bool:
    """Return True if a node is a FakeQuantize."""
    return node.domain == INTERNAL and node.op_type in roundings().values()


def is_dynamic_rounding(node: ir.Node | None) -> bool:
    """Return True if a node rounds floats as DynamicQuantizeLinear does."""
    return node is not None and (node.domain, node.op_type) == (INTERNAL, DYNAMIC_FAKE_QUANTIZE)


def rounding_by(node: ir.Node | None) -> Rounding | None:
    """Return the steps that a node rounds its first output to: a FakeQuantize, or the end of an epilogue."""
    if node is None:
        return None
    if has_epilogue(node):
        last = Epilogue.of(node).steps[-1]
        return Rounding(last.function, *last.numbers[:2]) if last.function in roundings().values() else None
    if not is_rounding(node):
        return None
    return Rounding(node.op_type, attribute(node, "scale", 1.0), attribute(node, "zero", 0.0))


def rounding_of(value: ir.Value | None) -> Rounding | None:
    """Return the steps that all elements of a value are in, if known."""
    made, _ = moved(value)
    node = None if made is None else made.producer()
    if node is not None and (node.domain, node.op_type) == ("", "Concat"):
        found = {rounding_of(part) for part in node.inputs}
        return found.pop() if len(found) == 1 else None
    return rounding_by(node) if node is not None and made is node.outputs[0] else None


def byte_steps_of(value: ir.Value | None) -> Rounding | None:
    """Return the steps that all elements of a value are in, if these are 256."""
    found = rounding_of(value)
    return found if found is not None and found.op_type == roundings()[8] else None


def moved(value: ir.Value | None) -> tuple[ir.Value | None, list[ir.Node]]:
    """Return the elements of a value as they were made, and the nodes that only moved them since, the last first."""
    moves: list[ir.Node] = []
    while value is not None and (maker := value.producer()) is not None and is_move(maker):
        moves.append(maker)
        value = maker.inputs[0]
    return value, moves


def is_move(node: ir.Node) -> bool:
    """Return True if a node gives elements of its first input only, in order of size where it compares them."""
    moving = {"MaxPool", *op_types("moves"), *op_types("view")}
    indices = node.op_type == "MaxPool" and len(node.outputs) > 1
    return node.domain in ("", NHWC) and node.op_type in moving and not indices


def computes_on_bytes(target: Target) -> bool:
    """Return True if the first provider has the operators between quantized tensors."""
    return target.has(MICROSOFT, "QLinearAdd") is True


def computes_on_signed_bytes(target: Target) -> bool:
    """Return True if quantized tensors are int8 on the first provider, with weights without zero points.

    It is the feature "signed" of its products.
    """
    return target.offers("signed", "QLinearConv")


def rounds_floats(target: Target) -> bool:
    """Return True if the first provider computes with floats where a model has integers of 8 bits."""
    return target.has(INTERNAL, roundings()[8]) is True and not computes_on_bytes(target)
