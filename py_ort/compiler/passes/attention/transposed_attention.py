"""Attention that ends in values times transposed weights → the product that attention is made of, transposed.

Heads that are channels of a convolution are written so: v · softmax(qᵀ · k)ᵀ, with [size, positions] for each head.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.attention.attention_scores import scores_of
from py_ort.compiler.passes.fuse.transposed_products import swapped
from py_ort.compiler.passes.match import drop, only_user
from py_ort.compiler.passes.rewrite import rewrite, runs
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import attribute, rank, remove


@rewrite("Softmax", needs=runs("Attention"), before=("attention", "transposed_products"))
def transposed_attention(softmax: ir.Node) -> bool:
    """v · pᵀ = (p · vᵀ)ᵀ: the transposes go with those around it, and in the layout."""
    weights, count = softmax.outputs[0], rank(softmax.outputs[0])
    if count is None or count < 3 or attribute(softmax, "axis", -1) not in (-1, count - 1):
        return False
    transpose = only_user(weights)
    product = (
        None if transpose is None or swapped(transpose.outputs[0]) is not weights else only_user(transpose.outputs[0])
    )
    if product is None or product.domain != "" or product.op_type != "MatMul" or len(product.inputs) != 2:
        return False
    values = product.inputs[0]
    if transpose is None or product.inputs[1] is not transpose.outputs[0] or values is None or rank(values) != count:
        return False
    if values.const_value is not None or has_epilogue(product) or not scores_of(softmax.inputs[0], softmax):
        return False
    build = Builder(product)
    perm = [*range(count - 2), count - 1, count - 2]
    rows = swapped(values) or build.op("Transpose", values, perm=perm)
    build.finish(build.op("Transpose", build.op("MatMul", weights, rows), perm=perm))
    remove(transpose)
    drop(values)
    return True
