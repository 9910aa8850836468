"""Dimensions by symbols: where a shape is an input's contents, or where ONNX' own rules give up."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
import sympy  # type: ignore[import-untyped]

from py_ort.ir.graph import attribute, dims
from py_ort.ir.shape_data import elements, known, product, scaled, settled, shape_data, total
from py_ort.ir.slicing import sliced

Element = Any  # int, ir.SymbolicDim or None


def infer_reshape(node: ir.Node) -> None:
    """Dimensions of a Reshape's output: numbers, kept and computed dimensions, and one that is left over."""
    data, output = node.inputs[0], node.outputs[0]
    if data is None:
        return
    if data.type is not None:
        output.type = data.type
    target = shape_data(node.inputs[1])
    if target is None:
        size = dims(node.inputs[1])
        if output.shape is None and size and isinstance(size[0], int):
            output.shape = ir.Shape([None] * size[0])
        return
    source = dims(data)
    keep = not attribute(node, "allowzero", 0)
    result: list[Element] = [
        (source[i] if source is not None and i < len(source) else None) if isinstance(d, int) and d == 0 and keep else d
        for i, d in enumerate(target)
    ]
    if any(isinstance(d, int) and d == -1 for d in result):
        at = next(i for i, d in enumerate(result) if isinstance(d, int) and d == -1)
        result[at] = _left_over(source, result[:at] + result[at + 1 :])
    output.shape = ir.Shape([d if known(d) else None for d in result])


def _left_over(source: list[Element] | None, others: list[Element]) -> Element:
    if source is None:
        return None
    rest = list(source)
    remaining: list[Element] = []
    for other in others:  # factors of both sides cancel, be they numbers or symbols
        match = next((i for i, d in enumerate(rest) if known(d) and known(other) and d == other), None)
        if match is None:
            remaining.append(other)
        else:
            del rest[match]
    top, bottom = product(rest), product(remaining)
    if top is None or bottom is None or (isinstance(bottom, int) and bottom == 0):
        return None
    if isinstance(bottom, int):
        return top // bottom if bottom != 1 else top
    ratio = top / bottom if not isinstance(top, int) else None
    return ratio


def infer_expand(node: ir.Node) -> None:
    """Dimensions of an Expand's output."""
    data, output = node.inputs[0], node.outputs[0]
    if data is None:
        return
    if data.type is not None:
        output.type = data.type
    source, target = dims(data), shape_data(node.inputs[1])
    if source is None or target is None:
        return
    width = max(len(source), len(target))
    a, b = [1] * (width - len(source)) + source, [1] * (width - len(target)) + target
    joined: list[Element] = [wider(x, y) for x, y in zip(a, b, strict=True)]
    output.shape = ir.Shape([d if known(d) else None for d in joined])


def refine_tile(node: ir.Node) -> None:
    """Dimensions of a Tile's output: sizes times repeats, either of which may be a symbol."""
    source, repeats = dims(node.inputs[0]), shape_data(node.inputs[1])
    if source is not None and repeats is not None and len(source) == len(repeats):
        pairs = (
            sorted(pair, key=lambda n: isinstance(n, int) and n != 1) for pair in zip(source, repeats, strict=True)
        )
        node.outputs[0].shape = ir.Shape([product(pair) for pair in pairs])


def infer_constant_of_shape(node: ir.Node) -> None:
    """Dimensions and dtype of a ConstantOfShape's output."""
    value = attribute(node, "value")
    output = node.outputs[0]
    output.type = ir.TensorType(ir.DataType.FLOAT if value is None else value.dtype)
    target = shape_data(node.inputs[0])
    if target is not None:
        output.shape = ir.Shape([d if known(d) else None for d in target])
    else:
        size = dims(node.inputs[0])
        if size and isinstance(size[0], int):
            output.shape = ir.Shape([None] * size[0])


def broadcast(node: ir.Node) -> None:
    """Dimensions of an elementwise operator's output, by symbols where ONNX' own rule gives up."""
    shapes = [dims(v) for v in node.inputs if v is not None]
    output = node.outputs[0]
    if any(shape is None for shape in shapes):
        return
    width = max(len(shape) for shape in shapes)  # type: ignore[arg-type]
    result: list[Element] = [1] * width
    for shape in shapes:
        assert shape is not None
        for at, dim in enumerate(shape, start=width - len(shape)):
            result[at] = wider(result[at], dim)
    output.shape = ir.Shape([d if known(d) else None for d in result])


def wider(a: Element, b: Element) -> Element:
    """Return the size of an axis of two tensors that broadcast; None where it may be either's."""
    if isinstance(a, int) and isinstance(b, int):
        return b if a == 1 else a
    for one, other in ((a, b), (b, a)):
        if isinstance(one, int):
            return other if one == 1 else one
    if not (known(a) and known(b)):
        return None
    if a == b:
        return a
    # min(n, s) with n above 1 fits s only by being s (or 1, when s is).
    if _is_minimum_with(a, b) or _is_minimum_with(b, a):
        return b if _is_minimum_with(a, b) else a
    return next((size for size in (a, b) if _is_never_one(size)), None)


