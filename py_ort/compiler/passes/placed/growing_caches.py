"""Finds the Attentions whose caches may be in buffers with room for more rows, in steps of one row.

Such a step is run as if all the room were rows that came before: then nothing that it is recorded with changes from one
step to the next. The kernel looks at the rows that there are, so it must find in a mask's columns for these what it
would have found, and nothing else may see how many rows come before. That is proved here, from the mask's shape and
contents: column by column it depends on the same column of what is fed, and not on the number of columns; comparisons
of columns with that number, as causal masks have them, are the same for all columns of a step.

Runs after placement, on operators as ONNX has them. `grows` is 1 then, and `grows_with` lists the model's inputs whose
last axis is as long as the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import Any

import onnx_ir as ir
import sympy  # type: ignore[import-untyped]

from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.ir.graph import attribute, dims, scalar, set_attributes, subgraphs
from py_ort.ir.infer import infer_graph
from py_ort.ir.operators import operator
from py_ort.ir.rules import Rules
from py_ort.ir.shape_data import elements, known
from py_ort.schema.dialect import (
    ATTENTION_LENGTHS,
    ATTENTION_MASK,
    ATTENTION_PAST_KEY,
    ATTENTION_PAST_VALUE,
    GROWS,
    GROWS_WITH,
)

_OUTPUTS = ("result", "present key", "present value")
#: How many rows come before a step's own.
_PAST: Any = ir.SymbolicDim("rows_before_a_step")._expr
#: The place of an element along the axis of columns.
_COLUMN = sympy.Symbol("column", integer=True)


class GrowingCaches(KernelPass):
    """All caches of a model are kept so, or none, which Attentions on a device append to."""

    def call(self, model: ir.Model) -> int:
        """Mark the nodes that append to caches."""
        nodes = [node for node in model.graph if _appends(node)]
        if not nodes or attribute(nodes[0], GROWS) or not all(self._takes(node) for node in nodes):
            return 0
        sizes = None if any(subgraphs(node) for node in model.graph) else _sizes(model.graph, nodes)
        if sizes is None or not _hides_the_past(model, *sizes):
            return 0
        for node in nodes:
            set_attributes(node, **{GROWS: 1, GROWS_WITH: sizes[1] or None})
        return len(nodes)


def _appends(node: ir.Node) -> bool:
    """Return True if a node is an Attention whose past is fed, and has no other length."""
    if (node.domain, node.op_type) != ("", "Attention"):
        return False
    inputs = [*node.inputs, *[None] * ATTENTION_LENGTHS][: ATTENTION_LENGTHS + 1]
    pasts = inputs[ATTENTION_PAST_KEY], inputs[ATTENTION_PAST_VALUE]
    counted = inputs[ATTENTION_LENGTHS] is not None or len(node.outputs) > len(_OUTPUTS)
    return not counted and all(past is not None and past.is_graph_input() for past in pasts)


def _sizes(graph: ir.Graph, nodes: Sequence[ir.Node]) -> tuple[dict[Any, Any], list[int]] | None:
    """Return the sizes in a step of one row after _PAST rows, and the inputs that are as long as the keys."""
    pasts = {value for node in nodes for value in node.inputs[ATTENTION_PAST_KEY : ATTENTION_PAST_VALUE + 1]}
    shapes = [dims(past) for past in pasts]
    if len(pasts) != 2 * len(nodes) or any(shape is None or len(shape) != 4 for shape in shapes):
        return None
    sizes: dict[Any, Any] = {_expression(shape[2]): _PAST for shape in shapes if shape is not None}
    batch = {_expression(shape[0]) for shape in shapes if shape is not None}
    rows = {
        _expression(shape[-2]) if shape and len(shape) > 1 else None for shape in (dims(n.inputs[0]) for n in nodes)
    }
    if None in rows or not all(isinstance(size, sympy.Symbol) for size in sizes) or len(rows) != 1:
        return None
    (count,) = rows
    if isinstance(count, sympy.Symbol) and count not in sizes:
        sizes[count] = sympy.Integer(1)
    elif count != 1:
        return None
    growing = []
    for index, value in enumerate(graph.inputs):
        shape = dims(value)
        last = _expression(shape[-1]) if shape and value not in pasts else None
        if last is None or last.is_number or last == count or last in batch:
            continue
        if isinstance(last, sympy.Symbol) and last not in sizes:
            sizes[last] = _PAST + 1
        if sympy.expand(last.subs(sizes)) == _PAST + 1:
            growing.append(index)
    return sizes, growing


def _expression(size: Any) -> Any:
    if isinstance(size, int):
        return sympy.Integer(size)
    return size._expr if known(size) else None


@dataclass(frozen=True)
class _Fact:
    """Knowledge of a tensor in steps that differ in the number of rows before.

    Attributes:
        axis: The one that is as long as the keys, from the end; None: no size depends on how many there are.
        number: The elements, as a formula of the number of rows before and _COLUMN; None: they are the same in all
            steps, or depend only on the feed for their column.
    """

    axis: int | None = None
    number: Any = None

    @property
    def varies(self) -> bool:
        """True if elements depend on the number of rows before."""
        return self.number is not None and _PAST in self.number.free_symbols

    @property
    def still(self) -> bool:
        """True if neither elements nor sizes depend on it."""
        return self.axis is None and not self.varies


_STILL = _Fact()


def _whole(number: float) -> Any:
    """A number that every type of at least 32 bits has exactly, as its sums with positions are; else None."""
    return sympy.Integer(int(number)) if abs(number) <= 1 << 20 and number.is_integer() else None


def _hides_the_past(model: ir.Model, sizes: Mapping[Any, Any], growing: Sequence[int]) -> bool:
    """Return True if only caches, and masks with columns for them, depend on the number of rows before."""
    graph = model.clone().graph
    for value in graph.inputs:
        found = [sympy.expand(_expression(size).subs(sizes)) for size in dims(value) or ()]
        value.shape = None if dims(value) is None else ir.Shape([_dimension(size) for size in found])
    for node in graph:
        for output in node.outputs:
            output.shape = None
            output.meta.clear()
    infer_graph(graph)
    return _Facts(graph, growing).hide()


def _dimension(size: Any) -> int | ir.SymbolicDim:
    return int(size) if size.is_number else ir.SymbolicDim(size)


class _Facts:
    """Knowledge of the values of a graph with the sizes of a step."""

    def __init__(self, graph: ir.Graph, growing: Sequence[int]) -> None:
        self._graph = graph
        self._facts: dict[ir.Value, _Fact | None] = {}
        for index, value in enumerate(graph.inputs):
            fits, axis = columns(value)
            self._facts[value] = None if not fits or (axis is not None) != (index in growing) else _Fact(axis)

    def hide(self) -> bool:
        """Return True if all values but caches and columns of masks are the same in all steps."""
        caches: set[ir.Value | None] = set()
        for node in self._graph:
            if _appends(node):
                if not self._is_hidden(node):
                    return False
                self._facts |= {node.outputs[0]: _STILL} | dict.fromkeys(node.outputs[1:], None)
                caches.update(node.inputs[ATTENTION_PAST_KEY : ATTENTION_PAST_VALUE + 1], node.outputs[1:])
            else:
                fact = self._fact(node)
                several = _STILL if fact is not None and fact.still else None
                self._facts |= dict.fromkeys(node.outputs, fact if len(node.outputs) == 1 else several)
        fed = all(self.of(value) is not None for value in self._graph.inputs if value not in caches)
        return fed and all(self.same(value) for value in self._graph.outputs if value not in caches)

    def of(self, value: ir.Value | None) -> _Fact | None:
        """Return the knowledge of a value, if any."""
        if value is None:
            return _STILL
        if value.const_value is not None:
            number = scalar(value)
            return _STILL if number is None else _Fact(None, _whole(float(number)))
        return self._facts.get(value, _STILL)

    def same(self, value: ir.Value | None) -> bool:
        """Return True if a value is the same in all steps."""
        fact = self.of(value)
        return fact is not None and fact.still

    def _is_hidden(self, node: ir.Node) -> bool:
        if not all(self.same(value) for value in node.inputs[:ATTENTION_MASK]):
            return False
        mask = node.inputs[ATTENTION_MASK]
        fact, shape = self.of(mask), dims(mask)
        if fact is None or fact.varies:
            return False
        return fact.axis == -1 or (fact.axis is None and (not shape or shape[-1] == 1))

    def _fact(self, node: ir.Node) -> _Fact | None:
        output = node.outputs[0]
        sizes = elements(output)
        if sizes and len(sizes) == 1 and known(sizes[0]):
            return _Fact(None, _expression(sizes[0]))
        if sizes and all(known(size) and _PAST not in _expression(size).free_symbols for size in sizes):
            return _STILL
        still = all(self.same(value) for value in node.inputs)
        if still and output.dtype not in _EXACT:
            return _STILL
        fits, axis = columns(output)
        elementwise = operator(node.domain, node.op_type).layout == "elementwise"
        find = _elementwise if elementwise else _rule.of(node)
        found = find(self, node) if fits and find is not None else None
        if still:
            return found if found is not None and found.still else _STILL
        return found if found is None or found.axis == axis else None


def columns(value: ir.Value | None) -> tuple[bool, int | None]:
    """Return True if a shape is known and at most one axis, as long as the keys, depends on the past; and the axis."""
    sizes = dims(value)
    shape = [_expression(size) for size in sizes or ()]
    found = [axis - len(shape) for axis, size in enumerate(shape) if size is None or _PAST in size.free_symbols]
    if sizes is None or len(found) > 1:
        return False, None
    return (True, None) if not found else (shape[found[0]] == _PAST + 1, found[0])


_Rule = Callable[[_Facts, ir.Node], "_Fact | None"]
_rule = Rules[_Rule]()
"""Functions that derive the fact of a node's output from those of its inputs, by operator."""


