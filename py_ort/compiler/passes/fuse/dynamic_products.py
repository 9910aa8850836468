"""MatMulInteger → Cast → Mul by the operands' scales (→ Add of a bias) becomes MatMulIntegerToFloat.

That is what dynamic quantization writes for each product. What quantizes the left operand stays a node of its own:
products of one tensor, like queries, keys and values, share it.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, nodes_of, only_user, with_row_bias
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims, origins, rank, remove, replace_value
from py_ort.ir.operators import MICROSOFT


class DynamicProducts(Pass):
    """Integer products that end in floats."""

    after = ("identity",)
    before = ("folding",)

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs; it must have the whole."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Take each MatMulInteger whose sums only become floats."""
        if self._target.has(MICROSOFT, "MatMulIntegerToFloat") is not True:
            return 0
        return sum(_fuse(node) for node in nodes_of(model, "MatMulInteger"))


def _fuse(node: ir.Node) -> bool:
    cast = only_user(node.outputs[0])
    if cast is None or cast.domain or cast.op_type != "Cast" or cast.outputs[0].dtype != ir.DataType.FLOAT:
        return False
    scaled = only_user(cast.outputs[0])
    columns = _columns(node)
    if scaled is None or scaled.domain or scaled.op_type != "Mul" or columns is None:
        return False
    scales = made_by(next((v for v in scaled.inputs if v is not cast.outputs[0]), None), "Mul")
    if scales is None:
        return False
    of_rows = next((v for v in scales.inputs if _is_number(v) and v is not None and v.const_value is None), None)
    of_columns = next((v for v in scales.inputs if v is not of_rows), None)
    if of_rows is None or of_columns is None or not (_is_number(of_columns) or dims(of_columns) == [columns]):
        return False
    last, bias = with_row_bias(scaled, columns)
    a, b, a_zero, b_zero = (*node.inputs, None, None)[:4]
    build = Builder(last, origin=[o for each in dict.fromkeys((node, cast, scaled, last)) for o in origins(each)])
    inputs = [a, b, of_rows, of_columns, a_zero, b_zero, bias]
    while inputs[-1] is None:
        inputs.pop()
    replace_value(last.outputs[0], build.op("MatMulIntegerToFloat", *inputs, domain=MICROSOFT))
    for each in dict.fromkeys((last, scaled, cast, node)):
        remove(each)
    return True


def _columns(node: ir.Node) -> int | None:
    """How many the right operand has; None where it is no matrix of known size, or the left one is a vector."""
    known = dims(node.inputs[1])
    if known is None or len(known) != 2 or not isinstance(known[1], int) or (rank(node.inputs[0]) or 0) < 2:
        return None
    zeros = dims(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else []
    return known[1] if zeros in ([], [1]) else None


def _is_number(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT and dims(value) in ([], [1])
