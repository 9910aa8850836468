"""Random inputs for every operator that the compiler computes itself: all dtypes, empty ones, scalars, extremes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
from fold_draws import I64_MAX, I64_MIN, Case, Draw, Shape

Make = Callable[[Draw, ir.DataType], Case]
CASES: dict[str, Make] = {}


def case(*op_types: str) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Declare how cases of operators are drawn; a function of three arguments receives the operator."""

    def declare(make: Callable[..., Case]) -> Callable[..., Case]:
        for op_type in op_types:
            assert op_type not in CASES
            told = make.__code__.co_argcount == 3
            CASES[op_type] = (lambda draw, dtype, op_type=op_type: make(draw, dtype, op_type)) if told else make
        return make

    return declare


def ints(items: Any) -> np.ndarray:
    return np.array(items, np.int64)


@case("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")
@case("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _pair(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    pair = [draw.values(dtype, shape), draw.values(dtype, draw.like(shape))]
    return Case(pair if draw.chance() else pair[::-1])


@case("Mod")
def _mod(draw: Draw, dtype: ir.DataType) -> Case:
    as_c = dtype.is_floating_point() or draw.chance(0.3)
    return Case(_pair(draw, dtype).inputs, {"fmod": int(as_c)})


@case("Pow")
def _pow(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    other = draw.pick(dtype, dtype, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.FLOAT)
    return Case([draw.values(dtype, shape), draw.values(other, draw.like(shape), tame=True)])


@case("BitShift")
def _bit_shift(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    by = draw.rng.integers(0, dtype.bitwidth + draw.pick(0, 0, 2), draw.like(shape)).astype(dtype.numpy())
    return Case([draw.values(dtype, shape), by], {"direction": draw.pick("LEFT", "RIGHT")})


@case("Max", "Min")
def _several(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    return Case([draw.values(dtype, draw.like(shape) if i else shape) for i in range(draw.between(2, 3))])


@case("Clip")
def _clip(draw: Draw, dtype: ir.DataType) -> Case:
    bounds = [None if draw.chance(0.3) else draw.values(dtype, ()) for _ in range(2)]
    return Case([draw.values(dtype, draw.shape()), *bounds])


@case("Neg", "Abs", "Sign", "Relu", "Floor", "Ceil", "Round", "Identity", "Not", "BitwiseNot", "IsNaN")
@case("Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid")
def _one(draw: Draw, dtype: ir.DataType) -> Case:
    return Case([draw.values(dtype, draw.shape())])


@case("IsInf")
def _is_inf(draw: Draw, dtype: ir.DataType) -> Case:
    return Case(_one(draw, dtype).inputs, {f"detect_{side}": draw.between(0, 1) for side in ("positive", "negative")})


@case("Where")
def _where(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    parts = [draw.values(ir.DataType.BOOL, draw.like(shape)), draw.values(dtype, shape)]
    return Case([*parts, draw.values(dtype, draw.like(shape))])


NUMBERS = [ir.DataType[name] for name in ("FLOAT16", "BFLOAT16", "FLOAT", "DOUBLE", "BOOL")] + [
    ir.DataType[f"{sign}INT{bits}"] for bits in (8, 16, 32, 64) for sign in ("", "U")
]


@case("Cast")
def _cast(draw: Draw, dtype: ir.DataType) -> Case:
    return Case([draw.values(dtype, draw.shape(), tame=draw.chance())], {"to": int(draw.pick(*NUMBERS))})


@case("Reshape")
def _reshape(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    target = list(shape)
    for _ in range(draw.between(0, 2)):
        at = draw.between(0, len(target))
        if at + 1 < len(target) and draw.chance():
            target[at : at + 2] = [target[at] * target[at + 1]]
        else:
            target.insert(at, 1)
    if target and draw.chance():
        at = draw.between(0, len(target) - 1)
        target[at] = 0 if at < len(shape) and target[at] == shape[at] and draw.chance() else -1
    return Case([draw.values(dtype, shape), ints(target)], {"allowzero": int(0 in shape and draw.chance())})


@case("Flatten")
def _flatten(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    return Case([draw.values(dtype, shape)], {"axis": draw.between(-len(shape), len(shape))})


@case("Squeeze")
def _squeeze(draw: Draw, dtype: ir.DataType) -> Case:
    shape = tuple(draw.pick(1, d) for d in draw.shape(1))
    ones = [i - (len(shape) if draw.chance() else 0) for i, d in enumerate(shape) if d == 1 and draw.chance(0.7)]
    return Case([draw.values(dtype, shape), ints(ones) if ones or draw.chance() else None])


@case("Unsqueeze")
def _unsqueeze(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(0, 3)
    count = draw.between(1, 2)
    places = draw.rng.permutation(len(shape) + count)[:count]
    return Case([draw.values(dtype, shape), ints([p - (len(shape) + count if draw.chance() else 0) for p in places])])


@case("Transpose")
def _transpose(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    perm = [int(a) for a in draw.rng.permutation(len(shape))]
    return Case([draw.values(dtype, shape)], {"perm": perm} if perm and draw.chance(0.9) else {})


@case("Expand")
def _expand(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape()
    pair = [draw.like(shape), draw.like(shape)]
    return Case([draw.values(dtype, pair[0]), ints(pair[1] if draw.chance() else shape)])


@case("Tile")
def _tile(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1)
    return Case([draw.values(dtype, shape), ints([draw.pick(0, 1, 1, 2, 3) for _ in shape])])


@case("Concat")
def _concat(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    at = axis % len(shape)
    parts = [(*shape[:at], draw.between(0, 3), *shape[at + 1 :]) for _ in range(draw.between(1, 3))]
    return Case([draw.values(dtype, part) for part in parts], {"axis": axis})


@case("Split")
def _split(draw: Draw, dtype: ir.DataType) -> Case:
    shape = list(draw.shape(1))
    axis = draw.axis(len(shape))
    sizes = [draw.between(0, 3) for _ in range(draw.between(1, 3))]
    shape[axis] = sum(sizes)
    return Case([draw.values(dtype, tuple(shape)), ints(sizes)], {"axis": axis}, len(sizes))


@case("Slice")
def _slice(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1)
    axes = draw.axes(len(shape))
    starts, ends = ([draw.bound(shape[a]) for a in axes] for _ in range(2))
    steps = [draw.pick(1, 1, 2, 3, -1, -2, -3, I64_MAX, I64_MIN, -(2**31)) for _ in axes]
    named: list[Any] = [ints(axes), ints(steps) if draw.chance(0.8) else None]
    kind = draw.pick(np.int64, np.int64, np.int32)
    bounds = [np.clip(ints(item), np.iinfo(kind).min, np.iinfo(kind).max).astype(kind) for item in (starts, ends)]
    extra = [None if n is None else np.clip(n, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind) for n in named]
    return Case([draw.values(dtype, shape), *bounds, *extra])


@case("Pad")
def _pad(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1, empty=False)
    axes = draw.axes(len(shape)) if draw.chance() else None
    low = draw.pick(0, 0, -1)
    pads = [draw.between(low, 2) for _ in range(2 * len(shape if axes is None else axes))]
    value = draw.values(dtype, ()) if draw.chance() or dtype == ir.DataType.STRING else None
    return Case([draw.values(dtype, shape), ints(pads), value, None if axes is None else ints(axes)])


@case("Trilu")
def _trilu(draw: Draw, dtype: ir.DataType) -> Case:
    k = ints(draw.pick(0, 1, -1, 2, -3, 7, I64_MAX, I64_MIN)) if draw.chance(0.8) else None
    return Case([draw.values(dtype, draw.shape(2)), k], {"upper": draw.between(0, 1)})


def _indices(draw: Draw, size: int, shape: Shape) -> np.ndarray:
    return draw.rng.integers(-size, size, shape).astype(draw.pick(np.int64, np.int32))


@case("Gather")
def _gather(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    chosen = draw.shape(0, 2) if shape[axis] else (0,)
    return Case([draw.values(dtype, shape), _indices(draw, max(shape[axis], 1), chosen)], {"axis": axis})


@case("GatherElements")
def _gather_elements(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1, empty=False)
    axis = draw.axis(len(shape))
    chosen = tuple(draw.between(0 if draw.chance(0.1) else 1, d) for d in shape)
    return Case([draw.values(dtype, shape), _indices(draw, shape[axis], chosen)], {"axis": axis})


@case("ScatterElements")
def _scatter_elements(draw: Draw, dtype: ir.DataType) -> Case:
    found = _gather_elements(draw, dtype)
    x, indices = found.inputs
    assert x is not None and indices is not None
    if draw.chance(0.8):  # each place once
        axis, size = found.attributes["axis"], x.shape[found.attributes["axis"]]
        orders = np.argsort(
            draw.rng.random((*indices.shape[: axis % x.ndim], size, *indices.shape[axis % x.ndim + 1 :])), axis
        )
        indices = np.take(orders, range(indices.shape[axis]), axis).astype(indices.dtype)
    return Case([x, indices, draw.values(dtype, indices.shape)], found.attributes)


@case("GatherND")
def _gather_nd(draw: Draw, dtype: ir.DataType) -> Case:
    x, indices = _points(draw, dtype)
    return Case([x, indices])


@case("ScatterND")
def _scatter_nd(draw: Draw, dtype: ir.DataType) -> Case:
    x, indices = _points(draw, dtype)
    if draw.chance(0.8):
        indices = np.unique(indices % x.shape[: indices.shape[-1]], axis=0)
    return Case([x, indices, draw.values(dtype, (*indices.shape[:-1], *x.shape[indices.shape[-1] :]))])


def _points(draw: Draw, dtype: ir.DataType) -> tuple[np.ndarray, np.ndarray]:
    shape = draw.shape(1, empty=False)
    named = draw.between(1, len(shape))
    count = draw.between(0 if draw.chance(0.1) else 1, 3)
    columns = [draw.rng.integers(-size, size, count) for size in shape[:named]]
    return draw.values(dtype, shape), np.stack(columns, -1).astype(np.int64)


@case("NonZero")
def _non_zero(draw: Draw, dtype: ir.DataType) -> Case:
    return Case([draw.values(dtype, draw.shape(1))])


@case("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceSumSquare")
def _reduce(draw: Draw, dtype: ir.DataType, op_type: str) -> Case:
    shape = draw.shape()
    axes = draw.axes(len(shape)) if shape and draw.chance(0.8) else []
    tame = draw.chance(0.8) and not op_type.startswith("ReduceM")
    given = draw.pick(None, ints([])) if not axes else ints(axes)
    attributes = {"keepdims": draw.between(0, 1), "noop_with_empty_axes": int(draw.chance(0.2))}
    return Case([draw.values(dtype, shape, tame=tame), given], attributes)


@case("CumSum")
def _cum_sum(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1)
    flags = {name: draw.between(0, 1) for name in ("exclusive", "reverse")}
    axis = np.array(draw.axis(len(shape)), draw.pick(np.int64, np.int32))
    return Case([draw.values(dtype, shape, tame=draw.chance(0.8)), axis], flags)


@case("MatMul")
def _mat_mul(draw: Draw, dtype: ir.DataType) -> Case:
    batch = draw.shape(0, 2)
    m, k, n = (draw.between(1, 4) for _ in range(3))
    a, b = (*draw.like(batch), m, k), (*draw.like(batch), k, n)
    if draw.chance(0.2):
        a = (k,)
    elif draw.chance(0.2):
        b = (k,)
    return Case([draw.values(dtype, shape, tame=draw.chance(0.8)) for shape in (a, b)])


@case("ConstantOfShape")
def _constant_of_shape(draw: Draw, dtype: ir.DataType) -> Case:
    chosen = draw.pick(*NUMBERS)
    value = ir.Tensor(draw.values(chosen, (1,)), chosen) if draw.chance(0.8) else None
    return Case([ints(draw.shape())], {} if value is None else {"value": value})


@case("Range")
def _range(draw: Draw, dtype: ir.DataType) -> Case:
    to = dtype.numpy()
    far = draw.pick(0, 0, 0, int(ml_dtypes.iinfo(to).max) - 40 if dtype.is_integer() else 1000)
    numbers = [far + draw.between(0, 20), far + draw.between(0, 20), draw.between(1, 4)]
    if draw.chance():
        numbers = [numbers[0], numbers[1], -numbers[2]]
    if dtype.is_floating_point() and draw.chance(0.3):
        numbers[2] += 0.5
    return Case([np.array(number, to) for number in numbers])


@case("DequantizeLinear")
def _dequantize(draw: Draw, dtype: ir.DataType) -> Case:
    shape = draw.shape(1, empty=False)
    axis = draw.axis(len(shape))
    at = axis % len(shape)
    kind = draw.pick("tensor", "axis", "block")
    block = draw.between(1, shape[at])
    each = {
        "tensor": (),
        "axis": (shape[at],),
        "block": (*shape[:at], -(-shape[at] // block), *shape[at + 1 :]),
    }[kind]
    scale = np.abs(draw.values(draw.pick(ir.DataType.FLOAT, ir.DataType.FLOAT, ir.DataType.FLOAT16), each, tame=True))
    zero = None
    if draw.chance(0.7):
        zero = np.zeros(each, dtype.numpy()) if dtype == ir.DataType.INT32 else draw.values(dtype, each)
    attributes = {"axis": axis, **({"block_size": block} if kind == "block" else {})}
    return Case([draw.values(dtype, shape), scale + scale.dtype.type(0.01), zero], attributes)
