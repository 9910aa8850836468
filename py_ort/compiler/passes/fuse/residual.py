"""conv(x) + z, of the same shape → conv with a fourth input z, which its epilogue adds.

The same for matrix products, whose kernels take it in the same place.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_of, only_for, same_dims
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import attributes_of, origins, rank, remove, replace_value


class Residual(Pass):
    """The sum of a residual block, made where the convolution or product writes its result."""

    after = ("conv_affine",)  # constants go into the bias
    before = ("nhwc",)

    def __init__(self, target: Target, *hosts: str) -> None:
        """`hosts`: what shall take a residual, if its kernels can. SkipNorm runs before that of products."""
        self._hosts = tuple(op_type for op_type in hosts if target.takes("residual", op_type))

    def call(self, model: ir.Model) -> int:
        """Take each Add one of whose inputs is a convolution, or product, that nothing else reads."""
        return sum(_fuse(node, self._hosts) for node in nodes_of(model, "Add"))


def _fuse(node: ir.Node, hosts: tuple[str, ...]) -> bool:
    # The later of two convolutions takes the other's result.
    for at in (1, 0):
        x, z = node.inputs[at], node.inputs[1 - at]
        conv = made_by(x, *hosts)
        if conv is None or x is None or z is None or x is z or z.const_value is not None:
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