#: Types that have all sizes and places.
_EXACT = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.DOUBLE)


def _elementwise(facts: _Facts, node: ir.Node) -> _Fact | None:
    given = [facts.of(value) for value in node.inputs if value is not None]
    known_ones = [fact for fact in given if fact is not None]
    axes = {fact.axis for fact in known_ones} - {None}
    if len(known_ones) < len(given) or len(axes) > 1:
        return None
    axis = next(iter(axes), None)
    if node.op_type == "Where" and known_ones[0].number in (0, 1):
        known_ones = [known_ones[1 if known_ones[0].number == 1 else 2]]
        return _Fact(axis, known_ones[0].number)
    number = _number(node, [fact.number for fact in known_ones])
    compared = number is None and _holds.of(node) and all(fact.number is not None for fact in known_ones)
    difference = sympy.expand(known_ones[0].number - known_ones[1].number) if compared else _PAST
    if compared:
        number = _compared(node, difference)
    # Compared are, where both sides go with the rows before, places alone.
    seen = any(fact.varies for fact in known_ones) and _PAST in difference.free_symbols
    return None if number is None and seen else _Fact(axis, number)


def _number(node: ir.Node, numbers: Sequence[Any]) -> Any:
    """Return the elements of arithmetic; None if unknown."""
    if any(number is None for number in numbers):
        return None
    if node.op_type == "Cast":
        truth = numbers[0] in (0, 1)
        return numbers[0] if truth or node.outputs[0].dtype in _EXACT else None
    if node.op_type == "Neg":
        return -numbers[0]
    if node.op_type == "Not":
        return 1 - numbers[0]
    if node.op_type in ("Add", "Sub", "Mul") and node.outputs[0].dtype in _EXACT:
        a, b = numbers
        return sympy.expand({"Add": a + b, "Sub": a - b, "Mul": a * b}[node.op_type])
    return None


