"""Products, windows, normalizations and other operators of networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from drawn_operators.draft import Draft, Draws, Values

DRAWS = Draws()


@DRAWS.weighted(3)
def _product(g: Values) -> Draft:
    x = g.value("f", least=1)
    shape = g.array(x).shape
    columns = g.decide.randint(1, 5)
    batch = list(shape[:-2]) if g.decide.random() < 0.3 else []
    other = [shape[-1]] if g.decide.random() < 0.2 else [*batch, shape[-1], columns]
    return Draft("MatMul", [x, g.floats(*other)])


@DRAWS.weighted()
def _gemm(g: Values) -> Draft:
    x = g.value("f", rank=2)
    rows, inner = g.array(x).shape
    columns = g.decide.randint(1, 5)
    transposed = g.decide.randint(0, 1)
    bias = g.decide.choice([[], [columns], [1, columns], [rows, 1], [1], [rows, columns]])
    more = [g.floats(*bias)] if bias else []
    flags = {"transB": transposed, "alpha": g.decide.choice([1.0, 0.5]), "beta": g.decide.choice([1.0, 2.0])}
    return Draft("Gemm", [x, g.floats(*([columns, inner] if transposed else [inner, columns])), *more], flags)


@DRAWS.weighted()
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


@DRAWS.weighted(3)
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


@DRAWS.weighted(2)
def _pool(g: Values) -> Draft:
    spatial = g.decide.choice([1, 2, 2, 3])
    x = g.value("f", rank=spatial + 2)
    windows = _windows(g, spatial) | {"ceil_mode": g.decide.choice([0, 0, 1])}
    spread = windows.get("dilations", [1] * spatial)
    if any(
        (k - 1) * d >= size for k, d, size in zip(windows["kernel_shape"], spread, g.array(x).shape[2:], strict=True)
    ):
        # with windows larger than the image every runtime returns something else
        windows = {"kernel_shape": [1] * spatial}
    op_type = g.decide.choice(["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    if op_type == "AveragePool":
        windows["count_include_pad"] = g.decide.randint(0, 1)
    return Draft(op_type, [x], windows, 2 if op_type == "MaxPool" and g.decide.random() < 0.2 else 1)


@DRAWS.weighted()
def _whole_pool(g: Values) -> Draft:
    x = g.value("f", rank=g.decide.choice([3, 4, 5]))
    return Draft(g.decide.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x])


@DRAWS.weighted(2)
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


@DRAWS.weighted(2)
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


@DRAWS.weighted()
def _quantized(g: Values) -> Draft:
    x = g.value("f")
    kind = g.decide.choice([np.uint8, np.int8])
    return Draft("QuantizeLinear", [x, g.fixed(np.float32(0.03)), g.fixed(kind(g.decide.choice([0, 3])))])


@DRAWS.weighted()
def _dequantized(g: Values) -> Draft:
    x = g.value("q")
    return Draft("DequantizeLinear", [x, g.fixed(np.float32(0.03)), g.fixed(g.array(x).dtype.type(1))])


@DRAWS.weighted()
def _integer_product(g: Values) -> Draft:
    rows, inner, columns = (g.decide.randint(1, 5) for _ in range(3))
    a, b = (
        g.leaf(np.arange(rows * inner, dtype=np.uint8).reshape(rows, inner)),
        np.arange(inner * columns, dtype=np.int8),
    )
    return Draft("MatMulInteger", [a, g.leaf(b.reshape(inner, columns)), g.fixed(np.uint8(2)), g.fixed(np.int8(1))])


@DRAWS.weighted()
def _one_hot(g: Values) -> Draft:
    x = g.leaf(np.array([g.decide.randint(-2, 3) for _ in range(g.decide.randint(1, 4))], np.int64))
    return Draft(
        "OneHot", [x, g.fixed(np.int64(4)), g.fixed(np.array([0, 1], np.float32))], {"axis": g.decide.choice([0, -1])}
    )


@DRAWS.weighted()
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


@DRAWS.weighted()
def _attention(g: Values) -> Draft:
    heads, size, queries, keys = 2, g.decide.choice([2, 4]), g.decide.randint(1, 3), g.decide.randint(1, 4)
    q, k, v = (g.floats(1, heads, length, size) for length in (queries, keys, keys))
    return Draft("Attention", [q, k, v], {"is_causal": g.decide.choice([0, 0, 1])})
