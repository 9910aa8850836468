"""MatMul of a transposed operand, or times a number → com.microsoft's FusedMatMul, without the transpose."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_user, split_constant
from py_ort.compiler.passes.rewrite import rewrite, runs
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import origins, permutation, rank, remove, replace_value
from py_ort.ir.operators import MICROSOFT


def swapped(value: ir.Value | None) -> ir.Value | None:
    """Return the input of the Transpose of the last two axes that makes a value; None if there is no such Transpose."""
    node = made_by(value, "Transpose")
    perm = None if node is None else permutation(node)
    if node is None or perm is None or len(perm) < 2:
        return None
    plain = list(range(len(perm)))
    return node.inputs[0] if perm == [*plain[:-2], plain[-1], plain[-2]] else None


@rewrite(
    "MatMul", needs=runs("FusedMatMul", MICROSOFT), after=("attention",)
)  # which matches products before this pass
def transposed_products(node: ir.Node) -> bool:
    """Take each MatMul of two computed operands that a transpose of the last two axes precedes, or a number follows."""
    a, b = node.inputs[:2]
    if len(node.inputs) > 2 or has_epilogue(node) or a is None or b is None:
        return False
    if (
        a.const_value is not None
        or b.const_value is not None
        or a.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    ):
        return False
    left, right = swapped(a), swapped(b)
    if (rank(a) or 0) < 2 or (rank(b) or 0) < 2:
        return False
    last, alpha = node, 1.0
    user = only_user(node.outputs[0])
    found = split_constant(user) if user is not None and user.domain == "" and user.op_type in ("Mul", "Div") else None
    if (
        user is not None
        and found is not None
        and found[0] is node.outputs[0]
        and found[1].size == 1
        and found[1].ndim <= 1
    ):
        number = float(found[1].reshape(-1)[0])
        if user.op_type == "Mul" or (user.inputs[0] is found[0] and number != 0):
            last, alpha = user, number if user.op_type == "Mul" else 1.0 / number
    if left is None and right is None and last is node:
        return False
    build = Builder(last, origin=[*origins(node), *(origins(last) if last is not node else ())])
    result = build.op(
        "FusedMatMul",
        left if left is not None else a,
        right if right is not None else b,
        domain=MICROSOFT,
        alpha=alpha,
        transA=int(left is not None),
        transB=int(right is not None),
        transBatchA=0,
        transBatchB=0,
    )
    replace_value(last.outputs[0], result)
    if last is not node:
        remove(last)
    remove(node)
    return True
