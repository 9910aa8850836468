"""An activation after a Conv, ConvTranspose, Gemm or MatMul becomes an attribute of it."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.clamps import CLAMPS, as_activation, clamped, fused_bounds, together
from py_ort.compiler.passes.match import made_by, nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.graph import attribute, origins, remove, replace_value, set_attributes, set_origins

_HOSTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# Attribute names that become activation_params, with ONNX's defaults.
_PARAMETERS: dict[str, list[tuple[str, float]]] = {
    "Sigmoid": [],
    "Tanh": [],
    "HardSwish": [],
    "Softplus": [],
    "Softsign": [],
    "Mish": [],
    "Gelu": [],
    "Exp": [],
    "Abs": [],
    "LeakyRelu": [("alpha", 0.01)],
    "HardSigmoid": [("alpha", 0.2), ("beta", 0.5)],
    "Elu": [("alpha", 1.0)],
    "Selu": [("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)],
    "Celu": [("alpha", 1.0)],
    "ThresholdedRelu": [("alpha", 1.0)],
    "Shrink": [("bias", 0.0), ("lambd", 0.5)],
    "Swish": [("alpha", 1.0)],
}


class Activation(Pass):
    """f(conv(x)) → conv with activation f."""

    after = ("conv_affine", "linear", "residual")  # what is folded later would be behind it
    before = ("nhwc",)

    def call(self, model: ir.Model) -> int:
        """Take each activation that follows an operator of matrix products."""
        return sum(_fuse(node) for node in nodes_of(model, *_PARAMETERS, *CLAMPS))


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
        name = _name(node)
        parameters = [float(attribute(node, key, default)) for key, default in _PARAMETERS[node.op_type]]
    set_attributes(host, activation=name, activation_params=parameters or None)
    set_origins(host, (*origins(host), *origins(node)))
    replace_value(node.outputs[0], x)
    remove(node)
    return True


def _name(node: ir.Node) -> str:
    return "GeluTanh" if attribute(node, "approximate", "none") == "tanh" else node.op_type
