"""Which 64-bit integers are known to fit the 32 bits that they have on the GPU.

Intervals are followed from constants, shapes and positions through the operators that move and combine integers.
What is not known to fit is computed on the CPU, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import all_nodes, array, attribute, dims, ints, subgraphs
from py_ort.ir.operators import INTERNAL, NHWC, operator
from py_ort.ir.rules import Rules
from py_ort.providers import PROVIDERS
from py_ort.providers.manifest import dtype_name

Interval = tuple[int, int]

_INFINITY = 1 << 200
_WIDE = {ir.DataType.INT64: (-(1 << 31), (1 << 31) - 1), ir.DataType.UINT64: (0, (1 << 32) - 1)}
"""The 64-bit types, and the part of their range that fits the GPU's 32 bits."""
_NATURAL: dict[ir.DataType | None, Interval] = {
    ir.DataType.BOOL: (0, 1),
    ir.DataType.FLOAT16: (-65504, 65504),
    **{getattr(ir.DataType, f"INT{bits}"): (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for bits in (4, 8, 16, 32, 64)},
    **{getattr(ir.DataType, f"UINT{bits}"): (0, (1 << bits) - 1) for bits in (4, 8, 16, 32, 64)},
}
_POSITIONS: Interval = (0, (1 << 30) - 1)
"""Sizes, and positions in tensors that exist: bindings are below 4 GiB, elements have 4 bytes."""


class IntegerRanges:
    """The intervals of a model's integer values.

    Args:
        graph: The model's.
        wide_inputs: True if feeds may need 64 bits; if False, a run refuses feeds that do.
    """

    def __init__(self, graph: ir.Graph, wide_inputs: bool = False) -> None:
        self.main = graph
        self._wide_inputs = wide_inputs
        self._known: dict[ir.Value, Interval] = {}
        self._places: dict[ir.Value, tuple[ir.Node, int]] = {
            value: (node, i)
            for node in all_nodes(graph)
            if node.domain == ""
            for body in subgraphs(node)
            for i, value in enumerate(body.inputs)
        }

    def refusal(self, node: ir.Node, provider: str) -> str | None:
        """Say which 64-bit integers of a node are not known to fit where a provider has 32 bits; None when all are."""
        if node.domain == INTERNAL:
            return None  # made of nodes that were placed before
        declared = operator(node.domain, node.op_type)
        # An index beyond 32 bits is outside of every tensor; its upload is refused.
        indices = declared.indices
        narrowed = {each for each, stored in PROVIDERS[provider].elements.items() if each != stored}

        def refused(value: ir.Value) -> bool:
            return value.dtype is not None and dtype_name(value.dtype) in narrowed and not self.fits(value)

        for i, value in enumerate(node.inputs):
            if value is not None and declared.use(node, i) == "device" and i not in indices and refused(value):
                return _reason(value, f"input {i}", provider)
        for i, value in enumerate(node.outputs):
            if (value.uses() or value.is_graph_output()) and refused(value):
                return _reason(value, f"output {i}", provider)
        return None

    def fits(self, value: ir.Value) -> bool:
        """Return True if a value is not a 64-bit integer, or is known to fit 32 bits."""
        limits = _WIDE.get(value.dtype) if value.dtype is not None else None
        if limits is None:
            return True
        low, high = self.of(value)
        return limits[0] <= low and high <= limits[1]

    def of(self, value: ir.Value | None) -> Interval:
        """Return the interval of a value; that of its type when nothing is known."""
        if value is None:
            return (-_INFINITY, _INFINITY)
        found = self._known.get(value)
        if found is None:
            natural = _NATURAL.get(value.dtype, (-_INFINITY, _INFINITY))
            self._known[value] = natural  # ends the recursion of loop bodies
            low, high = self._find(value)
            # A number outside of the type's range wraps around, to anywhere in the range.
            inside = natural[0] <= low and high <= natural[1]
            found = self._known[value] = (low, high) if inside else natural
        return found

    def _find(self, value: ir.Value) -> Interval:
        unknown = (-_INFINITY, _INFINITY)
        if value.const_value is not None:
            contents = array(value)
            if contents is None or contents.dtype.kind not in "iub" or contents.size == 0:
                return unknown if contents is None or contents.size else (0, 0)
            return int(contents.min()), int(contents.max())
        node = value.producer()
        if node is None:
            return self._input(value)
        if node.domain == "" and subgraphs(node):
            return self._control(node, value)
        if node.domain == INTERNAL:
            return _WIDE.get(value.dtype, unknown) if value.dtype is not None else unknown
        find = rule.of(node)
        if find is not None:
            return find(self, node, value.index() or 0)
        declared = operator(node.domain, node.op_type)
        return self.of(node.inputs[0]) if declared.moves or declared.view else unknown

    def _input(self, value: ir.Value) -> Interval:
        if value not in self._places:
            limits = _WIDE.get(value.dtype) if value.dtype is not None else None
            return limits if limits is not None and not self._wide_inputs else (-_INFINITY, _INFINITY)
        owner, index = self._places[value]
        if owner.op_type == "Loop" and index == 0:
            return _POSITIONS
        if owner.op_type == "Scan" and index >= len(owner.inputs) - attribute(owner, "num_scan_inputs"):
            return self.of(owner.inputs[index])
        return (-_INFINITY, _INFINITY)

    def _control(self, node: ir.Node, value: ir.Value) -> Interval:
        index = value.index() or 0
        if node.op_type == "If":
            return _union(*(self.of(branch.outputs[index]) for branch in subgraphs(node)))
        body = subgraphs(node)[0]
        if node.op_type == "Loop" and index >= len(node.inputs) - 2:
            return self.of(body.outputs[index + 1])
        if node.op_type == "Scan" and index >= len(node.inputs) - attribute(node, "num_scan_inputs"):
            return self.of(body.outputs[index])
        return (-_INFINITY, _INFINITY)


Rule = Callable[[IntegerRanges, ir.Node, int], Interval]
rule = Rules[Rule](("", NHWC))  # where a name is ONNX's; com.microsoft's operators are rewritten before
"""Functions that compute the interval of an output, by its index; operators that move elements need none."""


def _reason(value: ir.Value, place: str, provider: str) -> str:
    dtype = "int64" if value.dtype == ir.DataType.INT64 else "uint64"
    return f"{dtype} {place} is not known to fit the 32 bits that it has on {provider}"


def _union(*intervals: Interval) -> Interval:
    return min(i[0] for i in intervals), max(i[1] for i in intervals)


def _of(ranges: IntegerRanges, *values: ir.Value | None) -> Interval:
    """Elements of these values, unchanged."""
    return _union(*(ranges.of(value) for value in values if value is not None))


def _always(interval: Interval) -> Rule:
    return lambda ranges, node, index: interval


def _by_intervals(*op_types: str) -> Callable[[Callable[..., Sequence[int]]], Callable[..., Sequence[int]]]:
    """Declare a function of the inputs' intervals; the node's results are between the extremes of its numbers."""

    def declare(combine: Callable[..., Sequence[int]]) -> Callable[..., Sequence[int]]:
        @rule(*op_types)
        def extremes(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
            found = combine(*(ranges.of(v) for v in node.inputs if v is not None))
            return min(found), max(found)

        return combine

    return declare


rule("Shape", "Size", "ArgMax", "ArgMin", "NonZero", "MaxPool", "NonMaxSuppression")(_always(_POSITIONS))
rule("EyeLike")(_always((0, 1)))
rule("Sign")(_always((-1, 1)))


@rule("ReduceMean")
def _first(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return ranges.of(node.inputs[0])


@rule("Concat", "Max", "Min")
def _any_input(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _of(ranges, *node.inputs)


@rule("Relu", "Trilu", "CenterCropPad")
def _first_or_zero(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _union((0, 0), ranges.of(node.inputs[0]))


@rule("Pad")
def _padded(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _union((0, 0), _of(ranges, node.inputs[0], *node.inputs[2:3]))


@rule("Where")
def _chosen(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _of(ranges, *node.inputs[1:])


@rule("OneHot")
def _on_or_off(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return ranges.of(node.inputs[2])


@rule("TensorScatter")
def _updated(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _of(ranges, *node.inputs[:2])


@rule("ScatterElements", "ScatterND")
def _scattered(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    kept = attribute(node, "reduction", "none") in ("none", "max", "min")
    return _of(ranges, node.inputs[0], node.inputs[2]) if kept else (-_INFINITY, _INFINITY)


@rule("Unique")
def _unique(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return _POSITIONS if index else ranges.of(node.inputs[0])


@_by_intervals("Add")
def _sum(a: Interval, b: Interval) -> list[int]:
    return [a[0] + b[0], a[1] + b[1]]


@_by_intervals("Mul")
def _product(a: Interval, b: Interval) -> list[int]:
    return [x * y for x in a for y in b]


@_by_intervals("Div")
def _quotient(a: Interval, b: Interval) -> list[int]:
    return [*a, -a[0], -a[1]] if b[0] <= 0 else [0, *a]


@_by_intervals("Neg")
def _negative(a: Interval) -> list[int]:
    return [-a[0], -a[1]]


@_by_intervals("Abs")
def _absolute(a: Interval) -> list[int]:
    return [0 if a[0] <= 0 <= a[1] else min(map(abs, a)), _largest(a)]


@_by_intervals("BitwiseAnd")
def _common_bits(a: Interval, b: Interval) -> list[int]:
    return [0, min(a[1], b[1])] if min(a[0], b[0]) >= 0 else [-_INFINITY, _INFINITY]


@_by_intervals("BitwiseNot")
def _complement(a: Interval) -> list[int]:
    return [-a[1] - 1, -a[0] - 1]


@rule("Sub")
def _sub(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    a, b = (ranges.of(value) for value in node.inputs[:2])
    # ONNX's function bodies make zeros so.
    return (0, 0) if node.inputs[0] is node.inputs[1] else (a[0] - b[1], a[1] - b[0])


def _largest(a: Interval) -> int:
    return max(abs(a[0]), abs(a[1]))


@_by_intervals("Mod")
def _modulo(a: Interval, b: Interval) -> list[int]:
    most = min(_largest(a), _largest(b)) if a[0] >= 0 and b[0] >= 0 else _largest(b)
    return [0 if a[0] >= 0 and b[0] >= 0 else -most, most]


@_by_intervals("BitwiseOr", "BitwiseXor")
def _bits(a: Interval, b: Interval) -> list[int]:
    """The union or difference of bits: no more bits than the longer has."""
    if min(a[0], b[0]) < 0:
        return [-_INFINITY, _INFINITY]
    return [0, (1 << max(a[1], b[1]).bit_length()) - 1]


@rule("Clip")
def _clip(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    low, high = ranges.of(node.inputs[0])
    bounds = [*node.inputs[1:3], None, None]
    least = ranges.of(bounds[0])[0] if bounds[0] is not None else -_INFINITY
    most = ranges.of(bounds[1])[1] if bounds[1] is not None else _INFINITY
    # With the bounds crossed, the upper one is the result.
    return min(max(low, least), most), min(max(high, least), most)


@rule("Range")
def _range(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    start, limit = ranges.of(node.inputs[0]), ranges.of(node.inputs[1])
    return _union(start, limit)


@rule("ConstantOfShape")
def _constant_of_shape(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    value = attribute(node, "value")
    element = np.int64(0) if value is None else value.numpy().reshape(-1)[0]
    return int(element), int(element)


@rule("ReduceSum")
def _reduce_sum(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    known, axes = dims(node.inputs[0]), ints(node.inputs[1]) if len(node.inputs) > 1 else []
    if known is None or axes is None:
        return (-_INFINITY, _INFINITY)
    if not axes and attribute(node, "noop_with_empty_axes", 0):
        return ranges.of(node.inputs[0])
    return _times([known[a] for a in axes] if axes else known, ranges.of(node.inputs[0]))


@rule("ReduceMax", "ReduceMin")
def _reduce_extreme(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    """Without elements the result is the type's limit."""
    if 0 in (dims(node.inputs[0]) or ()):
        return (-_INFINITY, _INFINITY)
    return ranges.of(node.inputs[0])


@rule("CumSum")
def _cum_sum(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    known, axis = dims(node.inputs[0]), ints(node.inputs[1])
    if known is None or not axis:
        return (-_INFINITY, _INFINITY)
    return _union((0, 0), _times([known[axis[0]]], ranges.of(node.inputs[0])))


def _times(sizes: Sequence[Any], each: Interval) -> Interval:
    count = 1
    for size in sizes:
        if not isinstance(size, int):
            return (-_INFINITY, _INFINITY)
        count *= size
    return each[0] * count, each[1] * count


@rule("Cast", "CastLike")
def _cast(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    value = node.inputs[0]
    return ranges.of(value) if value is not None and value.dtype in _NATURAL else (-_INFINITY, _INFINITY)


@rule("TopK")
def _top_k(ranges: IntegerRanges, node: ir.Node, index: int) -> Interval:
    return ranges.of(node.inputs[0]) if index == 0 else _POSITIONS
