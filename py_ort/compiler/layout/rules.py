"""How each kind of operator works on permuted axes. A rule is found by its word (`Operator.layout`).

A rule makes the node again on permuted forms and returns True, or leaves it alone and returns False: then its inputs
are made plain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import Forms, Perm, channels_last, identity, inverse, same_memory, without_axes
from py_ort.ir.graph import array, attribute, dims, ints, permutation, rank, required
from py_ort.ir.rules import Rules

Wanted = Callable[[ir.Value], "Perm | None"]
Rule = Callable[[ir.Node, Forms, Wanted], bool]
FormRule = Callable[[ir.Node, Forms, Perm, ir.Value], bool]

rule = Rules[Rule]()
"""By the words that operators have as their `layout`."""


def single_form(node: ir.Node, forms: Forms, wanted: Wanted) -> tuple[Perm, ir.Value] | None:
    """For an operator with one tensor of interest: the best permuted form of input 0, or None to stay plain."""
    value = node.inputs[0]
    if value is None or value.const_value is not None:
        return None
    there = forms.available(value)
    if not there:
        return None
    plain = identity(len(next(iter(there))))
    preferred = wanted(node.outputs[0])
    if preferred is not None and len(preferred) == len(plain) and preferred in there:
        return None if preferred == plain else (preferred, there[preferred])
    if plain in there:
        return None
    perm = next(iter(there))
    return perm, there[perm]


def form_rule(*words: str) -> Callable[[FormRule], FormRule]:
    """Declare the rule of operators with one tensor of interest: it is asked with that one's best permuted form."""

    def declare(function: FormRule) -> FormRule:
        def on_best(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
            found = single_form(node, forms, wanted)
            return found is not None and function(node, forms, *found)

        rule(*words)(on_best)
        return function

    return declare


@rule("elementwise")
def elementwise(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """All inputs of the output's rank under one permutation, lower ranks with axes of size 1 in front."""
    count = rank(node.outputs[0])
    if count is None or count < 2:
        return False
    tensors: list[ir.Value] = []
    for value in node.inputs:
        if value is None:
            continue
        each = rank(value)
        if each is None or each > count:
            return False
        if each == count and value.const_value is None:
            tensors.append(value)
    if not tensors:
        return False
    perm = _cheapest(tensors, wanted(node.outputs[0]), forms)
    if perm is None:
        return False
    inputs = [None if v is None else _broadcast_form(v, perm, count, forms) for v in node.inputs]
    forms.emit(node, inputs, perm, perms=[perm] * len(node.outputs))
    return True


def _cheapest(tensors: list[ir.Value], preferred: Perm | None, forms: Forms) -> Perm | None:
    """The permutation under which the fewest transposes are made, before and after; None for the plain one."""
    plain = identity(rank(tensors[0]) or 0)
    if preferred is not None and len(preferred) != len(plain):
        preferred = None
    candidates = list(dict.fromkeys([plain, *(p for v in tensors for p in forms.available(v))]))
    if preferred is not None and preferred not in candidates:
        candidates.append(preferred)
    if len(candidates) == 1:
        return None

    def price(perm: Perm) -> tuple[float, bool, bool]:
        before = sum(forms.cost(value, perm) for value in dict.fromkeys(tensors))
        after = 0.0 if preferred is None or preferred == perm else 0.9
        return before + after, perm != preferred, perm != plain

    best = min(candidates, key=price)
    return None if best == plain else best


def _broadcast_form(value: ir.Value, perm: Perm, count: int, forms: Forms) -> ir.Value:
    each = rank(value)
    if each == 0 or (value.const_value is not None and value.const_value.size == 1):
        return required(forms.plain(value))
    if each == count:
        return forms.form(value, perm)
    contents = array(value)
    if contents is not None:
        wide = contents.reshape((1,) * (count - contents.ndim) + contents.shape).transpose(perm)
        return forms.constant(np.ascontiguousarray(wide), value.name)
    assert each is not None
    unsqueezed = forms.insert("Unsqueeze", [forms.plain(value), list(range(count - each))])[0]
    return forms.form(unsqueezed, perm)


@rule("concat")
def concat(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """All inputs under one permutation; the axis moves."""
    tensors = [v for v in node.inputs if v is not None and v.const_value is None]
    count = rank(node.outputs[0])
    if count is None or not tensors or any(rank(v) != count for v in node.inputs):
        return False
    perm = _cheapest(tensors, wanted(node.outputs[0]), forms)
    if perm is None:
        return False
    inputs = [forms.form(v, perm) for v in node.inputs if v is not None]
    forms.emit(node, inputs, perm, axis=inverse(perm)[attribute(node, "axis") % count])
    return True


@rule("quantized_concat")
def quantized_concat(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """Its inputs are the result's scale and zero point, then three for each tensor: tensor, scale, zero point."""
    tensors = [v for v in node.inputs[2::3] if v is not None and v.const_value is None]
    count = rank(node.outputs[0])
    if count is None or not tensors or any(rank(v) != count for v in node.inputs[2::3]):
        return False
    perm = _cheapest(tensors, wanted(node.outputs[0]), forms)
    if perm is None:
        return False
    inputs = [
        forms.form(v, perm) if v is not None and i % 3 == 2 else forms.plain(v) for i, v in enumerate(node.inputs)
    ]
    forms.emit(node, inputs, perm, axis=inverse(perm)[attribute(node, "axis") % count])
    return True


@form_rule("axis")
def axis_attribute(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Softmax, Split: the attribute `axis` moves; further inputs stay."""
    default = 0 if node.op_type == "Split" else -1
    axis = inverse(perm)[attribute(node, "axis", default) % len(perm)]
    rest = [forms.plain(v) for v in node.inputs[1:]]
    forms.emit(node, [x, *rest], perms=[perm] * len(node.outputs), axis=axis)
    return True


@form_rule("axis_input")
def axis_input(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """CumSum: the axis is a constant input."""
    axis = ints(node.inputs[1])
    if axis is None or len(axis) != 1:
        return False
    moved = forms.constant(np.array(inverse(perm)[axis[0] % len(perm)], np.int64))
    forms.emit(node, [x, moved], perm)
    return True


@form_rule("reduce")
def reduce(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """The axes must be a constant input; without keepdims the output does not have them."""
    axes = ints(node.inputs[1]) if len(node.inputs) > 1 else None
    if not axes:
        return False
    return _reduce(node, forms, perm, [a % len(perm) for a in axes], x)


def _reduce(node: ir.Node, forms: Forms, perm: Perm, axes: list[int], x: ir.Value) -> bool:
    moved = sorted(inverse(perm)[a] for a in axes)
    result = perm if attribute(node, "keepdims", 1) else without_axes(perm, axes)
    if node.op_type.startswith("Arg"):
        forms.emit(node, [x], result, axis=moved[0])
    else:
        forms.emit(node, [x, forms.constant(np.array(moved, np.int64))], result)
    return True


@form_rule("reduce_one")
def reduce_one(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """ArgMax: one axis, as an attribute."""
    return _reduce(node, forms, perm, [attribute(node, "axis", 0) % len(perm)], x)


@form_rule("slice")
def slice_axes(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Axes are a constant input."""
    axes = ints(node.inputs[3]) if len(node.inputs) > 3 else None
    if axes is None:
        return False
    moved = forms.constant(np.array([inverse(perm)[a % len(perm)] for a in axes], np.int64))
    rest = [forms.plain(v) for v in node.inputs]
    forms.emit(node, [x, rest[1], rest[2], moved, *rest[4:]], perm)
    return True


@form_rule("pad")
def pad(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Named axes move; pads for all axes are permuted."""
    count = len(perm)
    rest = [forms.plain(v) for v in node.inputs] + [None] * (4 - len(node.inputs))
    axes, pads = ints(rest[3]), ints(rest[1])
    if rest[3] is not None:
        if axes is None:
            return False
        moved = forms.constant(np.array([inverse(perm)[a % count] for a in axes], np.int64))
        forms.emit(node, [x, rest[1], rest[2], moved], perm)
    elif pads is not None:
        permuted = [pads[a] for a in perm] + [pads[a + count] for a in perm]
        forms.emit(node, [x, forms.constant(np.array(permuted, np.int64)), rest[2]], perm)
    else:
        forms.emit(node, [x, rest[1], rest[2], forms.constant(np.array(inverse(perm), np.int64))], perm)
    return True


def permuted_vector(value: ir.Value, perm: Sequence[int], forms: Forms) -> ir.Value:
    """A vector with one element per axis, in the form's order."""
    contents = array(value)
    if contents is not None:
        return forms.constant(contents[list(perm)], value.name)
    return forms.insert("Gather", [forms.plain(value), list(perm)], attributes={"axis": 0})[0]


@form_rule("vector")
def vector(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Tile: a number per axis."""
    if node.inputs[1] is None:
        return False
    forms.emit(node, [x, permuted_vector(node.inputs[1], perm, forms)], perm)
    return True


@form_rule("expand")
def expand(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """The shape has a number for each axis; leading ones may be missing."""
    shape = node.inputs[1]
    size = dims(shape)
    if shape is None or size is None or not isinstance(size[0], int):
        return False
    contents = array(shape)
    if size[0] != len(perm):
        if contents is None or size[0] > len(perm):
            return False
        contents = np.concatenate([np.ones(len(perm) - size[0], np.int64), contents])
        forms.emit(node, [x, forms.constant(contents[list(perm)])], perm)
    else:
        forms.emit(node, [x, permuted_vector(shape, perm, forms)], perm)
    return True


@form_rule("resize")
def resize(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Scales, sizes and the region: a number per axis, unless axes are named."""
    axes = attribute(node, "axes")
    if axes is not None:
        inputs: list[Any] = [x, *(forms.plain(v) for v in node.inputs[1:])]
        forms.emit(node, inputs, perm, axes=[inverse(perm)[a % len(perm)] for a in axes])
        return True
    inputs = [x]
    for index, value in enumerate(node.inputs[1:], start=1):
        if value is None:
            inputs.append(None)
        elif index == 1:
            inputs.append(permuted_vector(value, [*perm, *(a + len(perm) for a in perm)], forms))
        else:
            inputs.append(permuted_vector(value, perm, forms))
    forms.emit(node, inputs, perm)
    return True


@form_rule("gather")
def gather(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """One index takes the axis away, a vector of them keeps it."""
    depth = rank(node.inputs[1])
    if depth is None or depth > 1:
        return False
    axis = attribute(node, "axis", 0) % len(perm)
    result = perm if depth == 1 else without_axes(perm, [axis])
    forms.emit(node, [x, forms.plain(node.inputs[1])], result, axis=inverse(perm)[axis])
    return True


@form_rule("trailing_axes")
def trailing_axes(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """LayerNormalization: the normalized axes must be the last ones, in order, in the form too."""
    if len(node.outputs) > 1:
        return False
    axis = attribute(node, "axis", -1) % len(perm)
    if perm[axis:] != tuple(range(axis, len(perm))):
        return False
    forms.emit(node, [x, *(forms.plain(v) for v in node.inputs[1:])], perm)
    return True


@form_rule("quantized")
def quantized(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """QuantizeLinear and back: one scale for all, or one for each element along an axis, which moves; no blocks."""
    scale = dims(node.inputs[1])
    if scale is None or len(scale) > 1 or attribute(node, "block_size", 0):
        return False
    rest = [forms.plain(v) for v in node.inputs[1:]]
    forms.emit(node, [x, *rest], perm, axis=inverse(perm)[attribute(node, "axis", 1) % len(perm)] if scale else None)
    return True


@form_rule("table")
def table(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Elementwise, but with further inputs that have other shapes."""
    forms.emit(node, [x, *(forms.plain(v) for v in node.inputs[1:])], perm)
    return True


@form_rule("quantized_pool")
def quantized_pool(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """Pools of com.microsoft have an attribute for channels last."""
    if perm != channels_last(len(perm)) or attribute(node, "channels_last", 0):
        return False
    forms.emit(node, [x, *(forms.plain(v) for v in node.inputs[1:])], perm, channels_last=1)
    return True


@form_rule("product")
def product(node: ir.Node, forms: Forms, perm: Perm, x: ir.Value) -> bool:
    """MatMul by a matrix: its rows may be in any order, and its residual's rows must be in the same."""
    if perm[-1] != len(perm) - 1 or rank(node.inputs[1]) != 2:
        return False
    rest = [forms.plain(v) for v in node.inputs[1:3]]
    forms.emit(node, [x, *rest, *(forms.form(v, perm) for v in node.inputs[3:] if v is not None)], perm)
    return True


@rule("transpose")
def transpose(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """Nothing to do: the input's forms are forms of the output, under other permutations."""
    value = node.inputs[0]
    perm = permutation(node)
    if value is None or perm is None or value.const_value is not None:
        return False
    back = inverse(perm)
    there = dict(forms.available(value))
    idle = same_memory(perm, dims(value))
    kept = forms.is_plain(value) and not idle  # the node then remains, and is removed if it is unused
    for source, form in there.items():
        forms.register(node.outputs[0], tuple(back[a] for a in source), form, only=not kept)
        kept = True
    forms.changed += 1
    return idle or not forms.is_plain(value)


@rule("shape")
def shape(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """The form's shape, put back in order."""
    value = node.inputs[0]
    if value is None or forms.is_plain(value):
        return False
    perm, form = next(iter(forms.available(value).items()))
    picked = list(inverse(perm))[attribute(node, "start", 0) : attribute(node, "end", None)]
    whole = forms.insert("Shape", [form], attributes={"start": 0})[0]
    made = forms.insert("Gather", [whole, picked], attributes={"axis": 0})[0]
    forms.register(node.outputs[0], (0,), made)
    return True


@rule("size")
def size(node: ir.Node, forms: Forms, wanted: Wanted) -> bool:
    """Any form has the same size."""
    value = node.inputs[0]
    if value is None or forms.is_plain(value):
        return False
    forms.emit(node, [next(iter(forms.available(value).values()))], ())
    return True
