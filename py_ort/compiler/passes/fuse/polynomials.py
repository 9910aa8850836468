"""Sums and products taken apart: an expression as a polynomial of chosen values, however it is written.

Gelu, Swish and HardSwish are known as polynomials of x and of an inner function, not by the order of their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_reading
from py_ort.ir.graph import array, rank

Polynomial = dict[tuple[int, ...], float]
"""Coefficients of products: (0, 0, 1) is the first value squared times the second, () is the number."""

_OPERATORS = ("Add", "Sub", "Mul", "Div", "Neg", "Pow")
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
    node = made_by(value, *_OPERATORS) if depth else None
    if node is None:
        return None
    left = polynomial(node.inputs[0], of, depth - 1)
    if left is None or node.op_type == "Neg":
        return None if left is None else {product: -factor for product, factor in left.items()}
    right = polynomial(node.inputs[1], of, depth - 1)
    if right is None:
        return None
    if node.op_type in ("Add", "Sub"):
        sign = 1.0 if node.op_type == "Add" else -1.0
        total = dict(left)
        for product, factor in right.items():
            total[product] = total.get(product, 0.0) + sign * factor
        return _short(total)
    if node.op_type == "Mul":
        return _times(left, right)
    constant = right.get(()) if set(right) == {()} else None
    if not constant:
        return None
    if node.op_type == "Div":
        return {product: factor / constant for product, factor in left.items()}
    if constant != int(constant) or not 1 <= constant <= _POWERS:
        return None
    power: Polynomial | None = left
    for _ in range(int(constant) - 1):
        power = None if power is None else _times(power, left)
    return power


def _number(value: ir.Value, like: ir.Value) -> float | None:
    contents = array(value) if value.const_value is not None and value.const_value.size == 1 else None
    if contents is None or contents.dtype.kind != "f" or contents.ndim > (rank(like) or 0):
        return None
    return float(contents.reshape(-1)[0])


def _times(left: Polynomial, right: Polynomial) -> Polynomial | None:
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            product = tuple(sorted(a + b))
            total[product] = total.get(product, 0.0) + x * y
    return _short(total)


def _short(total: Polynomial) -> Polynomial | None:
    return total if len(total) <= _TERMS else None


def is_near(found: Polynomial | None, wanted: Mapping[tuple[int, ...], float], tolerance: float = 1e-4) -> bool:
    """Whether two polynomials have the same coefficients, nearly."""
    if found is None or set(found) != set(wanted):
        return False
    return all(abs(found[product] - factor) <= tolerance * abs(factor) for product, factor in wanted.items())


def behind(value: ir.Value | None, depth: int = _DEPTH) -> Iterator[ir.Value]:
    """Yield the value, and those that sums and products make it of, the nearest first."""
    row = [value]
    for _ in range(depth):
        later: list[ir.Value | None] = []
        for each in dict.fromkeys(row):
            if each is None or each.const_value is not None:
                continue
            yield each
            node = made_by(each, *_OPERATORS)
            later += [] if node is None else node.inputs
        row = later


def before(value: ir.Value, depth: int = _DEPTH) -> Iterator[ir.Node]:
    """Yield the nodes that make sums and products of a value and of others, the nearest first."""
    row = [value]
    for _ in range(depth):
        nodes = dict.fromkeys(node for each in row for node in nodes_reading(each))
        found = [node for node in nodes if node.domain == "" and node.op_type in _OPERATORS]
        yield from found
        row = [node.outputs[0] for node in found[:_POWERS]]
