"""The nodes that chains of elementwise operators are made of, and the program that they become."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import reduced_axes, same_dims
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.ir.graph import attribute, dims, permutation, rank, scalar
from py_ort.ir.operators import INTERNAL, NHWC, operator
from py_ort.ir.programs import Instruction, program_text
from py_ort.ir.rules import Rules
from py_ort.schema.dialect import REDUCTION

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
TRANSPOSE = "Transpose"
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
_PRODUCTS = (2.0, 3.0)  # exponents of which a power is made of products


def number_of(value: ir.Value | None) -> float | None:
    """A finite constant of one element that broadcasts to anything. (Shaders cannot spell infinities and NaNs.)"""
    found = scalar(value) if value is not None and value.dtype in FLOATS and (rank(value) or 0) <= 1 else None
    return None if found is None or not math.isfinite(found) else float(found)


def read(node: ir.Node) -> list[ir.Value]:
    """Return the tensors that a node reads as an instruction; numbers are part of the program."""
    values = node.inputs if node.op_type not in ("Clip", "Pow") else node.inputs[:1]
    return [value for value in values if value is not None and number_of(value) is None]


def fits_into(node: ir.Node, dtype: ir.DataType | None) -> bool:
    """Return True if a node can be an instruction of a chain of a float type, which all floats of the chain have."""
    return fits(node) and all(v.dtype == dtype for v in (*read(node), *node.outputs) if v.dtype in FLOATS)


def fits(node: ir.Node) -> bool:
    """Return True if a node can be an instruction."""
    if node.domain not in ("", INTERNAL) or len(node.outputs) != 1 or not node.inputs:
        return False
    kinds = [None if v is None else v.dtype for v in node.inputs]
    rule = _fit.of(node)
    if rule is not None:
        return rule(node, kinds)
    return (is_plain(node) or function_of(node) is not None) and kinds[0] in FLOATS


def is_plain(node: ir.Node) -> bool:
    """Return True if the operator is an instruction without changes."""
    declared = operator(node.domain, node.op_type)
    return declared.in_chains and declared.layout == "elementwise"


def as_middle(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a chain that is reduced, or transposed, as by a node; none if it does neither."""
    declared, count = operator(node.domain, node.op_type), rank(node.inputs[0]) if node.inputs else None
    if node.domain == "" and declared.in_chains and declared.layout == "reduce":
        axes = reduced_axes(node)
        return {} if axes is None else _reduction(node.op_type, axes, attribute(node, "keepdims", 1))
    if count is None or node.domain not in ("", NHWC):
        return {}
    spatial = range(1, count - 1) if node.domain == NHWC else range(2, count)
    if node.op_type == "GlobalAveragePool" or (node.op_type == "AveragePool" and _is_of_all(node, spatial)):
        return _reduction("ReduceMean", spatial, 1)
    if node.op_type == TRANSPOSE and (perm := permutation(node)):
        return {"perm": perm}
    return {}


def _is_of_all(pool: ir.Node, spatial: range) -> bool:
    """Return True if the pool has one window, over the whole image."""
    sizes, window = dims(pool.inputs[0]), attribute(pool, "kernel_shape")
    padded = any(attribute(pool, "pads", ())) or attribute(pool, "auto_pad", "NOTSET").startswith("SAME")
    dilated = set(attribute(pool, "dilations", ())) - {1}
    return sizes is not None and not padded and not dilated and [sizes[axis] for axis in spatial] == [*window]


def _reduction(op_type: str, axes: Iterable[int], keepdims: int) -> dict[str, Any]:
    return {REDUCTION: op_type, "axes": [*axes], "keepdims": keepdims}


_fit = Rules[Callable[[ir.Node, "list[ir.DataType | None]"], bool]]()
"""Predicates, by operator: can a node with inputs of these types be an instruction? For nodes not of floats only."""


