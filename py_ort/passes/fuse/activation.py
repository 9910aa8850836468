"""An activation after a Conv, ConvTranspose, Gemm or MatMul becomes an attribute of it."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import attribute, origins, remove, replace_value, scalar, set_attributes, set_origins
from py_ort.passes.match import made_by, nodes_of, only_for
from py_ort.passes.pass_base import Pass

_HOSTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# Attribute names that become activation_params, with ONNX's defaults.
_PARAMETERS: dict[str, list[tuple[str, float]]] = {
    "Relu": [],
    "Sigmoid": [],
    "Tanh": [],
    "HardSwish": [],
    "Softplus": [],
    "Softsign": [],
    "Mish": [],
    "Gelu": [],
    "Clip": [],
    "LeakyRelu": [("alpha", 0.01)],
    "HardSigmoid": [("alpha", 0.2), ("beta", 0.5)],
    "Elu": [("alpha", 1.0)],
    "Swish": [("alpha", 1.0)],
}
_LARGEST = 3.4028234663852886e38


class Activation(Pass):
    """f(conv(x)) → conv with activation f."""

    after = ("conv_affine", "linear", "residual")  # what is folded later would be behind it
    before = ("nhwc",)

    def call(self, model: ir.Model) -> int:
        """Take each activation that follows an operator of matrix products."""
        return sum(_fuse(node) for node in nodes_of(model, *_PARAMETERS))


def _parameters(node: ir.Node) -> list[float] | None:
    if node.op_type != "Clip":
        return [float(attribute(node, name, default)) for name, default in _PARAMETERS[node.op_type]]
    bounds = [-_LARGEST, _LARGEST]
    for i, value in enumerate(node.inputs[1:3]):
        if value is None:
            continue
        bound = scalar(value)
        if bound is None:
            return None
        bounds[i] = max(-_LARGEST, min(_LARGEST, float(bound)))
    return bounds


def _fuse(node: ir.Node) -> bool:
    x = node.inputs[0]
    host = made_by(x, *_HOSTS)
    if x is None or host is None or not only_for(x, node) or attribute(host, "activation"):
        return False
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return False
    parameters = _parameters(node)
    if parameters is None:
        return False
    name = "GeluTanh" if node.op_type == "Gelu" and attribute(node, "approximate", "none") == "tanh" else node.op_type
    set_attributes(host, activation=name)
    if parameters:
        set_attributes(host, activation_params=parameters)
    set_origins(host, (*origins(host), *origins(node)))
    replace_value(node.outputs[0], x)
    remove(node)
    return True
