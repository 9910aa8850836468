"""Attention over permuted axes: heads in the rows of [batch, positions, heads * size] are read there, without a copy.

Heads that are channels of a convolution are rows in channels last, so none of them is transposed, however YOLO, CoAtNet
or nn.MultiheadAttention transposed them.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.layout.forms import Forms, Perm
from py_ort.compiler.layout.rules import Wanted, rule
from py_ort.ir.graph import dims, rank

ROWS: Perm = (0, 2, 1, 3)
"""[batch, heads, positions, size] as [batch, positions, heads, size]."""
_PLAIN: Perm = (0, 1, 2, 3)
_CACHES = slice(4, 7)  # inputs that belong to caches


@rule("attention")
def attention(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """Read queries, keys and values by rows if they exist by rows, or are cheaper so; write the result by rows, too."""
    tensors = [v for v in node.inputs[:3] if v is not None]
    if len(tensors) != 3 or any(rank(v) != len(ROWS) for v in tensors):
        return False
    if any(v is not None for v in node.inputs[_CACHES]) or any(_is_read(output) for output in node.outputs[1:]):
        return False
    if not all(all(_heads(v)) for v in tensors) or _price(node, tensors, ROWS, forms, wanted) >= _price(
        node, tensors, _PLAIN, forms, wanted
    ):
        return False
    inputs = [_in_rows(v, forms) for v in tensors] + [None if v is None else forms.plain(v) for v in node.inputs[3:]]
    (queries, _), (keys, _), (_, size) = (_heads(v) for v in tensors)
    made = forms.emit(node, inputs, q_num_heads=queries, kv_num_heads=keys)
    result = forms.insert("Reshape", [made[0], [0, 0, queries, size]], attributes={"allowzero": 0})
    forms.register(node.outputs[0], ROWS, result[0])
    return True


def _in_rows(value: ir.Value, forms: Forms) -> ir.Value:
    heads, size = _heads(value)
    return forms.insert("Reshape", [forms.form(value, ROWS), [0, 0, heads * size]], attributes={"allowzero": 0})[0]


def _heads(value: ir.Value) -> tuple[int, int]:
    """How many heads there are, and their size; zeros where that is not known."""
    _, heads, _, size = dims(value) or [0] * len(ROWS)
    return (heads, size) if isinstance(heads, int) and isinstance(size, int) else (0, 0)


def _is_read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _price(node: ir.Node, tensors: list[ir.Value], perm: Perm, forms: Forms, wanted: Wanted) -> float:
    """Return the cost: transposes before the node, and almost one after it if readers prefer another form."""
    preferred = wanted(node.outputs[0])
    return sum(forms.cost(value, perm) for value in tensors) + (0.0 if preferred in (None, perm) else 0.9)
