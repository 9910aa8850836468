"""x + skip, then LayerNormalization or RMSNormalization → one operator of com.microsoft.

It gives the sum out, too, if it is read.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, same_dims
from py_ort.compiler.passes.norms.norm_parts import is_float
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins, rank, remove, replace_value
from py_ort.ir.operators import MICROSOFT, op_types, operator

_SUM = 3  # the output that is the sum


def _repeats(skip: ir.Value, total: ir.Value) -> bool:
    """Return True if the whole batch has the same rows: [positions, size], as embeddings of positions have.

    Kernels check how many positions it has: as many as there are, or one.
    """
    small, wide = dims(skip), dims(total)
    if small is None or wide is None or len(wide) != 3 or len(small) not in (2, 3):
        return False
    if not isinstance(wide[-1], int) or small[-1] != wide[-1] or small[:-2] not in ([], [1]):
        return False
    return small[-2] == wide[-2] or not (isinstance(small[-2], int) and isinstance(wide[-2], int))


@rewrite(*op_types("skip"), after=("layer_norm", "rms_norm"))
def skip_norm(node: ir.Node, target: Target) -> bool:
    """Take each normalization of a sum of two tensors of one shape, the end of a transformer's block."""
    if not target.has(MICROSOFT, operator("", node.op_type).skip):
        return False
    total = node.inputs[0]
    add = made_by(total, "Add")
    count, scale = rank(total), node.inputs[1]
    if total is None or add is None or count not in (2, 3) or add.graph is not node.graph or scale is None:
        return False
    x, skip = add.inputs
    if x is not None and (x.const_value is not None or not same_dims(x, total)):
        x, skip = skip, x
    if x is None or skip is None or x.const_value is not None or not same_dims(x, total):
        return False
    if not is_float(total) or rank(scale) != 1:
        return False
    if not _repeats(skip, total) and (skip.const_value is not None or not same_dims(x, skip)):
        return False
    if attribute(node, "axis", -1) not in (-1, count - 1) or any(
        o.uses() or o.is_graph_output() for o in node.outputs[1:]
    ):
        return False
    shared = total.is_graph_output() or len(total.uses()) > 1
    build = Builder(add if shared else node, origin=(*origins(add), *origins(node)))
    made = build.op(
        operator("", node.op_type).skip,
        x,
        skip,
        *node.inputs[1:3],
        domain=MICROSOFT,
        outputs=_SUM + 1 if shared else 1,
        epsilon=attribute(node, "epsilon", 1e-5),
    )
    result = made[0] if shared else made
    result.shape = ir.Shape(dims(total) or [])
    if shared:
        made[_SUM].shape = ir.Shape(dims(total) or [])
    replace_value(node.outputs[0], result)
    remove(node)
    if shared:
        replace_value(total, made[_SUM])
    remove(add)
    return True
