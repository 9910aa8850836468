"""f(conv(x)) + number → Conv with both in its epilogue: what is left of a learned scale and shift."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.fuse.clamps import Bounds, clamp_of
from py_ort.compiler.passes.match import made_by, only_for, split_constant
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import array, attribute, dims, origins, remove, replace_value, set_origins

_HOSTS = ("Conv", "ConvTranspose")


@rewrite("Add", after=("activation",))
def activation_offset(node: ir.Node, target: Target) -> bool:
    """Add a number to a convolution's activation in the kernel that computes it."""
    found = split_constant(node)
    if found is None or found[1].size != 1 or found[1].ndim > len(dims(found[0]) or []):
        return False
    value, offset = found[0], float(found[1].reshape(-1)[0])
    host = made_by(value, *_HOSTS)
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
    set_origins(host, (*origins(host), *origins(node)))
    replace_value(node.outputs[0], value)
    remove(node)
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
