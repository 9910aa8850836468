"""x + x * g → x * (g + 1), where g is smaller than x: one walk over x instead of two."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins, remove, replace_value


def _is_gate(gate: ir.Value, x: ir.Value) -> bool:
    """Return True if the gate has one element where x has many."""
    small, large = dims(gate), dims(x)
    if small is None or large is None or len(small) != len(large) or len(small) < 3:
        return False
    return any(isinstance(a, int) and a == 1 and b != 1 for a, b in zip(small, large, strict=True))


@rewrite("Add")
def gates(node: ir.Node) -> bool:
    """Take each Add of a value and of its product with a gate: squeeze-and-excite with a shortcut."""
    for at in (0, 1):
        x, scaled = node.inputs[at], node.inputs[1 - at]
        product = made_by(scaled, "Mul")
        if product is None or x is None or scaled is None or not only_for(scaled, node):
            continue
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) or not any(v is x for v in product.inputs):
            continue
        gate = product.inputs[1] if product.inputs[0] is x else product.inputs[0]
        if gate is None or gate is x or not _is_gate(gate, x):
            continue
        build = Builder(node, origin=(*origins(product), *origins(node)))
        replace_value(node.outputs[0], build.op("Mul", x, _raised(build, gate, product)))
        remove(node)
        remove(product)
        made = gate.producer()
        if made is not None and not gate.uses() and not gate.is_graph_output():
            remove(made)
        return True
    return False


def _raised(build: Builder, gate: ir.Value, product: ir.Node) -> ir.Value:
    """Return gate + 1. HardSigmoid(v) + 1 is Clip(alpha v + beta + 1, 1, 2), which convolutions can fuse."""
    dtype = (gate.dtype or ir.DataType.FLOAT).numpy()
    sigmoid = made_by(gate, "HardSigmoid")
    if sigmoid is None or not only_for(gate, product) or made_by(sigmoid.inputs[0], "Conv", "Gemm") is None:
        return build.op("Add", gate, np.array(1, dtype))
    alpha, beta = attribute(sigmoid, "alpha", 0.2), attribute(sigmoid, "beta", 0.5)
    scaled = build.op("Mul", sigmoid.inputs[0], np.array(alpha, dtype))
    moved = build.op("Add", scaled, np.array(beta + 1, dtype))
    return build.op("Clip", moved, np.array(1, dtype), np.array(2, dtype))
