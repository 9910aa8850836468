"""An activation after a Conv, ConvTranspose or product of matrices becomes a step of its epilogue."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.clamps import CLAMPS, clamped, clamping
from py_ort.compiler.passes.match import only_for
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, is_block_product, may_end
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import origins, remove, replace_value, set_origins
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.scalar_functions import FUNCTIONS

_HOSTS = (*(("", name) for name in ("Conv", "ConvTranspose", "Gemm", "MatMul")), (MICROSOFT, "MatMulIntegerToFloat"))
_FUNCTIONS = tuple(row.name for row in FUNCTIONS.values() if row.ends and "" in row.domains)


@rewrite(
    *(*_FUNCTIONS, *CLAMPS),
    after=("conv_affine", "linear", "residual"),  # what is folded later would be behind it
    before=("nhwc",),
)
def activation(node: ir.Node, target: Target) -> bool:
    """f(conv(x)) → conv with f in its epilogue."""
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
    set_origins(host, (*origins(host), *origins(node)))
    replace_value(node.outputs[0], x)
    remove(node)
    return True


def _is_host(node: ir.Node, target: Target) -> bool:
    if is_block_product(node):
        return may_end(node) and target.offers("epilogue", OP_TYPE, MICROSOFT) and target.runs_first(node)
    host = node.domain, node.op_type
    return host in _HOSTS and target.takes("epilogue", node.op_type, node.domain)
