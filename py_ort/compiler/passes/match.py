"""Functions that fusions share to match a node's neighbors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import all_nodes, array, attribute, dims, ints, rank, remove, scalar

#: Of a model, while a pass has changed nothing yet: the names of the operators of its nodes. Most passes find none of
#: theirs, and need not walk over a long graph.
PRESENT = "py_ort.present_operators"


def nodes_of(model: ir.Model, *op_types: str, domain: str | None = "") -> Iterator[ir.Node]:
    """Yield the nodes of these operators, at every depth; the graph may change meanwhile.

    Args:
        model: The model.
        op_types: Names of operators.
        domain: Their domain; None: any.
    """
    present = model.meta.get(PRESENT)
    if present is not None and present.isdisjoint(op_types):
        return
    model.meta.pop(PRESENT, None)
    found = (node for node in all_nodes(model.graph) if node.op_type in op_types)
    for node in [node for node in found if domain is None or node.domain == domain]:
        if node.graph is not None:
            yield node


def made_by(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """Return the node that makes `value` when it is one of these operators of ai.onnx."""
    if value is None:
        return None
    node = value.producer()
    return node if node is not None and node.domain == "" and node.op_type in op_types else None


def only_for(value: ir.Value, user: ir.Node) -> bool:
    """Return True if only `user` reads the value (once or more), in the graph that makes the value.

    A loop's body would compute a value of the outer graph again in each turn.
    """
    return not value.is_graph_output() and all(use.node is user for use in value.uses()) and _beside(value, user)


def only_user(value: ir.Value) -> ir.Node | None:
    """Return the one node that reads the value, once, where it is made; None if others do or it is given out."""
    uses = list(value.uses())
    user = uses[0].node if len(uses) == 1 and not value.is_graph_output() else None
    return user if user is not None and _beside(value, user) else None


def _beside(value: ir.Value, user: ir.Node) -> bool:
    maker = value.producer()
    return maker is None or maker.graph is user.graph


def nodes_reading(value: ir.Value) -> list[ir.Node]:
    """Return the nodes that read the value, each once."""
    return list(dict.fromkeys(use.node for use in value.uses()))


def drop(value: ir.Value | None) -> None:
    """Remove the node that makes `value` if its outputs are unused, and then the nodes before it likewise."""
    node = None if value is None else value.producer()
    if node is None or node.graph is None or any(o.uses() or o.is_graph_output() for o in node.outputs):
        return
    inputs = list(node.inputs)
    remove(node)
    for each in inputs:
        drop(each)


def split_constant(node: ir.Node) -> tuple[ir.Value, np.ndarray] | None:
    """Return the other input and the constant's contents, for a node of two inputs of which one is a constant."""
    if len(node.inputs) != 2:
        return None
    for at in (1, 0):
        constant, other = node.inputs[at], node.inputs[1 - at]
        if (
            constant is not None
            and other is not None
            and constant.const_value is not None
            and other.const_value is None
        ):
            contents = array(constant)
            assert contents is not None
            return other, contents
    return None


def with_row_bias(node: ir.Node, columns: int) -> tuple[ir.Node, ir.Value | None]:
    """For a product that only an Add of a constant row reads: return (the Add, that row); else (the node, None)."""
    add = only_user(node.outputs[0])
    found = split_constant(add) if add is not None and add.domain == "" and add.op_type == "Add" else None
    if add is None or found is None or found[0] is not node.outputs[0] or found[1].shape != (columns,):
        return node, None
    return add, next(value for value in add.inputs if value is not found[0])


def split_mul_add(add: ir.Node) -> tuple[ir.Node, ir.Value, np.ndarray, np.ndarray] | None:
    """For x * factor + shift, both of them constants: return (the Mul, which only the Add reads, x, factor, shift)."""
    shifted = split_constant(add)
    mul = None if shifted is None else made_by(shifted[0], "Mul")
    scaled = None if mul is None else split_constant(mul)
    if shifted is None or mul is None or scaled is None or not only_for(shifted[0], add):
        return None
    return mul, *scaled, shifted[1]


