"""Checks the values of attributes that ONNX's checker does not check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import origins
from py_ort.ir.operators import MICROSOFT
from py_ort.ir.rules import Rules

_TYPES = frozenset({"to", "dtype", "output_dtype", "output_datatype", "stash_type", "softmax_precision"})
_CONSTANTS = frozenset(
    {"value", "sparse_value"} | {f"value_{kind}" for kind in ("int", "ints", "float", "floats", "string", "strings")}
)
_DTYPES = frozenset(map(int, ir.DataType))
_SMALL = 2**31
_check = Rules[Callable[[ir.Node], None]]()
_contributed = Rules[Callable[[ir.Node], None]]((MICROSOFT,))


def check_attributes(node: ir.Node, *, in_function: bool = False) -> None:
    """Check a node's attributes, some of which ONNX's inference would run into.

    Args:
        node: A node of a model as it was read.
        in_function: True if the node is in a function, whose attributes its own may refer to.

    Raises:
        InvalidGraph: A value is none that the operator can have.
    """
    for name, item in node.attributes.items():
        if item.is_ref():
            if not in_function:
                raise _error(
                    node, f"its attribute {name!r} is one of a function, {item.ref_attr_name!r}, and it is in none"
                )
            continue
        if item.type == ir.AttributeType.INT:
            _check_number(node, name, item.value)
    check = _check.of(node) or _contributed.of(node)
    if check is not None:
        check(node)


def _check_number(node: ir.Node, name: str, value: int) -> None:
    if name in _TYPES and value not in _DTYPES:
        raise _error(node, f"its attribute {name!r} is {value}, which is the number of no type")
    if name.endswith("axis") and not -_SMALL <= value < _SMALL:
        raise _error(node, f"its attribute {name!r} is {value}, which is no axis")


@_check("Constant")
def _constant(node: ir.Node) -> None:
    given = [name for name in node.attributes if name in _CONSTANTS]
    if len(given) != 1:
        raise _error(node, f"a Constant has one value, not {', '.join(given) or 'none'}")


@_check("GatherND")
def _gather_nd(node: ir.Node) -> None:
    found = node.attributes.get("batch_dims")
    if found is not None and not found.is_ref() and found.value < 0:
        raise _error(node, f"its attribute 'batch_dims' is {found.value}")


@_check("Split")
def _split(node: ir.Node) -> None:
    found = node.attributes.get("num_outputs")
    if found is not None and not found.is_ref() and found.value != len(node.outputs):
        raise _error(node, f"its attribute 'num_outputs' is {found.value}, and it has {len(node.outputs)} outputs")


@_check("If")
def _if(node: ir.Node) -> None:
    for name, item in node.attributes.items():
        if item.type == ir.AttributeType.GRAPH and not item.is_ref() and len(item.value.outputs) != len(node.outputs):
            made = len(item.value.outputs)
            raise _error(node, f"its attribute {name!r} gives {made} values, and it has {len(node.outputs)} outputs")


@_check("Loop", "Scan", "SequenceMap")
def _body(node: ir.Node) -> None:
    body = node.attributes.get("body")
    if body is None or body.type != ir.AttributeType.GRAPH or body.is_ref():
        return
    reads, gives = len(node.inputs), len(node.outputs) + (node.op_type == "Loop")
    takes, makes = len(body.value.inputs), len(body.value.outputs)
    # Scan had one input more at first, the lengths.
    if takes != reads and not (node.op_type == "Scan" and takes + 1 == reads):
        raise _error(node, f"its body has {takes} inputs, and it gives it {reads}")
    if makes < gives:
        raise _error(node, f"its body gives {makes} values, and it wants {gives}")
    scanned = node.attributes.get("num_scan_inputs")
    if scanned is not None and not scanned.is_ref() and not 0 < scanned.value <= takes:
        raise _error(node, f"its attribute 'num_scan_inputs' is {scanned.value}, and its body has {takes} inputs")


@_check("Attention")
def _attention(node: ir.Node) -> None:
    found = node.attributes.get("qk_matmul_output_mode")
    if found is not None and not found.is_ref() and not 0 <= found.value <= 3:
        raise _error(node, f"its attribute 'qk_matmul_output_mode' is {found.value}, not one of 0 to 3")


@_contributed("QLinearConcat")
def _quantized_concat(node: ir.Node) -> None:
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        raise _error(
            node,
            f"its {len(node.inputs)} inputs are not scale, zero point and then x, scale, zero point of each tensor",
        )


def _error(node: ir.Node, text: str) -> InvalidGraph:
    name = origins(node)[0]
    where: dict[str, Any] = {"node": name, "op_type": node.op_type, "domain": node.domain}
    return InvalidGraph(f"node {name} ({node.op_type}): {text}", **where)