def _is_minimum_with(a: Element, b: Element) -> bool:
    expression = a._expr
    return (
        isinstance(expression, sympy.Min)
        and b._expr in expression.args
        and all(t == b._expr or (t.is_number and t > 1) for t in expression.args)
    )


def _is_never_one(size: Element) -> bool:
    """Return True if a size is a multiple of a number above 1: only the same size or 1 broadcasts with it."""
    terms = [term.as_coeff_Mul() for term in sympy.Add.make_args(size._expr)]
    whole = all(factor.is_Integer and rest.is_integer for factor, rest in terms)
    return whole and math.gcd(*(int(factor) for factor, _ in terms)) != 1


def refine_slice(node: ir.Node) -> None:
    """Dimensions of a Slice's output by bounds that were computed; x[:n] has min(size, n) elements."""
    source, output = dims(node.inputs[0]), node.outputs[0]
    parts = [shape_data(v) for v in node.inputs[1:]]
    if not source or len(parts) < 3 or any(part is None for part in parts):
        return
    starts, ends, axes = parts[:3]
    steps = parts[3] if len(parts) > 3 else [1] * len(starts)  # type: ignore[arg-type]
    if len({len(each) for each in (starts, ends, axes, steps)}) > 1:  # type: ignore[arg-type]
        return
    rank = len(source)
    if not all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):  # type: ignore[union-attr]
        return
    cut = {axis % rank for axis in axes}  # type: ignore[union-attr]
    inferred = list(output.shape) if output.shape is not None else [None] * len(source)
    result: list[Element] = [inferred[i] if i in cut else dim for i, dim in enumerate(source)]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):  # type: ignore[arg-type]
        size = source[axis]
        if all(isinstance(n, int) for n in (start, end, step, size)) and step != 0:
            result[axis] = len(sliced(size, start, end, step))
            continue
        if not all(isinstance(n, int) for n in (start, axis, step)) or isinstance(end, int) or step != 1 or start != 0:
            continue
        result[axis] = _minimum(size, end) if known(size) and known(end) else None
    output.shape = ir.Shape([d if known(d) else None for d in result])


def refine_concat(node: ir.Node) -> None:
    """Return a Concat's output dimensions: the sum along the axis; along others, those of inputs with elements."""
    shapes, output = [dims(v) for v in node.inputs], node.outputs[0]
    if any(not shape or len(shape) != len(shapes[0] or []) for shape in shapes):
        return
    axis = attribute(node, "axis") % len(shapes[0] or [])
    full = [shape for shape in shapes if 0 not in (shape or [])] or shapes[:1]
    # Parts with elements must have equal sizes; a part of size 0 along the axis need not. Of two names either may do.
    sure = [shape for shape in full if shape and isinstance(shape[axis], int)]
    result: list[Element] = [None] * len(shapes[0] or [])
    for group in (full, sure):
        for at, column in enumerate(zip(*(shape or () for shape in group), strict=True)):
            found = sorted((size for size in column if known(size)), key=lambda size: not isinstance(size, int))
            if found and (group is sure or isinstance(found[0], int) or all(size == found[0] for size in found)):
                result[at] = found[0]
    result[axis] = total([shape[axis] for shape in shapes if shape])
    output.shape = ir.Shape(result)


def refine_range(node: ir.Node) -> None:
    """Dimensions of a Range's output whose bounds are sizes: a limit before the start is taken not to be."""
    start, limit, step = (elements(v) for v in node.inputs)
    if step != [1] or not start or not limit or not known(start[0]) or not known(limit[0]):
        return
    count = limit[0] - start[0]
    if isinstance(count, int) or count._expr.is_integer:
        size = settled(count)
        node.outputs[0].shape = ir.Shape([max(size, 0) if isinstance(size, int) else size])


def refine_resize(node: ir.Node) -> None:
    """Dimensions of a Resize's output: given, or the input's times constants."""
    source, output = dims(node.inputs[0]), node.outputs[0]
    scales, sizes = (elements(v) for v in (*node.inputs[2:4], None, None)[:2])
    if source is None or attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return
    if attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return
    axes = [axis % len(source) for axis in attribute(node, "axes") or range(len(source))]
    given = scales or sizes
    if given is None or len(given) != len(axes):
        return
    result: list[Element] = list(source)
    inferred: list[Element] = list(dims(output) or ()) or [None] * len(source)
    for axis, number in zip(axes, given, strict=True):
        result[axis] = scaled(source[axis], number) if scales else number
    output.shape = ir.Shape([new if known(new) else old for new, old in zip(result, inferred, strict=True)])


def _minimum(size: Element, end: Element) -> Element:
    """Sizes are not negative, and an end made of sizes is taken not to be either."""
    if size == end:
        return size
    if any(part.could_extract_minus_sign() for part in sympy.Add.make_args(end._expr)):
        return None
    return ir.SymbolicDim(sympy.Min(size if isinstance(size, int) else size._expr, end._expr))