def near(value: ir.Value | None, number: float, tolerance: float = 1e-4) -> bool:
    """Return True if a value is a constant of one element, near `number`."""
    found = scalar(value)
    return found is not None and abs(float(found) - number) <= tolerance * max(1.0, abs(number))


def same_size(a: object, b: object) -> bool:
    """Return True if two sizes are known to be equal, by number or by name."""
    return a is not None and not (isinstance(a, ir.SymbolicDim) and a.value is None) and bool(a == b)


def size_at(value: ir.Value | None, axis: int = -1) -> Any:
    """One dimension, or None when not even the rank is known, or too small."""
    known = dims(value)
    return None if known is None or not -len(known) <= axis < len(known) else known[axis]


def same_dims(a: ir.Value, b: ir.Value) -> bool:
    """Return True if two values are known to have equal shapes, by number or by name."""
    first, second = dims(a), dims(b)
    if first is None or second is None or len(first) != len(second):
        return False
    return all(map(same_size, first, second))


def widened(result: ir.Value, inputs: Iterable[ir.Value]) -> bool | None:
    """Tell whether a result has axes that none of these inputs has, as a number [1] gives a scalar; None: not known."""
    own, ranks = rank(result), [rank(value) for value in inputs]
    if own is not None and own <= max((each or 0 for each in ranks), default=0):
        return False
    return None if own is None or None in ranks else True


def reduced_axes(node: ir.Node) -> tuple[int, ...] | None:
    """Return a reduction's axes, from 0, in order; None if it reduces nothing, or the axes are unknown."""
    axes, count = node.inputs[1] if len(node.inputs) > 1 else None, rank(node.inputs[0])
    # As an attribute in models that are saved in the source's form.
    given = attribute(node, "axes", []) if axes is None else ints(axes)
    if given is None or count is None or (not given and attribute(node, "noop_with_empty_axes", 0)):
        return None
    return tuple(sorted({axis % count for axis in given})) if given else tuple(range(count))


def per_channel(contents: np.ndarray, rank: int, channels: int) -> np.ndarray | None:
    """Return a constant as one number per channel, when it broadcasts over axis 1 of a tensor of this rank only."""
    if contents.size == 1:
        return np.full(channels, contents.reshape(-1)[0], contents.dtype) if contents.ndim <= rank else None
    if contents.ndim > rank:
        return None
    shape = (1,) * (rank - contents.ndim) + contents.shape
    if shape != (1, channels, *(1,) * (rank - 2)):
        return None
    return contents.reshape(-1)


def times(weights: np.ndarray, factor: np.ndarray) -> np.ndarray | None:
    """Return the product, of the weights' dtype, rounded once; no copy of the weights in float64 is made.

    Returns:
        None where that dtype cannot hold the largest products.
    """
    axes = tuple(-axis for axis in range(1, weights.ndim + 1) if axis > factor.ndim or factor.shape[-axis] == 1)
    largest = np.maximum(weights.max(axes, keepdims=True, initial=0), -weights.min(axes, keepdims=True, initial=0))
    peak = np.max(np.abs(np.multiply(largest, factor, dtype=np.float64)), initial=0)
    if rounded(peak, weights.dtype) is None:
        return None
    return np.multiply(weights, factor, out=np.empty_like(weights), casting="unsafe", dtype=np.float64)


def rounded(exact: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """Return numbers in another type of floats, or None where they lose more than rounding takes.

    float16 is infinite beyond 65504, and coarse below 6e-5, which float32 between nodes is not.
    """
    with np.errstate(all="ignore"):
        made = np.asarray(exact, dtype)
        lost = np.abs(made.astype(np.float64) - exact) > float(ml_dtypes.finfo(dtype).eps) * np.abs(exact)
    return None if np.any(lost) else made
