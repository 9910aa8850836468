"""Reads sums and products of nodes as a polynomial of chosen values, independent of how the model writes it.

Gelu, Swish and HardSwish are known as polynomials of x and of an inner function, not by the order of their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_reading
from py_ort.ir.graph import array, rank
from py_ort.ir.rules import Rules

Polynomial = dict[tuple[int, ...], float]
"""Coefficients of products: (0, 0, 1) is the first value squared times the second, () is the number."""

_DEPTH = 8
_TERMS = 8
_POWERS = 3


def polynomial(value: ir.Value | None, of: Sequence[ir.Value], depth: int = _DEPTH) -> Polynomial | None:
    """Return a value as a polynomial of others; None when it is none, or a long one."""
    if value is None:
        return None
    for i, each in enumerate(of):
        if each is value:
            return {(i,): 1.0}
    number = _number(value, of[0])
    if number is not None:
        return {(): number}
    node = value.producer() if depth else None
    combine = None if node is None else _combine.of(node)
    if node is None or combine is None:
        return None
    operands = []
    for operand in node.inputs:
        operands.append(polynomial(operand, of, depth - 1))
        if operands[-1] is None:
            return None
    return combine(*operands)


_combine = Rules[Callable[..., "Polynomial | None"]]()
"""Functions that compute an operator on polynomials, by operator."""


@_combine("Neg")
def _negative(x: Polynomial) -> Polynomial:
    return {product: -factor for product, factor in x.items()}


@_combine("Add")
def _sum(left: Polynomial, right: Polynomial) -> Polynomial | None:
    total = dict(left)
    for product, factor in right.items():
        total[product] = total.get(product, 0.0) + factor
    return total if len(total) <= _TERMS else None


@_combine("Sub")
def _difference(left: Polynomial, right: Polynomial) -> Polynomial | None:
    return _sum(left, _negative(right))


@_combine("Mul")
def _times(left: Polynomial, right: Polynomial) -> Polynomial | None:
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            product = tuple(sorted(a + b))
            total[product] = total.get(product, 0.0) + x * y
    return total if len(total) <= _TERMS else None


@_combine("Div")
def _quotient(left: Polynomial, right: Polynomial) -> Polynomial | None:
    constant = _constant(right)
    return {product: factor / constant for product, factor in left.items()} if constant else None


@_combine("Pow")
def _power(left: Polynomial, right: Polynomial) -> Polynomial | None:
    constant = _constant(right)
    if not constant or constant != int(constant) or not 1 <= constant <= _POWERS:
        return None
    power: Polynomial | None = left
    for _ in range(int(constant) - 1):
        power = None if power is None else _times(power, left)
    return power


def _constant(found: Polynomial) -> float | None:
    return found.get(()) if set(found) == {()} else None


def _number(value: ir.Value, like: ir.Value) -> float | None:
    contents = array(value) if value.const_value is not None and value.const_value.size == 1 else None
    if contents is None or contents.dtype.kind != "f" or contents.ndim > (rank(like) or 0):
        return None
    return float(contents.reshape(-1)[0])


def is_near(found: Polynomial | None, wanted: Mapping[tuple[int, ...], float], tolerance: float = 1e-4) -> bool:
    """Return True if two polynomials have nearly equal coefficients."""
    if found is None or set(found) != set(wanted):
        return False
    return all(abs(found[product] - factor) <= tolerance * abs(factor) for product, factor in wanted.items())


def behind(value: ir.Value | None, depth: int = _DEPTH) -> Iterator[ir.Value]:
    """Yield the value, and the operands of the sums and products that make it, the nearest first."""
    row = [value]
    for _ in range(depth):
        later: list[ir.Value | None] = []
        for each in dict.fromkeys(row):
            if each is None or each.const_value is not None:
                continue
            yield each
            node = made_by(each, *_combine)
            later += [] if node is None else node.inputs
        row = later


def before(value: ir.Value, depth: int = _DEPTH) -> Iterator[ir.Node]:
    """Yield the nodes that make sums and products of a value and of others, the nearest first."""
    row = [value]
    for _ in range(depth):
        nodes = dict.fromkeys(node for each in row for node in nodes_reading(each))
        found = [node for node in nodes if _combine.of(node) is not None]
        yield from found
        row = [node.outputs[0] for node in found[:_POWERS]]
