"""Finds HardSigmoid, HardSwish and Swish in their parts.

The forms, with their constants:
    Clip(x + 3, 0, 6) / 6, or * (1/6)          → HardSigmoid(alpha = 1/6, beta = 0.5)
    x * HardSigmoid(1/6, 0.5)(x)               → HardSwish(x)
    (x * Clip(x + 3, 0, 6)) / 6                → HardSwish(x)
    x * Sigmoid(x)                             → Swish(x)
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, origins, remove, replace_value
from py_ort.passes.match import made_by, near, nodes_of, only_for, split_constant
from py_ort.passes.pass_base import Pass

_SIXTH = 1.0 / 6.0


class HardSwish(Pass):
    """Sigmoid-like products."""

    def call(self, model: ir.Model) -> int:
        """Relu6 forms first, then the products."""
        count = 0
        for node in nodes_of(model, "Mul", "Div"):
            count += _divided_by_six(node)
        for node in nodes_of(model, "Mul"):
            count += _product(node)
        return count


def _shifted_relu6(value: ir.Value | None) -> tuple[ir.Value, list[ir.Node]] | None:
    """For Clip(x + 3, 0, 6): return x and the nodes, outermost first."""
    clip = made_by(value, "Clip")
    if clip is None or len(clip.inputs) < 3 or not near(clip.inputs[1], 0) or not near(clip.inputs[2], 6):
        return None
    add = made_by(clip.inputs[0], "Add")
    found = None if add is None else split_constant(add)
    if add is None or found is None or found[1].size != 1 or abs(float(found[1].reshape(-1)[0]) - 3) > 1e-4:
        return None
    return found[0], [clip, add]


def _divided_by_six(node: ir.Node) -> bool:
    found = split_constant(node)
    if found is None or found[1].size != 1 or (node.op_type == "Div" and found[0] is not node.inputs[0]):
        return False
    factor = float(found[1].reshape(-1)[0])
    if abs((1.0 / factor if node.op_type == "Div" and factor else factor) - _SIXTH) > 1e-5:
        return False
    inner = found[0]
    relu6 = _shifted_relu6(inner)
    if relu6 is not None:
        return _replace(node, "HardSigmoid", relu6[0], relu6[1], alpha=_SIXTH, beta=0.5)
    product = made_by(inner, "Mul")
    if product is None or not only_for(inner, node):
        return False
    for at in (0, 1):
        relu6 = _shifted_relu6(product.inputs[at])
        if relu6 is not None and relu6[0] is product.inputs[1 - at]:
            return _replace(node, "HardSwish", relu6[0], [product, *relu6[1]])
    return False


def _product(node: ir.Node) -> bool:
    if len(node.inputs) != 2:
        return False
    for at in (0, 1):
        x = node.inputs[1 - at]
        gate = made_by(node.inputs[at], "HardSigmoid", "Sigmoid", "Mul", "Div")
        if gate is None or x is None:
            continue
        if gate.op_type == "Sigmoid" and gate.inputs[0] is x:
            return _replace(node, "Swish", x, [gate], alpha=1.0)
        if gate.op_type == "HardSigmoid" and gate.inputs[0] is x and _is_swish_gate(gate):
            return _replace(node, "HardSwish", x, [gate])
    return False


def _is_swish_gate(node: ir.Node) -> bool:
    return abs(attribute(node, "alpha", 0.2) - _SIXTH) < 1e-4 and abs(attribute(node, "beta", 0.5) - 0.5) < 1e-6


def _replace(node: ir.Node, op_type: str, x: ir.Value, parts: list[ir.Node], **attributes: Any) -> bool:
    """Put one node in the place of `node` and of those of `parts` (outermost first) that nothing else reads."""
    build = Builder(node, origin=[name for part in (*reversed(parts), node) for name in origins(part)])
    replace_value(node.outputs[0], build.op(op_type, x, **attributes))
    remove(node)
    for part in parts:
        if not part.outputs[0].uses() and not part.outputs[0].is_graph_output():
            remove(part)
    return True
