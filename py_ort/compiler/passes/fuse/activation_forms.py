"""Activations in the forms of ai.onnx that other passes know.

PRelu with one slope for all                                 → LeakyRelu
Gelu, FastGelu, QuickGelu of com.microsoft                   → Gelu, Gelu by tanh, Swish
BiasGelu, FastGelu with a bias, behind a product of weights  → Add, which becomes the product's bias, and Gelu
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.block_products import block_product, is_block_product
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, rank, remove, replace_value, required
from py_ort.ir.operators import MICROSOFT

# Operator and attributes for each of com.microsoft's; QuickGelu's alpha is its own.
_GELUS: dict[str, tuple[str, dict[str, Any]]] = {
    "Gelu": ("Gelu", {"approximate": "none"}),
    "BiasGelu": ("Gelu", {"approximate": "none"}),
    "FastGelu": ("Gelu", {"approximate": "tanh"}),
    "QuickGelu": ("Swish", {}),
}
_QUICK = 1.702
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_SLOPES = 1 << 16  # above, they are weights, and no slope that a framework repeats for each channel


@rewrite("PRelu", before=("linear", "packed_gates", "activation"))
def activation_forms(node: ir.Node) -> bool:
    """Replace a PRelu with one slope: fewer operators for the passes behind."""
    x, slopes = node.inputs
    if x is None or x.dtype not in _FLOATS or slopes is None or slopes.const_value is None:
        return False
    if not 0 < slopes.const_value.size <= _SLOPES:
        return False
    found = np.unique(required(array(slopes)))
    if len(found) != 1 or not np.isfinite(found[0]):
        return False
    replace_value(node.outputs[0], Builder(node).op("LeakyRelu", x, alpha=float(found[0])))
    remove(node)
    return True


@activation_forms.also(*_GELUS, domain=MICROSOFT)
def _gelu(node: ir.Node) -> bool:
    x, bias = (*node.inputs, None)[:2]
    if x is None or x.dtype not in _FLOATS or (bias is not None and not _becomes_bias(x, bias, node)):
        return False
    op_type, attributes = _GELUS[node.op_type]
    if op_type == "Swish":
        attributes = {"alpha": float(attribute(node, "alpha", _QUICK))}
    build = Builder(node)
    plain = x if bias is None else build.op("Add", x, bias)
    replace_value(node.outputs[0], build.op(op_type, plain, **attributes))
    remove(node)
    return True


def _becomes_bias(x: ir.Value, bias: ir.Value, node: ir.Node) -> bool:
    """Return True if an Add of both would become the product's bias."""
    product = made_by(x, "MatMul") or block_product(x)
    if product is None or not only_for(x, node) or bias.const_value is None:
        return False
    columns = dims(x)
    if columns is None or list(bias.const_value.shape) != columns[-1:]:
        return False
    weights = product.inputs[1]
    return is_block_product(product) or (weights is not None and weights.const_value is not None and rank(weights) == 2)
