"""MatMul and Add of a bias → Gemm for matrices, else MatMul with a third input where the kernels take one.

MatMulNBits takes it as com.microsoft's does.

Factors of a product by constant weights go into the weights.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb_with
from py_ort.compiler.passes.match import made_by, only_for, split_constant, times
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.block_products import BIAS, block_product, is_block_product, is_plain
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, attributes_of, origins, rank, remove, replace_value


def _takes(product: ir.Node, columns: int, target: Target) -> bool:
    """Return True if a MatMul or MatMulNBits may have a bias of so many columns."""
    if is_block_product(product):
        return is_plain(product) and len(product.inputs) <= BIAS and bool(attribute(product, "N") == columns)
    weights, known = array(product.inputs[1]), rank(product.inputs[0]) or 0
    if len(product.inputs) > 2 or has_epilogue(product) or known < 2:
        return False
    has_gemm = target.has("", "Gemm") is True or target.has("", "MatMul") is not True
    if not (has_gemm if known == 2 else target.matmul_bias):
        return False
    return weights is not None and weights.ndim == 2 and weights.shape[1] == columns


@rewrite("Mul")
def linear(node: ir.Node) -> bool:
    """(x @ w) * s → x @ (w * s), for a number or a vector of one for each column; then x @ w + b."""
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
    scaled = times(weights, factor.reshape(-1))
    if scaled is None:
        return False
    build = Builder(product, origin=(*origins(product), *origins(node)))
    result = build.op("MatMul", product.inputs[0], build.constant(scaled), **attributes_of(product))
    replace_value(node.outputs[0], result)
    remove(node)
    remove(product)
    return True


@linear.also("Add")
def _biased(node: ir.Node, target: Target) -> bool:
    found = split_constant(node)
    if found is None:
        return False
    x, contents = found
    product = made_by(x, "MatMul") or block_product(x)
    if product is None or not only_for(x, node) or x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return False
    known = rank(product.inputs[0])
    if known is None or contents.ndim > known or contents.shape[-1:] != (contents.size,):
        return False
    if not _takes(product, contents.size, target):
        return False
    bias = node.inputs[0] if node.inputs[1] is x else node.inputs[1]
    if contents.ndim > 1:
        bias = Builder(node).constant(contents.reshape(-1))
    if is_block_product(product) or known > 2:
        absorb_with(product, node, BIAS if is_block_product(product) else 2, bias)
        return True
    build = Builder(node, origin=(*origins(product), *origins(node)))
    made = build.op("Gemm", *product.inputs, bias, alpha=1.0, beta=1.0, transA=0, transB=0)
    replace_value(node.outputs[0], made)
    remove(node)
    remove(product)
    return True