@_fit("Cast")
def _fits_cast(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in (*_INTEGERS, ir.DataType.BOOL) and node.outputs[0].dtype == ir.DataType.FLOAT


@_fit("Clip")
def _fits_clip(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in FLOATS and all(v is None or _bound(v) is not None for v in node.inputs[1:])


@_fit("And", "Or", "Xor", "Not")
def _fits_truths(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return True


@_fit("Where")
def _fits_where(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[1] in FLOATS


@_fit("Pow")
def _fits_power(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in FLOATS and _exponent(node) is not None


@_fit("IsNaN", "IsInf")
def _fits_class(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    """A number may be infinite as float16 and finite in the chain."""
    return kinds[0] == ir.DataType.FLOAT


@_fit("Mod")
def _fits_remainder(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return bool(attribute(node, "fmod", 0)) and kinds[0] in FLOATS


def _exponent(node: ir.Node) -> float | None:
    """Return the exponent of all elements, if it is a finite number."""
    found = scalar(node.inputs[1]) if (rank(node.inputs[1]) or 0) <= (rank(node.inputs[0]) or 0) else None
    return None if found is None or not math.isfinite(found) else float(found)


def _largest(clip: ir.Node) -> float:
    """Return the bound of a Clip without one: it replaces infinities."""
    x = clip.inputs[0]
    assert x is not None and x.dtype is not None
    return float(np.finfo(x.dtype.numpy()).max)


def _bound(value: ir.Value | None) -> float | None:
    found = scalar(value)
    return None if found is None else float(found)


def worth(node: ir.Node, result: ir.Value) -> bool:
    """Return True if the operator may run for each element of the result: it has that shape, or is cheap."""
    made = node.outputs[0]
    row = function_of(node)
    cheap = is_plain(node) or node.op_type in ("Cast", "Clip") or (row is not None and row.cheap)
    cheap = cheap or (node.op_type == "Pow" and _exponent(node) in _PRODUCTS)
    if cheap or same_dims(made, result):
        return True
    small, wide = dims(made), dims(result)
    if small is None or wide is None or len(small) != len(wide):
        return False
    return not any(d == 1 and other != 1 for d, other in zip(small, wide, strict=True))


def program_of(chain: Sequence[ir.Node], inputs: Sequence[ir.Value]) -> str:
    """Return the program (`ir/programs.py`) of topologically sorted nodes; `inputs[i]` is register i."""
    registers: dict[ir.Value, int] = {value: i for i, value in enumerate(inputs)}
    instructions: list[Instruction] = []

    def add(op: str, *read: int, numbers: Iterable[float | None] = ()) -> int:
        known = tuple(number for number in numbers if number is not None)
        instructions.append(Instruction(op, read, known))
        return len(inputs) + len(instructions) - 1

    def register(value: ir.Value | None) -> int:
        assert value is not None
        if value not in registers:
            registers[value] = add("Number", numbers=[number_of(value)])
        return registers[value]

    for node in chain:
        source = register(node.inputs[0])
        if node.op_type == TRANSPOSE:
            made = source
        elif node.op_type == "Clip":
            bounds = [_bound(v) if v is not None else None for v in (*node.inputs[1:3], None, None)[:2]]
            largest = _largest(node)
            limits = (-largest if bounds[0] is None else bounds[0], largest if bounds[1] is None else bounds[1])
            made = add("Clip", source, numbers=limits)
        elif node.op_type == "Pow":
            exponent = _exponent(node)
            squares = exponent in _PRODUCTS
            made = add("Mul", source, source) if squares else add("Pow", source, numbers=[exponent])
            if exponent == 3.0:
                made = add("Mul", made, source)
        elif node.op_type in ("Max", "Min"):  # of any number of inputs: one after the other
            made = source
            for value in node.inputs[1:]:
                made = add(node.op_type, made, register(value))
        elif node.op_type == "IsInf":
            kinds = [float(attribute(node, name, 1)) for name in ("detect_positive", "detect_negative")]
            made = add(node.op_type, source, numbers=kinds)
        elif (row := function_of(node)) is not None:
            made = add(row.name, source, numbers=numbers_of(row, node))
        else:
            made = add(node.op_type, source, *(register(v) for v in node.inputs[1:]))
        registers[node.outputs[0]] = made
    return program_text(instructions)
