"""MatMulInteger → Cast → Mul by the operands' scales (→ Add of a bias) becomes MatMulIntegerToFloat.

That is what dynamic quantization writes for each product. What quantizes the left operand stays a node of its own:
products of one tensor, like queries, keys and values, share it.

Providers without that operator get a product of the floats that the integers stand for, DynamicFakeQuantize and
DequantizeLinear of the weights, which passes behind treat as any other; convolutions, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_user, with_row_bias
from py_ort.compiler.passes.quantization import is_dynamic_rounding
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attributes_of, dims, origins, rank, remove, replace_value
from py_ort.ir.operators import INTERNAL, MICROSOFT
from py_ort.schema.dialect import DYNAMIC_FAKE_QUANTIZE


@rewrite("MatMulInteger", "ConvInteger", after=("identity",), before=("folding",))
def dynamic_products(node: ir.Node, target: Target) -> bool:
    """Fuse a product of integers with the conversion of its sums, if its sums are read as floats only."""
    if target.has(MICROSOFT, "MatMulIntegerToFloat") is True:
        return node.op_type == "MatMulInteger" and _fuse(node)
    return target.has(INTERNAL, DYNAMIC_FAKE_QUANTIZE) is True and _as_floats(node)


class _Ended(NamedTuple):
    """The nodes after a product's sums, and the scales of both operands."""

    cast: ir.Node
    scaled: ir.Node
    of_rows: ir.Value
    of_columns: ir.Value


def _ended(node: ir.Node) -> _Ended | None:
    cast = only_user(node.outputs[0])
    if cast is None or cast.domain or cast.op_type != "Cast" or cast.outputs[0].dtype != ir.DataType.FLOAT:
        return None
    scaled = only_user(cast.outputs[0])
    if scaled is None or scaled.domain or scaled.op_type != "Mul":
        return None
    scales = made_by(next((v for v in scaled.inputs if v is not cast.outputs[0]), None), "Mul")
    if scales is None:
        return None
    of_rows = next((v for v in scales.inputs if _is_number(v) and v is not None and v.const_value is None), None)
    of_columns = next((v for v in scales.inputs if v is not of_rows), None)
    return None if of_rows is None or of_columns is None else _Ended(cast, scaled, of_rows, of_columns)


def _fuse(node: ir.Node) -> bool:
    found, columns = _ended(node), _columns(node)
    if found is None or columns is None:
        return False
    cast, scaled, of_rows, of_columns = found
    if not (_is_number(of_columns) or dims(of_columns) == [columns]):
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


def _as_floats(node: ir.Node) -> bool:
    """Multiply floats instead, which were rounded to the steps of the integers."""
    found = _ended(node)
    rounding = made_by(node.inputs[0], "DynamicQuantizeLinear")
    weights = None if found is None else _weights(node, found.of_columns)
    if found is None or rounding is None or weights is None:
        return False
    own = [node.inputs[0], node.inputs[2] if len(node.inputs) > 2 else None, found.of_rows]
    if own != [rounding.outputs[0], rounding.outputs[2], rounding.outputs[1]]:
        return False
    x, integers = rounding.inputs[0], node.inputs[1]
    assert x is not None
    # A value of another graph may be out of scope here, or be made later.
    near = (use.node for use in x.uses() if use.node.graph is rounding.graph)
    rounded = next((each.outputs[0] for each in near if is_dynamic_rounding(each)), None)
    if rounded is None:
        rounded = Builder(rounding, origin=origins(rounding)).op(DYNAMIC_FAKE_QUANTIZE, x, domain=INTERNAL)
    build = Builder(node, origin=[o for each in (node, found.cast, found.scaled) for o in origins(each)])
    scales, zeros = (build.constant(each) for each in weights)
    axis = 1 if node.op_type == "MatMulInteger" else 0
    floats = build.op("DequantizeLinear", integers, scales, zeros, axis=axis)
    product = "MatMul" if node.op_type == "MatMulInteger" else "Conv"
    replace_value(found.scaled.outputs[0], build.op(product, rounded, floats, **attributes_of(node)))
    for each in (found.scaled, found.cast, node):
        remove(each)
    return True


def _weights(node: ir.Node, scale: ir.Value) -> tuple[np.ndarray, np.ndarray] | None:
    """Scales and zero points of constant weights: one number each, or one for each column or channel."""
    integers, scales = array(node.inputs[1]), array(scale)
    zeros = np.zeros((), np.int8) if len(node.inputs) <= _B_ZERO else array(node.inputs[_B_ZERO])
    if integers is None or scales is None or zeros is None:
        return None
    product = node.op_type == "MatMulInteger"
    if product and integers.ndim != _MATRIX:
        return None
    count = integers.shape[1 if product else 0]
    # The result's; scales of more axes would add some.
    axes = (rank(node.inputs[0]) or 1) if product else integers.ndim
    # Scales of columns are along the last axis, scales of channels along the second.
    place = scales.ndim - (1 if product else axes - 1)
    alone = scales.size == count and place >= 0 and scales.shape[place] == count
    if scales.ndim > axes or not (scales.size == 1 or alone):
        return None
    if zeros.size not in (1, count):
        return None
    shape = () if scales.size == zeros.size == 1 else (count,)
    return (
        np.broadcast_to(scales.reshape(-1), shape or (1,)).reshape(shape).astype(np.float32),
        np.broadcast_to(zeros.reshape(-1), shape or (1,)).reshape(shape).astype(integers.dtype),
    )


_B_ZERO, _MATRIX = 3, 2


def _columns(node: ir.Node) -> int | None:
    """Return the number of the right operand's columns; None if it is no matrix of known size, or the left a vector."""
    known = dims(node.inputs[1])
    if known is None or len(known) != 2 or not isinstance(known[1], int) or (rank(node.inputs[0]) or 0) < 2:
        return None
    zeros = dims(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else []
    return known[1] if zeros in ([], [1]) else None


def _is_number(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT and dims(value) in ([], [1])