_holds = Rules[Callable[[Any, Any], bool]]()
"""How numbers are compared."""

_holds("Less")(lt)
_holds("LessOrEqual")(le)
_holds("Greater")(gt)
_holds("GreaterOrEqual")(ge)
_holds("Equal")(eq)


def _compared(node: ir.Node, difference: Any) -> Any:
    """1 or 0 where a difference compares alike with 0 for all columns of all steps."""
    ends = [sympy.expand(difference.subs(_COLUMN, at)) for at in (0, _PAST)]
    linear = all(end.is_number or sympy.Poly(end, _PAST).degree() <= 1 for end in ends)
    if difference.free_symbols - {_COLUMN, _PAST} or not linear:
        return None
    if not difference.is_number and sympy.Poly(difference, _COLUMN, _PAST).total_degree() > 1:
        return None
    slopes = [end.coeff(_PAST, 1) for end in ends]
    starts = [end.coeff(_PAST, 0) for end in ends]
    least = -sympy.oo if min(slopes) < 0 else min(starts)
    most = sympy.oo if max(slopes) > 0 else max(starts)
    # A comparison that holds at both ends, and at the number between them that is nearest to 0, holds for all.
    nearest = min(max(least, 0), most)
    found = {bool(_holds[node.op_type](number, 0)) for number in (least, nearest, most)}
    return sympy.Integer(found.pop()) if len(found) == 1 else None


