"""conv(x) + z, of the same shape → conv with a fourth input z, which its epilogue adds.

The same for matrix products, whose kernels take it in the same place.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for, same_dims
from py_ort.compiler.passes.rewrite import launches, rewrite
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import attributes_of, origins, rank, remove, replace_value


@rewrite("Add", after=("conv_affine",), before=("nhwc",))  # constants go into the bias
def residual(node: ir.Node, target: Target) -> bool:
    """Add, where a convolution that nothing else reads writes its result."""
    return _fuse(node, target, "Conv", "ConvTranspose")


@rewrite("Add", needs=launches, after=("conv_affine",), before=("nhwc",))
def product_residual(node: ir.Node, target: Target) -> bool:
    """Add, where a product writes its result. Runs after `skip_norm`."""
    return _fuse(node, target, "MatMul", "Gemm")


def _fuse(node: ir.Node, target: Target, *hosts: str) -> bool:
    # The later of two convolutions takes the other's result.
    for at in (1, 0):
        x, z = node.inputs[at], node.inputs[1 - at]
        conv = made_by(x, *hosts)
        if conv is None or x is None or z is None or x is z or z.const_value is not None:
            continue
        if not target.takes("residual", conv.op_type):
            continue
        epilogue = Epilogue.of(conv).plus_residual()
        if not only_for(x, node) or not epilogue.recognized or len(conv.inputs) > 3 or not same_dims(x, z):
            continue
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
            continue
        if conv.op_type == "Gemm" and len(conv.inputs) > 2 and rank(conv.inputs[2]) != 1:
            continue  # its place is where the wasm kernel adds a C with rows
        inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), z]
        # z may be made after the convolution: the new one stands where the sum was.
        build = Builder(node, origin=(*origins(conv), *origins(node)))
        attributes = {**attributes_of(conv), "epilogue": epilogue.program}
        replace_value(node.outputs[0], build.op(conv.op_type, *inputs, **attributes))
        remove(node)
        remove(conv)
        return True
    return False
