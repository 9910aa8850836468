"""Gelu from its parts: x * 0.5 * (1 + erf(x / √2)), in the orders that exporters write; and the form with tanh."""

from __future__ import annotations

import math

import onnx_ir as ir

from py_ort.ops.builder import Builder, origins, remove, replace_value
from py_ort.passes.match import made_by, near, nodes_of, split_constant
from py_ort.passes.pass_base import Pass


class Gelu(Pass):
    """Found from its Erf or Tanh."""

    def call(self, model: ir.Model) -> int:
        """Try each Erf and each Tanh."""
        return sum(_fuse(node) for node in nodes_of(model, "Erf", "Tanh"))


def _factors(value: ir.Value | None, nodes: list[ir.Node], depth: int = 4) -> tuple[float, list[ir.Value]]:
    """Take a product apart: the constant factor, and the other factors."""
    node = made_by(value, "Mul", "Div") if depth else None
    if node is None or value is None:
        return 1.0, [] if value is None else [value]
    found = split_constant(node)
    if found is not None and found[1].size == 1:
        constant = float(found[1].reshape(-1)[0])
        if node.op_type == "Div" and (found[0] is not node.inputs[0] or constant == 0):
            return 1.0, [value]
        nodes.append(node)
        factor, rest = _factors(found[0], nodes, depth - 1)
        return factor * (1 / constant if node.op_type == "Div" else constant), rest
    if node.op_type == "Mul":
        nodes.append(node)
        left, a = _factors(node.inputs[0], nodes, depth - 1)
        right, b = _factors(node.inputs[1], nodes, depth - 1)
        return left * right, a + b
    return 1.0, [value]


def _argument(node: ir.Node) -> tuple[ir.Value, str] | None:
    """Return x and the approximation when the argument of Erf or Tanh is that of a Gelu."""
    if node.op_type == "Erf":
        factor, rest = _factors(node.inputs[0], [])
        return (rest[0], "none") if len(rest) == 1 and abs(factor - math.sqrt(0.5)) < 1e-4 else None
    # √(2/π) * (x + 0.044715 x³), with the cube as Pow or as products
    factor, rest = _factors(node.inputs[0], [])
    if len(rest) != 1 or abs(factor - math.sqrt(2 / math.pi)) > 1e-4:
        return None
    add = made_by(rest[0], "Add")
    if add is None:
        return None
    for at in (0, 1):
        x = add.inputs[at]
        cubic, parts = _factors(add.inputs[1 - at], [])
        if x is None or abs(cubic - 0.044715) > 1e-5:
            continue
        power = made_by(parts[0], "Pow") if len(parts) == 1 else None
        if power is not None and power.inputs[0] is x and near(power.inputs[1], 3):
            return x, "tanh"
        if len(parts) == 3 and all(p is x for p in parts):
            return x, "tanh"
    return None


def _fuse(node: ir.Node) -> bool:
    found = _argument(node)
    if found is None:
        return False
    x, approximate = found
    uses = list(node.outputs[0].uses())
    plus = uses[0].node if len(uses) == 1 else None
    one = None if plus is None or plus.op_type != "Add" else split_constant(plus)
    if plus is None or one is None or one[1].size != 1 or abs(float(one[1].reshape(-1)[0]) - 1) > 1e-6:
        return False
    # Walk up through the products until the factors are 0.5, x and (1 + f).
    top = plus
    while len(top.outputs[0].uses()) == 1 and not top.outputs[0].is_graph_output():
        user = next(iter(top.outputs[0].uses())).node
        if user.domain != "" or user.op_type not in ("Mul", "Div"):
            break
        top = user
        nodes: list[ir.Node] = []
        factor, rest = _factors(top.outputs[0], nodes)
        if (
            abs(factor - 0.5) < 1e-6
            and len(rest) == 2
            and any(r is x for r in rest)
            and any(r is plus.outputs[0] for r in rest)
        ):
            build = Builder(top, origin=[*origins(node), *origins(plus), *origins(top)])
            replace_value(top.outputs[0], build.op("Gelu", x, approximate=approximate))
            remove(top)
            return True
    return False
