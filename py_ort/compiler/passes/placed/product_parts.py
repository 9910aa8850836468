"""MatMul → SkipLayerNormalization: the parts of k that a product's workgroups summed are added up by the normalization.

Where a product has few rows and a deep k, workgroups share k, and another launch adds up what they made. The
normalization reads it anyway. With `y_parts` a MatMul [*rows, n] makes [parts, *rows, n], as many parts as it takes,
maybe one, of float32 whatever the operands are; with `x_parts` the normalization has that as input 0, or 1 of the
residual's shape. A bias is the normalization's then.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_user, same_dims
from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.ir.graph import all_nodes, dims, input_at, rank, set_attributes
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.dialect import EPILOGUE, PRODUCT_BIAS, PRODUCT_RESIDUAL, X_PARTS, Y_PARTS

#: Kernels cut no k below this one.
_LEAST_K = 2048


class ProductParts(KernelPass):
    """Products that only a normalization reads, both where kernels can do it."""

    after = ("quantized_ends",)

    def call(self, model: ir.Model) -> int:
        """Look at each normalization's rows, then at its residual."""
        return sum(self._join(node) for node in list(all_nodes(model.graph)))

    def _join(self, node: ir.Node) -> bool:
        if _bias_at(node) is None or X_PARTS in node.attributes or not self._takes(node):
            return False
        rows, residual = node.inputs[:2]
        if rows is None or residual is None:
            return False
        for x, other in ((rows, residual), (residual, rows)):
            product = made_by(x, "MatMul")
            if product is None or (x is residual and not same_dims(rows, residual)):
                continue
            if only_user(x) is node and self._has_parts(product):
                if not _move_bias(product, node):
                    continue
                node.replace_input_with(0, x)
                node.replace_input_with(1, other)
                set_attributes(product, **{Y_PARTS: 1})
                set_attributes(node, **{X_PARTS: 1})
                x.shape, x.type = ir.Shape([None, *(dims(x) or ())]), ir.TensorType(ir.DataType.FLOAT)
                return True
        return False

    def _has_parts(self, product: ir.Node) -> bool:
        """Return True if a product may be cut, and has no other end than a bias."""
        weights, made = product.inputs[1], product.outputs[0]
        sizes = dims(weights)
        if not self._takes(product) or weights is None or sizes is None or len(sizes) != 2 or (rank(made) or 0) < 2:
            return False
        k, n = sizes
        if not isinstance(k, int) or not isinstance(n, int) or k < _LEAST_K or n % 4:
            return False
        return (
            made.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
            and EPILOGUE not in product.attributes
            and input_at(product, PRODUCT_RESIDUAL) is None
        )


def _bias_at(node: ir.Node) -> int | None:
    """Where a normalization with a residual has a bias of the rows that it is given."""
    if node.domain != MICROSOFT:
        return None
    return {"SkipLayerNormalization": 4, "SkipSimplifiedLayerNormalization": 3}.get(node.op_type)


def _move_bias(product: ir.Node, node: ir.Node) -> bool:
    """Leave a bias to the node, if there is one; False where it has one already."""
    bias, at = input_at(product, PRODUCT_BIAS), _bias_at(node)
    if bias is None or at is None:
        return True
    if input_at(node, at) is not None:
        return False
    product.resize_inputs(PRODUCT_BIAS)
    if len(node.inputs) <= at:
        node.resize_inputs(at + 1)
    node.replace_input_with(at, bias)
    return True
