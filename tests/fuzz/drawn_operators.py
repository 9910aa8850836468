"""Nodes drawn at random, on values that a graph has: one function for each family of operators.

Shapes and attributes are only likely to fit: native onnxruntime says whether they do, and then the graph takes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np


class Draft(NamedTuple):
    """A node to be tried."""

    op_type: str
    inputs: list[str]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1


class Values(Protocol):
    """What a graph has to draw from."""

    decide: random.Random

    def value(self, kinds: str = "f", rank: int | None = None, least: int = 0) -> str:
        """Return a value of such a dtype's kind and rank; a new one where there is none."""

    def array(self, name: str) -> np.ndarray:
        """Return its contents."""

    def leaf(self, contents: Any) -> str:
        """Return a new constant, or a new input."""

    def fixed(self, contents: Any) -> str:
        """Return a new constant."""

    def floats(self, *shape: int) -> str:
        """Return a new leaf of numbers."""


Draw = Callable[[Values], Draft]
DRAWS: list[Draw] = []


def _draw(weight: int = 1) -> Callable[[Draw], Draw]:
    def register(function: Draw) -> Draw:
        DRAWS.extend([function] * weight)
        return function

    return register


_CURVES = (
    *(
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Cos",
        "Cosh",
        "Erf",
        "Exp",
        "Floor",
        "Identity",
    ),
    *("HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus"),
    *("Softsign", "Sqrt", "Tan", "Tanh"),
)
_SHAPED_CURVES = {
    "Celu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "Shrink": ("lambd", "bias"),
    "ThresholdedRelu": ("alpha",),
}
_REDUCTIONS = tuple(
    f"Reduce{name}" for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


def _axis(g: Values, name: str) -> int:
    rank = g.array(name).ndim
    return g.decide.randrange(-rank, rank) if rank else 0


def _some_axes(g: Values, name: str) -> list[int]:
    rank = g.array(name).ndim
    axes = g.decide.sample(range(rank), g.decide.randint(0, rank))
    return [axis - rank if g.decide.random() < 0.3 else axis for axis in axes]


def _other_sizes(g: Values, name: str) -> list[int]:
    """A shape that broadcasts to a value's."""
    shape = [d if g.decide.random() < 0.6 else 1 for d in g.array(name).shape]
    return shape[g.decide.randint(0, len(shape)) :] if g.decide.random() < 0.4 else shape


@_draw(3)
def _curve(g: Values) -> Draft:
    return Draft(g.decide.choice(_CURVES), [g.value()])


@_draw()
def _shaped_curve(g: Values) -> Draft:
    op_type = g.decide.choice(list(_SHAPED_CURVES))
    numbers = {
        name: round(g.decide.uniform(0.1, 1.5), 2) for name in _SHAPED_CURVES[op_type] if g.decide.random() < 0.7
    }
    return Draft(op_type, [g.value()], numbers)


@_draw()
def _gelu(g: Values) -> Draft:
    return Draft("Gelu", [g.value()], {"approximate": g.decide.choice(["none", "tanh"])})


@_draw(3)
def _binary(g: Values) -> Draft:
    a = g.value("fi")
    fitting = [g.value("fi") for _ in range(4)]
    same = [b for b in fitting if g.array(b).dtype == g.array(a).dtype and b != a]
    op_type = g.decide.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "Mean", "Sum", "PRelu"])
    if same and op_type != "PRelu" and g.decide.random() < 0.5:  # a slope must not be wider
        b = same[0]
    else:
        shape = _other_sizes(g, a)
        kind = g.array(a).dtype
        b = g.floats(*shape) if kind.kind == "f" else g.leaf(np.full(shape, g.decide.randint(1, 3), kind))
    pair = [a, b] if op_type == "PRelu" or g.decide.random() < 0.6 else [b, a]
    return Draft(op_type, pair, {"fmod": 1} if op_type == "Mod" and g.array(a).dtype.kind == "f" else {})


@_draw()
def _compared(g: Values) -> Draft:
    a = g.value("fi")
    b = g.leaf(np.array(g.decide.choice([0, 1]), g.array(a).dtype))
    return Draft(g.decide.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]), [a, b])


@_draw()
def _logic(g: Values) -> Draft:
    a = g.value("b")
    if g.decide.random() < 0.3:
        return Draft("Not", [a])
    b = g.leaf(np.array([g.decide.random() < 0.5]))
    return Draft(g.decide.choice(["And", "Or", "Xor"]), [a, b])


@_draw()
def _chosen(g: Values) -> Draft:
    condition, a = g.value("b"), g.value("fi")
    b = g.leaf(np.zeros(_other_sizes(g, a), g.array(a).dtype))
    return Draft("Where", [condition, *g.decide.sample([a, b], 2)])