@_rule("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")
def _viewed(facts: _Facts, node: ir.Node) -> _Fact | None:
    """The same elements in the same order; columns remain columns if as many elements follow each."""
    fact, (_, axis) = facts.of(node.inputs[0]), columns(node.outputs[0])
    if fact is None or (fact.axis is None) != (axis is None):
        return None
    if fact.axis is not None and axis is not None:
        behind = [
            sympy.prod(_expression(size) for size in (dims(value) or [])[at:][1:])
            for value, at in ((node.inputs[0], fact.axis), (node.outputs[0], axis))
        ]
        if behind[0] != behind[1]:
            return None
    return _Fact(axis, fact.number)


@_rule("Expand")
def _expanded(facts: _Facts, node: ir.Node) -> _Fact | None:
    fact, (_, axis) = facts.of(node.inputs[0]), columns(node.outputs[0])
    return None if fact is None or fact.axis not in (None, axis) else _Fact(axis, fact.number)


@_rule("Transpose")
def _transposed(facts: _Facts, node: ir.Node) -> _Fact | None:
    fact, perm = facts.of(node.inputs[0]), attribute(node, "perm")
    if fact is None or fact.axis is None or not perm:
        return None
    return _Fact(list(perm).index(len(perm) + fact.axis) - len(perm), fact.number)


@_rule("Slice")
def _cut(facts: _Facts, node: ir.Node) -> _Fact | None:
    """A Slice from the first column on; other axes are cut alike in all steps."""
    fact, (_, axis) = facts.of(node.inputs[0]), columns(node.outputs[0])
    starts, ends, axes = (elements(value) for value in node.inputs[1:4])
    steps = elements(node.inputs[4]) if len(node.inputs) > 4 else [1] * len(starts or ())
    count = len(dims(node.inputs[0]) or ())
    if fact is None or None in (starts, ends, axes, steps) or fact.axis not in (None, axis):
        return None
    for start, end, at, by in zip(starts or (), ends or (), axes or (), steps or (), strict=True):
        if (at if at < 0 else at - count) == axis:
            if start != 0 or by != 1:
                return None
        elif any(not known(each) or _PAST in _expression(each).free_symbols for each in (start, end, by)):
            return None
    return None if fact.varies and fact.axis is None else _Fact(axis, fact.number)


@_rule("ConstantOfShape")
def _filled(facts: _Facts, node: ir.Node) -> _Fact | None:
    value, (_, axis) = attribute(node, "value"), columns(node.outputs[0])
    return _Fact(axis, _whole(0.0 if value is None else float(value.numpy().reshape(-1)[0])))


@_rule("Range")
def _counted(facts: _Facts, node: ir.Node) -> _Fact | None:
    given, (_, axis) = [facts.of(value) for value in node.inputs], columns(node.outputs[0])
    numbers = [None if fact is None else fact.number for fact in given]
    if None in numbers or numbers[2] != 1:
        return None
    if axis is None:
        # One number: where it begins.
        return _Fact(None, numbers[0]) if [_expression(size) for size in dims(node.outputs[0]) or ()] == [1] else None
    return _Fact(axis, sympy.expand(numbers[0] + _COLUMN))


@_rule("Trilu")
def _triangle(facts: _Facts, node: ir.Node) -> _Fact | None:
    """A Trilu of one row."""
    fact, shape = facts.of(node.inputs[0]), dims(node.inputs[0]) or ()
    diagonal = facts.of(node.inputs[1]) if len(node.inputs) > 1 else _STILL
    if fact is None or fact.varies or fact.axis != -1 or diagonal is None or not diagonal.still:
        return None
    return _Fact(-1) if len(shape) > 1 and _expression(shape[-2]) == 1 else None


@_rule("Gather")
def _looked_up(facts: _Facts, node: ir.Node) -> _Fact | None:
    """A Gather, for each column, from a table that is the same in all steps."""
    places = facts.of(node.inputs[1])
    if not facts.same(node.inputs[0]) or places is None or places.axis is None or places.varies:
        return None
    count = len(dims(node.inputs[0]) or ())
    return _Fact(places.axis - (count - 1 - attribute(node, "axis", 0) % max(count, 1)))
