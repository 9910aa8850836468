"""Shape arithmetic, followed symbolically: the elements of small tensors that are made from shapes.

The elements (int, `ir.SymbolicDim` with a name or an expression, or None) are kept in the value's meta, and let
Reshape, Expand, Range and ConstantOfShape know their results' dimensions. Floats that are sizes, or those times
powers of two, are followed as well, because they are exact; so most Reshapes get constant shapes even where batch and
length are unknown, and Resize, Range and Expand have sizes made of the inputs'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy  # type: ignore[import-untyped]

from py_ort.ir.graph import array, attribute, dims
from py_ort.ir.rules import Rules
from py_ort.ir.slicing import sliced

_KEY = "py_ort.shape_data"
_LIMIT = 64
_FINEST = 1 << 10  # of which floats are multiples

Element = Any  # int, ir.SymbolicDim or None

rule = Rules[Callable[[ir.Node], "list[Element] | None"]]()
"""Functions that compute the elements of a node's output from those of its inputs, by operator."""


def shape_data(value: ir.Value | None) -> list[Element] | None:
    """Return the elements of an integer scalar or vector, as far as known; None when not even their number is."""
    return None if value is None or _is_float(value) else elements(value)


def elements(value: ir.Value | None) -> list[Element] | None:
    """Return the elements of an integer or float scalar or vector; floats that are no sizes may be fractions."""
    if value is None:
        return None
    if value.const_value is not None:
        if value.const_value.size > _LIMIT or len(value.const_value.shape) > 1:
            return None
        contents = array(value)
        if contents is None or contents.dtype.kind not in "iuf":
            return None
        return [int(item) if contents.dtype.kind != "f" else _fraction(float(item)) for item in contents.reshape(-1)]
    return value.meta.get(_KEY)


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()


def _fraction(number: float) -> Element:
    if not math.isfinite(number):
        return None
    top, bottom = number.as_integer_ratio()
    return None if bottom > _FINEST else top if bottom == 1 else ir.SymbolicDim(sympy.Rational(top, bottom))


def follow(node: ir.Node) -> None:
    """Compute the elements of a node's output, where the operator is one of shape arithmetic."""
    compute = rule.of(node)
    if compute is None:
        return
    output = node.outputs[0]
    found, size = compute(node), dims(output)
    fits = size is not None and (not size or (len(size) == 1 and (not isinstance(size[0], int) or size[0] <= _LIMIT)))
    if found is not None and fits and len(found) <= _LIMIT:
        output.meta[_KEY] = [_held(element, output.dtype) for element in found]
    else:
        output.meta.pop(_KEY, None)


def _held(element: Element, dtype: ir.DataType | None) -> Element:
    """Return a number as a type holds it: integers wrap; floats are followed only where they are exact. Sizes fit."""
    if dtype is None or not _is_number(element):
        return element
    if dtype.is_integer():
        bits = dtype.bitwidth
        wrapped = int(element if isinstance(element, int) else element._expr) % (1 << bits)
        return wrapped - (1 << bits) if dtype.is_signed() and wrapped >> (bits - 1) else wrapped
    if dtype.is_floating_point():
        exact = element if isinstance(element, int) else element._expr
        with np.errstate(over="ignore"):
            rounded = float(np.array(float(exact), dtype.numpy()))
        return element if math.isfinite(rounded) and sympy.Rational(rounded) == exact else None
    return element


def _is_number(element: Element) -> bool:
    return isinstance(element, int) or (known(element) and bool(element._expr.is_Rational))


def known(element: Element) -> bool:
    """Return True if an element is a number or a named expression."""
    return isinstance(element, int) or (isinstance(element, ir.SymbolicDim) and element.value is not None)


@rule("Shape")
def _shape(node: ir.Node) -> list[Element] | None:
    found = dims(node.inputs[0])
    if found is None:
        return None
    return list(found[attribute(node, "start", 0) : attribute(node, "end", None)])


@rule("Size")
def _size(node: ir.Node) -> list[Element] | None:
    found = dims(node.inputs[0])
    return None if found is None else [product(found)]


def product(elements: Sequence[Element]) -> Element:
    """Return the product of dimensions; None when one is unknown."""
    result: Element = 1
    for element in elements:
        if not known(element):
            return None
        result = element if isinstance(result, int) and result == 1 else result * element
    return result


def total(elements: Sequence[Element]) -> Element:
    """Return the sum of dimensions; None when one is unknown."""
    result: Element = 0
    for element in sorted(elements, key=lambda each: isinstance(each, int)):
        if not known(element):
            return None
        result = element if isinstance(result, int) and result == 0 else result + element
    return result


@rule("Identity")
def _same(node: ir.Node) -> list[Element] | None:
    return elements(node.inputs[0])


@rule("Concat")
def _concat(node: ir.Node) -> list[Element] | None:
    joined: list[Element] = []
    for value in node.inputs:
        part = elements(value)
        if part is None:
            size = dims(value)
            if size is None or len(size) != 1 or not isinstance(size[0], int) or size[0] > _LIMIT:
                return None
            part = [None] * size[0]
        joined += part
    return joined


@rule("Gather")
def _gather(node: ir.Node) -> list[Element] | None:
    data, indices = elements(node.inputs[0]), array(node.inputs[1])
    if data is None or indices is None or indices.ndim > 1 or len(dims(node.inputs[0]) or [0]) != 1:
        return None
    picked = [int(i) for i in indices.reshape(-1)]
    return [data[i] for i in picked] if all(-len(data) <= i < len(data) for i in picked) else None