@_draw(2)
def _cast(g: Values) -> Draft:
    return Draft("Cast", [g.value("fib")], {"to": g.decide.choice([1, 1, 1, 6, 7, 9, 2, 3, 10, 11])})


@_draw()
def _clip(g: Values) -> Draft:
    x = g.value("fi")
    low, high = (g.leaf(np.array(n, g.array(x).dtype)) for n in (g.decide.choice([-1, 0]), g.decide.choice([1, 2])))
    return Draft("Clip", [x, *g.decide.choice([[low, high], [low], ["", high]])])


@_draw(3)
def _reduced(g: Values) -> Draft:
    x = g.value("ffi", least=1)
    axes = _some_axes(g, x)
    given = [] if g.decide.random() < 0.2 else [g.fixed(np.array(axes, np.int64))]
    flags = {"keepdims": g.decide.randint(0, 1), "noop_with_empty_axes": g.decide.choice([0, 0, 0, 1])}
    # Of integers onnxruntime computes logarithms of exponentials in integers, each cut off.
    fitting = [name for name in _REDUCTIONS if g.array(x).dtype.kind == "f" or "Log" not in name]
    return Draft(g.decide.choice(fitting), [x, *given], flags)


@_draw()
def _where_most(g: Values) -> Draft:
    x = g.value("f", least=1)
    flags = {"axis": _axis(g, x), "keepdims": g.decide.randint(0, 1), "select_last_index": g.decide.randint(0, 1)}
    return Draft(g.decide.choice(["ArgMax", "ArgMin"]), [x], flags)


