"""Types and sizes of com.microsoft's operators on quantized tensors; sizes are those that ONNX infers on floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from py_ort.ir.block_products import width_of
from py_ort.ir.graph import attribute, attributes_of, dims
from py_ort.ir.infer import infer_node
from py_ort.ir.value_types import set_dims
from py_ort.schema.dialect import PACKED_N


def infer_as(op_type: str, *places: int, of: int | None = None) -> Callable[[ir.Node], None]:
    """Make the `infer` of an operator that is another one in sizes.

    Args:
        op_type: ONNX's operator on floats.
        places: Where its inputs are; none: every third from 2 on, each followed by scale and zero point.
        of: The input that has the result's dtype; the first of `places` by default.
    """

    def infer(node: ir.Node) -> None:
        at = places or range(2, len(node.inputs), 3)
        shapes = [None if node.inputs[i] is None else dims(node.inputs[i]) for i in at]
        packed = packed_sizes(node)
        found = packed or (None if None in shapes else _sizes(op_type, node, shapes))
        _settle(node, node.inputs[at[0] if of is None else of], found)

    return infer


def packed_sizes(node: ir.Node) -> list[Any] | None:
    """Infer the sizes of a product whose B is packed in panels, by the attribute packed_n."""
    rows, columns = dims(node.inputs[0]), attribute(node, PACKED_N)
    return None if rows is None or columns is None else [*rows[:-1], columns]


def refine_packed(node: ir.Node) -> None:
    """Give the result of a product with packed B its sizes, of which ONNX knows nothing."""
    found = packed_sizes(node)
    if found is not None:
        set_dims(node.outputs[0], found)


def _settle(node: ir.Node, source: ir.Value | None, found: list[Any] | None) -> None:
    """Give the result the dtype of `source`, and the sizes that were found."""
    output = node.outputs[0]
    if source is not None and source.type is not None:
        output.type = source.type
    if found is not None:
        set_dims(output, found)


def _sizes(op_type: str, node: ir.Node, shapes: Sequence[Any]) -> list[Any] | None:
    """Return the output's shape of an operator with this node's attributes on floats of these shapes."""
    given = attributes_of(node)
    last = given.pop("channels_last", None)
    moved = last is not None and bool(last.value)
    inputs = [
        ir.Value(shape=ir.Shape([*shape[:1], shape[-1], *shape[1:-1]] if moved else shape), type=_FLOATS)
        for shape in shapes
    ]
    plain = ir.Node("", op_type, inputs, list(given.values()))
    infer_node(plain)
    found = dims(plain.outputs[0])
    return found if found is None or not moved else [found[0], *found[2:], found[1]]


_FLOATS = ir.TensorType(ir.DataType.FLOAT)


def infer_block_product(node: ir.Node) -> None:
    """Weights are a matrix of `N` columns, or of `K` where MatMulBnb4's are not transposed."""
    rows = dims(node.inputs[0])
    columns = width_of(node) if attribute(node, "transB", 1) else attribute(node, "K", 0)
    _settle(node, node.inputs[0], [*rows[:-1], columns] if rows else None)


def infer_gathered_blocks(node: ir.Node) -> None:
    """Places stand where the table's axis was; in uint8 are as many numbers as have room, along the last axis."""
    data, at = dims(node.inputs[0]), dims(node.inputs[1])
    found = None
    if data and at is not None:
        if node.inputs[0] is not None and node.inputs[0].dtype == ir.DataType.UINT8:
            data[-1] = data[-1] * (8 // attribute(node, "bits", 4))
        axis = attribute(node, "gather_axis", 0) % len(data)
        found = [*data[:axis], *at, *data[axis + 1 :]]
    _settle(node, node.inputs[2], found)


def infer_qgemm(node: ir.Node) -> None:
    """The type is that of the result's zero point; without one, float."""
    rows, columns = dims(node.inputs[0]), dims(node.inputs[3])
    found = packed_sizes(node)
    if found is None and rows is not None and columns is not None and len(rows) == len(columns) == 2:
        a, b = attribute(node, "transA", 0), attribute(node, "transB", 0)
        found = [rows[1 if a else 0], columns[0 if b else 1]]
    zero = node.inputs[8] if len(node.inputs) > 8 else None
    _settle(node, zero or node.inputs[0], found)
    if zero is None:
        node.outputs[0].type = _FLOATS
