"""An activation after a Conv, ConvTranspose or product of matrices becomes a step of its epilogue.

So does a number that is added to a convolution's activation: what is left of a learned scale and shift.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb
from py_ort.compiler.passes.fuse.clamps import CLAMPS, Bounds, clamp_of, clamped, clamping
from py_ort.compiler.passes.match import made_by, only_for, split_constant
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, is_block_product, may_end
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import array, attribute, dims
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.scalar_functions import FUNCTIONS

_HOSTS = (*(("", name) for name in ("Conv", "ConvTranspose", "Gemm", "MatMul")), (MICROSOFT, "MatMulIntegerToFloat"))
_FUNCTIONS = tuple(row.name for row in FUNCTIONS.values() if row.ends and "" in row.domains)


@rewrite(
    *(*_FUNCTIONS, *CLAMPS, "Add"),
    after=("conv_affine", "linear", "residual"),  # which fold into the product itself, before its epilogue
    before=("nhwc",),
)
def activation(node: ir.Node, target: Target) -> bool:
    """f(conv(x)), and f(conv(x)) + number → conv with that in its epilogue."""
    return _add(node, target) if node.op_type == "Add" else _apply(node, target)


def _apply(node: ir.Node, target: Target) -> bool:
    clamp = clamped(node) if node.op_type in CLAMPS else None
    x = node.inputs[0] if clamp is None else clamp[0]
    host = None if x is None else x.producer()
    if x is None or host is None or not _is_host(host, target) or not only_for(x, node):
        return False
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return False
    before = Epilogue.of(host)
    row = function_of(node)
    if clamp is not None:
        epilogue = clamping(before, clamp[1])
    elif row is None or node.op_type in CLAMPS:
        return False
    else:
        epilogue = before.then(row.name, numbers_of(row, node))
    if not epilogue.recognized:
        return False
    epilogue.write(host)
    absorb(host, node)
    return True


def _is_host(node: ir.Node, target: Target) -> bool:
    if is_block_product(node):
        return may_end(node) and target.offers("epilogue", OP_TYPE, MICROSOFT) and target.runs_first(node)
    host = node.domain, node.op_type
    return host in _HOSTS and target.takes("epilogue", node.op_type, node.domain)


def _add(node: ir.Node, target: Target) -> bool:
    found = split_constant(node)
    if found is None or found[1].size != 1 or found[1].ndim > len(dims(found[0]) or []):
        return False
    value, offset = found[0], float(found[1].reshape(-1)[0])
    host = made_by(value, "Conv", "ConvTranspose")
    if host is None or not only_for(value, node) or not np.isfinite(offset):
        return False
    if not target.takes("epilogue", host.op_type):
        return False
    epilogue = Epilogue.of(host)
    if not epilogue or epilogue.steps[-1].kind != "function":
        return False
    bounds = clamp_of(epilogue.steps[-1])
    if bounds is not None:
        if not _moved_bounds(host, epilogue, bounds, offset):
            return False
    elif epilogue.plus(offset).recognized:
        epilogue.plus(offset).write(host)
    else:
        return False
    absorb(host, node)
    return True


def _moved_bounds(host: ir.Node, epilogue: Epilogue, bounds: Bounds, offset: float) -> bool:
    """clip(x, low, high) + c = clip(x + c, low + c, high + c): the bias takes the first."""
    weights, bias = array(host.inputs[1]), host.inputs[2] if len(host.inputs) > 2 else None
    if weights is None or (bias is not None and bias.const_value is None):
        return False
    channels = weights.shape[0] if host.op_type == "Conv" else weights.shape[1] * attribute(host, "group", 1)
    before = array(bias)
    moved = np.full(channels, offset, weights.dtype) if before is None else before + weights.dtype.type(offset)
    if len(host.inputs) < 3:
        host.resize_inputs(3)
    host.replace_input_with(2, Builder(host).constant(moved, None if bias is None else bias.name))
    with np.errstate(over="ignore"):  # infinity is as good a bound
        Epilogue(epilogue.steps[:-1]).then("Clip", [float(np.float32(bound + offset)) for bound in bounds]).write(host)
    return True