@rule("Slice")
def _slice(node: ir.Node) -> list[Element] | None:
    data = elements(node.inputs[0])
    parts = [array(v) for v in node.inputs[1:]]
    if data is None or len(parts) < 2 or parts[0] is None or parts[1] is None or len(parts[0]) != 1:
        return None
    step = 1 if len(parts) < 4 or parts[3] is None else int(parts[3][0])
    start, end = int(parts[0][0]), int(parts[1][0])
    return [data[i] for i in sliced(len(data), start, end, step)] if step else None


@rule("Add", "Sub", "Mul", "Div")
def _arithmetic(node: ir.Node) -> list[Element] | None:
    if any(v is None or (v.const_value is None and elements(v) is None) for v in node.inputs):
        return None  # most sums are not of sizes: their constants are not looked at
    pairs = _broadcast(*(elements(v) for v in node.inputs))
    combine = _quotient if node.op_type == "Div" and _is_float(node.outputs[0]) else _combine
    return None if pairs is None else [combine(node.op_type, x, y) for x, y in pairs]


def _broadcast(*parts: list[Element] | None) -> list[tuple[Element, ...]] | None:
    """Return the elements of vectors with broadcasting of single elements; None if lengths differ."""
    if any(part is None for part in parts):
        return None
    vectors = [part for part in parts if part is not None]
    widths = {len(part) for part in vectors} - {1}
    if len(widths) > 1:
        return None
    width = widths.pop() if widths else 1
    return list(zip(*(part if len(part) == width else part * width for part in vectors), strict=True))


def _quotient(_: str, x: Element, y: Element) -> Element:
    """Return the quotient of floats; None unless the divisor is a power of two, which makes it exact."""
    if not (known(x) and isinstance(y, int) and 0 < y <= _FINEST and y.bit_count() == 1):
        return None
    return settled(x * ir.SymbolicDim(sympy.Rational(1, y)))


def _combine(op_type: str, x: Element, y: Element) -> Element:
    if not (known(x) and known(y)):
        return None
    if op_type == "Add":
        return settled(x + y)
    if op_type == "Sub":
        return settled(x - y)
    if op_type == "Mul":
        return settled(x * y)
    # Sizes are not negative, so rounding down is rounding towards zero. An unknown divisor may be zero.
    return x // y if isinstance(y, int) and y > 0 and (not isinstance(x, int) or x >= 0) else None


def scaled(size: Element, factor: Element) -> Element:
    """Return a size times a factor, rounded down."""
    return _floor(_combine("Mul", size, factor))


def settled(element: Element) -> Element:
    """Return an element as a number, when all symbols cancelled."""
    expression = getattr(element, "_expr", None)
    return int(expression) if expression is not None and expression.is_Integer else element


@rule("Squeeze", "Unsqueeze", "Reshape")
def _squeeze(node: ir.Node) -> list[Element] | None:
    before, after = dims(node.inputs[0]), dims(node.outputs[0])
    small = before is not None and after is not None and len(before) <= 1 and len(after) <= 1
    return elements(node.inputs[0]) if small else None


@rule("Cast")
def _cast(node: ir.Node) -> list[Element] | None:
    data, to = elements(node.inputs[0]), ir.DataType(attribute(node, "to"))
    if to in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return data
    if data is None or to not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    return [_floor(element) for element in data]


@rule("Floor", "Ceil")
def _rounded(node: ir.Node) -> list[Element] | None:
    data = elements(node.inputs[0])
    return None if data is None else [_floor(element, up=node.op_type == "Ceil") for element in data]


def _floor(element: Element, *, up: bool = False) -> Element:
    """A fraction of sizes as a whole number: the next one, or the one before."""
    if not known(element) or isinstance(element, int) or element._expr.is_integer:
        return element
    expression = element._expr
    if up:
        _, bottom = expression.as_numer_denom()
        expression = expression + (1 - 1 / bottom) if bottom.is_Integer else None
    if expression is None or _has_minus(element):  # rounding towards zero would be upwards
        return None
    return settled(ir.SymbolicDim(sympy.floor(expression)))


@rule("ConstantOfShape")
def _constant_of_shape(node: ir.Node) -> list[Element] | None:
    count, value = elements(node.inputs[0]), attribute(node, "value")
    if (
        value is None
        or value.numpy().dtype.kind not in "iu"
        or count is None
        or len(count) != 1
        or not isinstance(count[0], int)
    ):
        return None
    return [int(value.numpy().reshape(-1)[0])] * min(count[0], _LIMIT + 1)


@rule("Equal")
def _equal(node: ir.Node) -> list[Element] | None:
    """Truths as 0, 1, or None: an unknown size still is not a negative number."""
    pairs = _broadcast(*(elements(v) for v in node.inputs))
    return None if pairs is None else [_same_size(x, y) for x, y in pairs]


def _same_size(x: Element, y: Element) -> Element:
    if not (known(x) and known(y)):
        return None
    if x == y:
        return 1
    numbers = [n for n in (x, y) if isinstance(n, int)]
    sums = [n for n in (x, y) if not isinstance(n, int) and not _has_minus(n)]
    return 0 if len(numbers) == 2 or (sums and numbers and numbers[0] < 0) else None


def _has_minus(element: ir.SymbolicDim) -> bool:
    expression: Any = element._expr
    return any(term.could_extract_minus_sign() for term in expression.as_ordered_terms())


@rule("Where")
def _where(node: ir.Node) -> list[Element] | None:
    contents = array(node.inputs[0])
    condition = elements(node.inputs[0]) if contents is None else list(np.reshape(contents, -1))
    choices = _broadcast(condition, *(elements(v) for v in node.inputs[1:]))
    return None if choices is None else [None if c is None else x if c else y for c, x, y in choices]
