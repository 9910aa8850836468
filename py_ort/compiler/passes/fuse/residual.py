"""conv(x) + z, of the same shape → conv with a fourth input z, which its epilogue adds.

The same for matrix products, whose kernels take it in the same place.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb_with, summands
from py_ort.compiler.passes.match import same_dims
from py_ort.compiler.passes.rewrite import launches, rewrite
from py_ort.compiler.target import Target
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import rank
from py_ort.schema.dialect import EPILOGUE, PRODUCT_RESIDUAL


@rewrite("Add", after=("conv_affine",), before=("nhwc",))  # constants go into the bias
def residual(node: ir.Node, target: Target) -> bool:
    """Add, where a convolution that nothing else reads writes its result."""
    return _fuse(node, target, "Conv", "ConvTranspose")


@rewrite("Add", needs=launches, after=("conv_affine",), before=("nhwc",))
def product_residual(node: ir.Node, target: Target) -> bool:
    """Add, where a product writes its result. Runs after `skip_norm`."""
    return _fuse(node, target, "MatMul", "Gemm")


def _fuse(node: ir.Node, target: Target, *hosts: str) -> bool:
    for conv, x, z in summands(node):
        if conv.domain != "" or conv.op_type not in hosts or not target.takes("residual", conv.op_type):
            continue
        epilogue = Epilogue.of(conv).plus_residual()
        if (
            z.const_value is not None
            or not epilogue.recognized
            or len(conv.inputs) > PRODUCT_RESIDUAL
            or not same_dims(x, z)
        ):
            continue
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
            continue
        if conv.op_type == "Gemm" and len(conv.inputs) > 2 and rank(conv.inputs[2]) != 1:
            continue  # its place is where the wasm kernel adds a C with rows
        absorb_with(conv, node, PRODUCT_RESIDUAL, z, **{EPILOGUE: epilogue.program})
        return True
    return False
