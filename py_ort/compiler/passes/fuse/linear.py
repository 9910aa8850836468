"""MatMul and Add of a bias → Gemm for matrices, else MatMul with a third input where the kernels take one.

Factors of a product by constant weights go into the weights.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_of, only_for, split_constant, times
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attributes_of, origins, rank, remove, replace_value


class Linear(Pass):
    """x @ w + b."""

    def __init__(self, target: Target) -> None:
        """`target` tells whether the kernels of MatMul take a bias."""
        self._matmul_bias = target.matmul_bias

    def call(self, model: ir.Model) -> int:
        """Take each product's factors, then each Add of a vector to a product."""
        scaled = sum(_scaled(node) for node in nodes_of(model, "Mul"))
        return scaled + sum(self._fuse(node) for node in nodes_of(model, "Add"))

    def _fuse(self, node: ir.Node) -> bool:
        found = split_constant(node)
        if found is None:
            return False
        x, contents = found
        product = made_by(x, "MatMul")
        if product is None or not only_for(x, node) or len(product.inputs) > 2 or has_epilogue(product):
            return False
        weights = array(product.inputs[1])
        bias = node.inputs[0] if node.inputs[1] is x else node.inputs[1]
        known = rank(product.inputs[0])
        if weights is None or weights.ndim != 2 or known is None or known < 2 or bias is None:
            return False
        columns = weights.shape[1]
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
            return False
        if contents.size != columns or contents.shape[-1:] != (columns,) or contents.ndim > known:
            return False
        build = Builder(node, origin=(*origins(product), *origins(node)))
        if contents.ndim > 1:
            bias = build.constant(contents.reshape(-1))
        if known == 2:
            result = build.op("Gemm", *product.inputs, bias, alpha=1.0, beta=1.0, transA=0, transB=0)
        elif self._matmul_bias:
            result = build.op("MatMul", *product.inputs, bias, **attributes_of(product))
        else:
            return False
        replace_value(node.outputs[0], result)
        remove(node)
        remove(product)
        return True


def _scaled(node: ir.Node) -> bool:
    """(x @ w) * s → x @ (w * s), for a number or a vector of one for each column."""
    found = split_constant(node)
    product = None if found is None else made_by(found[0], "MatMul")
    if found is None or product is None or not only_for(found[0], node) or len(product.inputs) > 2:
        return False
    weights, factor = array(product.inputs[1]), found[1]
    if weights is None or weights.ndim != 2 or weights.dtype != factor.dtype or has_epilogue(product):
        return False
    if factor.ndim > (rank(found[0]) or 0) or factor.size != (factor.shape[-1] if factor.ndim else 1):
        return False
    if factor.size not in (1, weights.shape[1]):
        return False
    build = Builder(product, origin=(*origins(product), *origins(node)))
    result = build.op(
        "MatMul",
        product.inputs[0],
        build.constant(times(weights, factor.reshape(-1))),
        **attributes_of(product),
    )
    replace_value(node.outputs[0], result)
    remove(node)
    remove(product)
    return True