@_draw()
def _along_axis(g: Values) -> Draft:
    x = g.value("f", least=1)
    op_type = g.decide.choice(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    return Draft(op_type, [x], {"axis": _axis(g, x)} | ({"p": g.decide.choice([1, 2])} if op_type[0:2] == "Lp" else {}))


@_draw()
def _summed_up(g: Values) -> Draft:
    x = g.value("fi", least=1)
    flags = {"exclusive": g.decide.randint(0, 1), "reverse": g.decide.randint(0, 1)}
    return Draft("CumSum", [x, g.fixed(np.array(_axis(g, x), np.int64))], flags)


@_draw(2)
def _transpose(g: Values) -> Draft:
    x = g.value("fib", least=2)
    perm = g.decide.sample(range(g.array(x).ndim), g.array(x).ndim)
    return Draft("Transpose", [x], {"perm": perm} if g.decide.random() < 0.8 else {})


@_draw(2)
def _reshape(g: Values) -> Draft:
    x = g.value("fib")
    sizes = list(g.array(x).shape)
    for _ in range(g.decide.randint(1, 3)):
        at = g.decide.randint(0, len(sizes))
        if len(sizes) > 1 and g.decide.random() < 0.5:
            at = g.decide.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif sizes and at < len(sizes):
            divisor = g.decide.choice([d for d in range(1, sizes[at] + 1) if sizes[at] % d == 0] or [1])
            sizes[at : at + 1] = [divisor, sizes[at] // divisor]
        else:
            sizes.insert(at, 1)
    if sizes and g.decide.random() < 0.4:
        sizes[g.decide.randrange(len(sizes))] = -1
    return Draft("Reshape", [x, g.fixed(np.array(sizes[:6], np.int64))])


@_draw()
def _flat(g: Values) -> Draft:
    x = g.value("fib")
    return Draft("Flatten", [x], {"axis": g.decide.randint(-g.array(x).ndim, g.array(x).ndim)})


@_draw(2)
def _squeezed(g: Values) -> Draft:
    x = g.value("fib")
    ones = [i for i, d in enumerate(g.array(x).shape) if d == 1]
    if ones and g.decide.random() < 0.5:
        return Draft("Squeeze", [x, g.fixed(np.array(g.decide.sample(ones, g.decide.randint(1, len(ones))), np.int64))])
    return Draft("Unsqueeze", [x, g.fixed(np.array([g.decide.randint(-1, g.array(x).ndim)], np.int64))])


@_draw(2)
def _slice(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axes = [axis for axis in _some_axes(g, x) if g.array(x).shape[axis] > 0][:2] or [0]
    bounds = [-(2**63), -100, -3, -2, -1, 0, 1, 2, 3, 100, 2**31]
    steps = [g.decide.choice([1, 1, 1, 2, 3, -1, -1, -2]) for _ in axes]
    # As an end of negative steps it is onnxruntime's own word for the beginning.
    rows = [[g.decide.choice([*bounds, 2**63 - 1] if step > 0 else bounds) for step in steps] for _ in range(2)]
    parts = [*rows, axes, steps] if g.decide.random() < 0.7 else [*rows, axes]
    return Draft("Slice", [x, *(g.fixed(np.array(part, np.int64)) for part in parts)])


@_draw(2)
def _pad(g: Values) -> Draft:
    x = g.value("fi", least=1)
    mode = g.decide.choice(["constant", "constant", "edge", "reflect", "wrap"])
    pads = [g.decide.choice([0, 0, 1, 2, -1] if mode == "constant" else [0, 0, 1]) for _ in range(2 * g.array(x).ndim)]
    more = [g.leaf(np.array(2, g.array(x).dtype))] if mode == "constant" and g.decide.random() < 0.5 else []
    return Draft("Pad", [x, g.fixed(np.array(pads, np.int64)), *more], {"mode": mode})


@_draw()
def _expanded(g: Values) -> Draft:
    x = g.value("fib")
    sizes = [d if d > 1 else g.decide.randint(1, 3) for d in g.array(x).shape]
    sizes = [g.decide.randint(1, 2), *sizes] if g.decide.random() < 0.3 else sizes
    return Draft("Expand", [x, g.fixed(np.array(sizes, np.int64))])


@_draw()
def _tiled(g: Values) -> Draft:
    x = g.value("fib", least=1)
    return Draft("Tile", [x, g.fixed(np.array([g.decide.randint(1, 2) for _ in g.array(x).shape], np.int64))])


@_draw(2)
def _concat(g: Values) -> Draft:
    x = g.value("fi", least=1)
    axis = _axis(g, x)
    shape = list(g.array(x).shape)
    shape[axis] = g.decide.randint(1, 3)
    other = x if g.decide.random() < 0.3 else g.leaf(np.ones(shape, g.array(x).dtype))
    return Draft("Concat", g.decide.sample([x, other], 2), {"axis": axis})


@_draw()
def _split(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axis = _axis(g, x)
    size = g.array(x).shape[axis]
    if size < 2:
        return Draft("Identity", [x])
    if g.decide.random() < 0.4:
        return Draft("Split", [x], {"axis": axis, "num_outputs": 2}, 2)
    at = g.decide.randint(0, size)
    return Draft("Split", [x, g.fixed(np.array([at, size - at], np.int64))], {"axis": axis}, 2)


@_draw(2)
def _gather(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axis = _axis(g, x)
    size = max(g.array(x).shape[axis], 1)
    op_type = g.decide.choice(["Gather", "Gather", "GatherElements"])
    rank = g.array(x).ndim
    shape = [g.decide.randint(1, 2)] * g.decide.randint(0, 2) if op_type == "Gather" else [1] * rank
    picked = np.array([g.decide.randrange(-size, size) for _ in range(int(np.prod(shape)))], np.int64)
    return Draft(op_type, [x, g.leaf(picked.reshape(shape))], {"axis": axis})


@_draw()
def _scattered(g: Values) -> Draft:
    x = g.value("f", least=1)
    axis, size = _axis(g, x), 1
    size = max(g.array(x).shape[axis], 1)
    shape = [1] * g.array(x).ndim
    at = g.leaf(np.full(shape, g.decide.randrange(-size, size), np.int64))
    reduction = g.decide.choice(["none", "add", "mul", "max", "min"])
    return Draft("ScatterElements", [x, at, g.floats(*shape)], {"axis": axis, "reduction": reduction})


@_draw()
def _most(g: Values) -> Draft:
    x = g.value("fi", least=1)
    axis = _axis(g, x)
    k = g.decide.randint(1, max(g.array(x).shape[axis], 1))
    flags = {"axis": axis, "largest": g.decide.randint(0, 1), "sorted": 1}
    return Draft("TopK", [x, g.fixed(np.array([k], np.int64))], flags, 2)


@_draw()
def _sizes(g: Values) -> Draft:
    x = g.value("fib")
    bounds = {"start": g.decide.randint(-2, 1)} if g.decide.random() < 0.4 else {}
    return Draft("Shape", [x], bounds) if g.decide.random() < 0.8 else Draft("Size", [x])


@_draw()
def _triangle(g: Values) -> Draft:
    x = g.value("fi", least=2)
    more = [g.fixed(np.array(g.decide.randint(-2, 2), np.int64))] if g.decide.random() < 0.6 else []
    return Draft("Trilu", [x, *more], {"upper": g.decide.randint(0, 1)})


@_draw()
def _block_of_depth(g: Values) -> Draft:
    n, h, w = (g.decide.randint(1, 3) for _ in range(3))
    if g.decide.random() < 0.5:
        mode = g.decide.choice(["DCR", "CRD"])
        return Draft("DepthToSpace", [g.floats(n, 4 * h, h, w)], {"blocksize": 2, "mode": mode})
    return Draft("SpaceToDepth", [g.floats(n, w, 2 * h, 2 * w)], {"blocksize": 2})


@_draw(3)
def _product(g: Values) -> Draft:
    x = g.value("f", least=1)
    shape = g.array(x).shape
    columns = g.decide.randint(1, 5)
    batch = list(shape[:-2]) if g.decide.random() < 0.3 else []
    other = [shape[-1]] if g.decide.random() < 0.2 else [*batch, shape[-1], columns]
    return Draft("MatMul", [x, g.floats(*other)])


@_draw()
def _gemm(g: Values) -> Draft:
    x = g.value("f", rank=2)
    rows, inner = g.array(x).shape
    columns = g.decide.randint(1, 5)
    transposed = g.decide.randint(0, 1)
    bias = g.decide.choice([[], [columns], [1, columns], [rows, 1], [1], [rows, columns]])
    more = [g.floats(*bias)] if bias else []
    flags = {"transB": transposed, "alpha": g.decide.choice([1.0, 0.5]), "beta": g.decide.choice([1.0, 2.0])}
    return Draft("Gemm", [x, g.floats(*([columns, inner] if transposed else [inner, columns])), *more], flags)


@_draw()
def _einsum(g: Values) -> Draft:
    x = g.value("f", rank=2)
    b = g.array(x).shape[1]
    return Draft("Einsum", [x, g.floats(b, 3)], {"equation": g.decide.choice(["ij,jk->ik", "ij,jk->ki", "ij,jk->i"])})


def _windows(g: Values, spatial: int) -> dict[str, Any]:
    kernel = [g.decide.randint(1, 3) for _ in range(spatial)]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if g.decide.random() < 0.5:
        found["strides"] = [g.decide.randint(1, 2) for _ in kernel]
    if g.decide.random() < 0.2:
        found["auto_pad"] = g.decide.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif g.decide.random() < 0.6:
        found["pads"] = [g.decide.randint(0, k - 1) for k in kernel * 2]
    if g.decide.random() < 0.2:
        found["dilations"] = [g.decide.randint(1, 2) for _ in kernel]
    return found


@_draw(3)
def _convolution(g: Values) -> Draft:
    spatial = g.decide.choice([1, 2, 2, 2, 3])
    x = g.value("f", rank=spatial + 2)
    channels = g.array(x).shape[1]
    windows = _windows(g, spatial)
    group = g.decide.choice([1, 1, channels])
    if g.decide.random() < 0.25:
        each = g.decide.randint(1, 3)
        weights = g.floats(channels, each, *windows["kernel_shape"])
        return Draft("ConvTranspose", [x, weights, *_bias(g, each * group)], windows | {"group": group})
    outputs = group * g.decide.randint(1, 3)
    weights = g.floats(outputs, channels // max(group, 1), *windows["kernel_shape"])
    return Draft("Conv", [x, weights, *_bias(g, outputs)], windows | {"group": group})


def _bias(g: Values, count: int) -> list[str]:
    return [g.floats(count)] if g.decide.random() < 0.5 else []


@_draw(2)
def _pool(g: Values) -> Draft:
    spatial = g.decide.choice([1, 2, 2, 3])
    x = g.value("f", rank=spatial + 2)
    windows = _windows(g, spatial) | {"ceil_mode": g.decide.choice([0, 0, 1])}
    spread = windows.get("dilations", [1] * spatial)
    if any(
        (k - 1) * d >= size for k, d, size in zip(windows["kernel_shape"], spread, g.array(x).shape[2:], strict=True)
    ):
        windows = {"kernel_shape": [1] * spatial}  # of windows larger than the image every runtime makes something else
    op_type = g.decide.choice(["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    if op_type == "AveragePool":
        windows["count_include_pad"] = g.decide.randint(0, 1)
    return Draft(op_type, [x], windows, 2 if op_type == "MaxPool" and g.decide.random() < 0.2 else 1)


@_draw()
def _whole_pool(g: Values) -> Draft:
    x = g.value("f", rank=g.decide.choice([3, 4, 5]))
    return Draft(g.decide.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x])


@_draw(2)
def _normalized(g: Values) -> Draft:
    x = g.value("f", rank=g.decide.choice([3, 4]))
    shape = g.array(x).shape
    channels, op_type = shape[1], g.decide.choice(["Batch", "Instance", "Layer", "LRN", "Group", "MeanVariance"])
    if op_type == "Batch":
        variance = g.fixed(np.linspace(0.5, 1.5, channels, dtype=np.float32))
        return Draft("BatchNormalization", [x, g.floats(channels), g.floats(channels), g.floats(channels), variance])
    if op_type == "Instance":
        return Draft("InstanceNormalization", [x, g.floats(channels), g.floats(channels)])
    if op_type == "Layer":
        axis = g.decide.randrange(1, len(shape))
        return Draft("LayerNormalization", [x, g.floats(*shape[axis:]), *_bias(g, 1)[:0]], {"axis": axis})
    if op_type == "LRN":
        return Draft("LRN", [x], {"size": g.decide.choice([1, 3, 5]), "alpha": 0.5})
    if op_type == "Group":
        groups = g.decide.choice([d for d in range(1, channels + 1) if channels % d == 0] or [1])
        return Draft("GroupNormalization", [x, g.floats(channels), g.floats(channels)], {"num_groups": groups})
    return Draft("MeanVarianceNormalization", [x], {"axes": g.decide.choice([[0, 2], [0, 1, 2], [2]])})


@_draw(2)
def _resized(g: Values) -> Draft:
    x = g.value("f", rank=g.decide.choice([3, 4]))
    shape = g.array(x).shape
    mode = g.decide.choice(["nearest", "linear", "cubic"] if len(shape) == 4 else ["nearest", "linear"])
    places = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
    flags = {"mode": mode, "coordinate_transformation_mode": g.decide.choice(places)}
    if mode == "nearest":
        flags["nearest_mode"] = g.decide.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    free = [1] * (len(shape) - 2)
    if g.decide.random() < 0.5:
        scales = [1, 1, *(g.decide.choice([0.5, 1, 1.5, 2, 3]) for _ in free)]
        return Draft("Resize", [x, "", g.fixed(np.array(scales, np.float32))], flags)
    sizes = [*shape[:2], *(g.decide.randint(1, 6) for _ in free)]
    return Draft("Resize", [x, "", "", g.fixed(np.array(sizes, np.int64))], flags)


@_draw()
def _quantized(g: Values) -> Draft:
    x = g.value("f")
    kind = g.decide.choice([np.uint8, np.int8])
    return Draft("QuantizeLinear", [x, g.fixed(np.float32(0.03)), g.fixed(kind(g.decide.choice([0, 3])))])


@_draw()
def _dequantized(g: Values) -> Draft:
    x = g.value("q")
    return Draft("DequantizeLinear", [x, g.fixed(np.float32(0.03)), g.fixed(g.array(x).dtype.type(1))])


@_draw()
def _integer_product(g: Values) -> Draft:
    rows, inner, columns = (g.decide.randint(1, 5) for _ in range(3))
    a, b = (
        g.leaf(np.arange(rows * inner, dtype=np.uint8).reshape(rows, inner)),
        np.arange(inner * columns, dtype=np.int8),
    )
    return Draft("MatMulInteger", [a, g.leaf(b.reshape(inner, columns)), g.fixed(np.uint8(2)), g.fixed(np.int8(1))])


@_draw()
def _one_hot(g: Values) -> Draft:
    x = g.leaf(np.array([g.decide.randint(-2, 3) for _ in range(g.decide.randint(1, 4))], np.int64))
    return Draft(
        "OneHot", [x, g.fixed(np.int64(4)), g.fixed(np.array([0, 1], np.float32))], {"axis": g.decide.choice([0, -1])}
    )


@_draw()
def _recurrent(g: Values) -> Draft:
    op_type, gates = g.decide.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    steps, batch, width, hidden = (g.decide.randint(1, 3) for _ in range(4))
    direction = g.decide.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    x, w, r = (
        g.floats(steps, batch, width),
        g.floats(ways, gates * hidden, width),
        g.floats(ways, gates * hidden, hidden),
    )
    more = [g.floats(ways, 2 * gates * hidden)] if g.decide.random() < 0.5 else [""]
    if g.decide.random() < 0.3:
        more.append(g.leaf(np.array([g.decide.randint(1, steps) for _ in range(batch)], np.int32)))
    flags: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    return Draft(op_type, [x, w, r, *more], flags, g.decide.choice([1, 2]))


@_draw()
def _attention(g: Values) -> Draft:
    heads, size, queries, keys = 2, g.decide.choice([2, 4]), g.decide.randint(1, 3), g.decide.randint(1, 4)
    q, k, v = (g.floats(1, heads, length, size) for length in (queries, keys, keys))
    return Draft("Attention", [q, k, v], {"is_causal": g.decide.choice([0, 0, 1])})
