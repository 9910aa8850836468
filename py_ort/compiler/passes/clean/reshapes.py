"""Reshape, Squeeze, Unsqueeze, Flatten and Transpose in a row → one of them, or none."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.match import made_by
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import array, attribute, dims, origins, permutation, set_attributes
from py_ort.ir.operators import op_types
from py_ort.ir.shape_data import known, shape_data

#: Key in a Reshape's meta: its shape comes from other tensors, and a run fails if the input has another element count.
EXACT = "exact"


@rewrite("Transpose")
def reshapes(node: ir.Node) -> bool:
    """Merge a Transpose with the one before it."""
    before = made_by(node.inputs[0], "Transpose")
    outer = permutation(node)
    inner = None if before is None else permutation(before)
    if before is None or outer is None or inner is None:
        return False
    build = Builder(node, origin=(*origins(before), *origins(node)))
    build.finish(build.op("Transpose", before.inputs[0], perm=[inner[i] for i in outer]))
    return True


@reshapes.also(*op_types("view"))
def _views(node: ir.Node) -> int:
    """Merge a node with the views before it; return the number of merged views."""
    count, merged = 0, None if node.op_type == "Identity" else node
    while merged is not None and (merged := _merged(merged)) is not None:
        count += 1
    return count


def _merged(node: ir.Node) -> ir.Node | None:
    """Replace a node and the view before it by one Reshape, if the final shape is known; return the Reshape."""
    before = made_by(node.inputs[0], *op_types("view"))
    if before is None or before.inputs[0] is None or before.inputs[0].const_value is not None:
        return None
    if _may_copy(before) or _may_copy(node) or EXACT in before.meta or EXACT in node.meta:
        return None
    target = _shape_of(node) or _shape_from(before.inputs[0], node.outputs[0])
    if target is None:
        return None
    build = Builder(node, origin=(*origins(before), *origins(node)))
    merged = build.op("Reshape", before.inputs[0], target)
    build.finish(merged)
    return merged.producer()


def _shape_of(node: ir.Node) -> list[int] | None:
    """Return the output's shape for a Reshape, with at most one -1 and no 0; None if more sizes are unknown."""
    found = dims(node.outputs[0])
    if found is None or any(d == 0 for d in found):
        return None
    numbers = [d if isinstance(d, int) else -1 for d in found]
    if numbers.count(-1) <= 1:
        return numbers
    return None


def _shape_from(source: ir.Value, output: ir.Value) -> list[int] | None:
    """Return the output's shape for a Reshape of `source`: 0 for unknown sizes that the source has at the same axis."""
    found = dims(output)
    return None if found is None else reshape_target(found, dims(source))


def _may_copy(node: ir.Node) -> bool:
    """Return True if a computed size may be 0: the Reshape then copies the source's size, and its -1 is the true 0."""
    asked = None if node.op_type != "Reshape" or attribute(node, "allowzero", 0) else shape_data(node.inputs[1])
    source = dims(node.inputs[0])
    if asked is None or source is None or -1 not in [d for d in asked if isinstance(d, int)]:
        return False
    computed = [at for at, d in enumerate(asked[: len(source)]) if not isinstance(d, int)]
    # The only symbol of a source is 0 when the tensor is empty, and so is its copy.
    symbols = [at for at, d in enumerate(source) if not isinstance(d, int)]
    return any(asked[at] != source[at] and symbols != [at] for at in computed)


@reshapes.also("Reshape")
def _constant_shape(node: ir.Node) -> bool:
    """A shape that is computed in the page, although all but one of its numbers are known here."""
    if array(node.inputs[1]) is not None or EXACT in node.meta or _may_copy(node):
        return False
    found, source = dims(node.outputs[0]), dims(node.inputs[0])
    if found is None or any(isinstance(d, int) and d == 0 for d in found):
        return False
    target: list[int] = []
    for i, d in enumerate(found):
        if isinstance(d, int):
            target.append(d)
        elif source is not None and i < len(source) and known(d) and known(source[i]) and source[i] == d:
            target.append(0)
        else:
            target.append(-1)
    if target.count(-1) > 1:
        return False
    node.replace_input_with(1, Builder(node).constant(np.array(target, np.int64)))
    set_attributes(node, allowzero=None)  # zeros keep a size now
    return True
