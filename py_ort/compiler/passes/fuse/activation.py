"""An activation after a Conv, ConvTranspose, Gemm or MatMul becomes an attribute of it."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.clamps import CLAMPS, as_activation, clamped, fused_bounds, together
from py_ort.compiler.passes.match import made_by, nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.ir.graph import attribute, origins, remove, replace_value, set_attributes, set_origins
from py_ort.schema.scalar_functions import FUNCTIONS

_HOSTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_FUNCTIONS = tuple(row.name for row in FUNCTIONS.values() if row.ends and "" in row.domains)


class Activation(Pass):
    """f(conv(x)) → conv with activation f."""

    after = ("conv_affine", "linear", "residual")  # what is folded later would be behind it
    before = ("nhwc",)

    def call(self, model: ir.Model) -> int:
        """Take each activation that follows an operator of matrix products."""
        return sum(_fuse(node) for node in nodes_of(model, *_FUNCTIONS, *CLAMPS))


def _fuse(node: ir.Node) -> bool:
    clamp = clamped(node) if node.op_type in CLAMPS else None
    x = node.inputs[0] if clamp is None else clamp[0]
    host = made_by(x, *_HOSTS)
    if x is None or host is None or not only_for(x, node) or x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return False
    fused = bool(attribute(host, "activation"))
    if clamp is not None:
        before = fused_bounds(host) if fused else clamp[1]
        if before is None:
            return False
        name, parameters = as_activation(together(before, clamp[1]))
    elif fused or node.op_type in CLAMPS:
        return False
    else:
        row = function_of(node)
        assert row is not None
        name, parameters = row.name, numbers_of(row, node)
    set_attributes(host, activation=name, activation_params=parameters or None)
    set_origins(host, (*origins(host), *origins(node)))
    replace_value(node.outputs[0], x)
    remove(node)
    return True
