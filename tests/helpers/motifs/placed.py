"""Motifs whose rewriting depends on what a provider has: integers, chains, columns."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto
from random_graphs import RandomGraph, Shape

from motifs.motif import Motifs, image_of, rows_of

MOTIFS = Motifs()


@MOTIFS.motif("transposed_operands", integers=True)
def _heads_in_place(g: RandomGraph, x: str, shape: Shape) -> str:
    """Attention of two heads that no pass recognizes."""
    rows, (n, h, _) = rows_of(g, x, shape, 8)
    apart, scores = (n, h, 2, 4), (n, 2, h, h)
    q, k, v = (g.op("Reshape", [g.op(f, [rows], (n, h, 8)), g.ints(0, 0, 2, 4)], apart) for f in ("Sin", "Cos", "Tanh"))
    q, v = (g.op("Transpose", [each], (n, 2, h, 4), perm=[0, 2, 1, 3]) for each in (q, v))
    k = g.op("Transpose", [k], (n, 2, 4, h), perm=[0, 2, 3, 1])
    weights = g.op("Sigmoid", [g.op("MatMul", [q, k], scores)], scores)
    return g.op("Transpose", [g.op("MatMul", [weights, v], (n, 2, h, 4))], apart, perm=[0, 2, 1, 3])


@MOTIFS.motif("quantized", provider="wasm", integers=True)
def _quantized(g: RandomGraph, x: str, shape: Shape) -> str:
    both = [_rounded(g, each, 1 / 64, shape) for each in (x, g.op("Sin", [x], shape))]
    return _rounded(g, g.op("Add", both, shape), 1 / 32, shape)


@MOTIFS.motif("byte_tables", provider="wasm", integers=True)
def _byte_table(g: RandomGraph, x: str, shape: Shape) -> str:
    wide = _rounded(g, x, 1 / 64, shape)
    return _rounded(g, g.op("Add", [wide, wide], shape), 1 / 32, shape)


def _rounded(g: RandomGraph, value: str, steps: float, made: Shape) -> str:
    given = [g.number(steps), g.constant(np.int8(-20))]
    integers = g.op("QuantizeLinear", [value, *given], made)
    return g.op("DequantizeLinear", [integers, *given], made)


@MOTIFS.motif("round_trips", "quantized_ends", integers=True)
def _round_trips(g: RandomGraph, x: str, shape: Shape) -> str:
    """Halves that are joined in the steps of one of them; the other is rounded twice."""
    half = (shape[0], 3, *shape[2:])
    parts = [
        _rounded(g, g.op("Relu", [g.op("Conv", [x, g.floats(3, shape[1], 1, 1)], half)], half), steps, half)
        for steps in (1 / 16, 1 / 24)
    ]
    whole = (shape[0], 6, *shape[2:])
    joined = _rounded(g, g.op("Concat", parts, whole, axis=1), 1 / 16, whole)
    return _rounded(g, g.op("MaxPool", [joined], whole, kernel_shape=[1, 1]), 1 / 16, whole)


@MOTIFS.motif("quantized_ends", integers=True)
def _rounded_sums(g: RandomGraph, x: str, shape: Shape) -> str:
    """A product's rounded result, and nodes before and after it."""
    weights = [g.floats(shape[1], shape[1], 1, 1) for _ in range(2)]
    first, second = (_rounded(g, g.op("Conv", [x, each], shape), 1 / 16, shape) for each in weights)
    total = _rounded(g, g.op("Add", [second, first], shape), 1 / 12, shape)
    behind = g.op("Sin", [total], shape)
    product = _rounded(g, g.op("Conv", [total, weights[0]], shape), 1 / 16, shape)
    return _rounded(g, g.op("Relu", [g.op("Add", [product, behind], shape)], shape), 1 / 12, shape)


def _ended(g: RandomGraph, sums: str, scale: str, made: Shape) -> str:
    """The sums of a product of integers as floats."""
    floats = g.op("Cast", [sums], made, to=TensorProto.FLOAT)
    return g.op("Mul", [floats, g.op("Mul", [scale, g.number(0.01)], ())], made)


def _dynamic_product(g: RandomGraph, x: str, shape: Shape, width: int = 8, columns: int = 6) -> str:
    rows, made = rows_of(g, x, shape, width)
    integers, scale, zero = g.add("DynamicQuantizeLinear", [rows], [made, (), ()])
    weights = g.constant(g.numbers.integers(-24, 24, (width, columns)).astype(np.int8))
    result = (*made[:2], columns)
    scaled = _ended(g, g.op("MatMulInteger", [integers, weights, zero], result), scale, result)
    return g.op("Add", [g.floats(columns), scaled], result)


MOTIFS.motif("dynamic_products", provider="wasm", integers=True)(_dynamic_product)


@MOTIFS.motif("dynamic_products", integers=True)
def _dynamic_products_of_floats(g: RandomGraph, x: str, shape: Shape) -> str:
    """A convolution that pads with the zero point, and a product."""
    integers, scale, zero = g.add("DynamicQuantizeLinear", [x], [shape, (), ()])
    weights = g.constant(np.arange(18 * shape[1]).reshape(2, shape[1], 3, 3).astype(np.uint8))
    made = (shape[0], 2, *shape[2:])
    sums = g.op("ConvInteger", [integers, weights, zero, g.constant(np.uint8(7))], made, pads=[1, 1, 1, 1])
    return _dynamic_product(g, _ended(g, sums, scale, made), made)


@MOTIFS.motif("dequantized_weights", integers=True)
def _dequantized(g: RandomGraph, x: str, shape: Shape) -> str:
    few = g.op("ReduceMean", [x, g.ints(1, 2, 3)], (shape[0], 1, 1, 1))
    wide = g.op("Mul", [few, g.floats(512)], (shape[0], 1, 1, 512))
    weights = g.constant(np.arange(1 << 18).reshape(512, 512).astype(np.int8))
    made = g.op("DequantizeLinear", [weights, g.constant(np.full(512, 0.01, np.float32))], (512, 512), axis=1)
    return g.op("MatMul", [wide, made], (shape[0], 1, 1, 512))


@MOTIFS.motif("byte_convolutions", integers=True)
def _rounded_pixels(g: RandomGraph, x: str, shape: Shape) -> str:
    """After a pool, which keeps the steps; the second one's weights have zero points."""
    made = (shape[0], 3, *shape[2:])
    pixels = g.op("MaxPool", [_rounded(g, x, 1 / 16, shape)], shape, kernel_shape=[1, 1])
    for zeros, channels in ((np.zeros(3, np.int8), shape[1]), (np.arange(3, dtype=np.int8), 3)):
        weights = g.constant(g.numbers.integers(-99, 99, (3, channels, 1, 1)).astype(np.int8))
        given = [weights, g.constant(np.array([0.01, 0.02, 0.03], np.float32)), g.constant(zeros)]
        floats = g.op("DequantizeLinear", given, (3, channels, 1, 1), axis=0)
        pixels = _rounded(g, g.op("Conv", [pixels, floats], made), 1 / 11, made)
    return pixels


@MOTIFS.motif("product_parts", integers=True)
def _deep_product(g: RandomGraph, x: str, shape: Shape) -> str:
    """With a bias, and a residual that comes first."""
    rows, made = rows_of(g, x, shape, 16)
    wide = g.op("MatMul", [rows, g.floats(16, 2048)], (*made[:-1], 2048))
    product = g.op("Add", [g.op("MatMul", [wide, g.floats(2048, 16)], made), g.floats(16)], made)
    total = g.op("Add", [g.op("Sin", [rows], made), product], made)
    return g.op("LayerNormalization", [total, g.floats(16), g.floats(16)], made)


@MOTIFS.motif("byte_rows", "activation", integers=True)
def _dynamic_rows(g: RandomGraph, x: str, shape: Shape) -> str:
    made = (shape[0], shape[2], 64)
    return g.op("Tanh", [_dynamic_product(g, x, shape, 64, 64)], made)


@MOTIFS.motif("byte_rows", "quantized_ends", "byte_words", integers=True)
def _rounded_rows(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = rows_of(g, x, shape, 64)
    weights = g.constant(g.numbers.integers(-24, 24, (64, 64)).astype(np.int8))
    floats = g.op("DequantizeLinear", [weights, g.number(0.0137)], (64, 64))  # few sums are halfway between steps
    product = g.op("MatMul", [_rounded(g, rows, 1 / 16, made), floats], made)
    return _rounded(g, product, 1 / 16, made)


def _block_product(g: RandomGraph, x: str, made: Shape, width: int, columns: int) -> str:
    """With random weights of 4 bits."""
    bytes_of = g.numbers.integers(0, 256, (columns, width // 16, 8)).astype(np.uint8)
    scales = (g.numbers.random(columns * width // 16) * 0.02).astype(np.float32)
    inputs = [x, g.constant(bytes_of), g.constant(scales)]
    given = {"K": width, "N": columns, "bits": 4, "block_size": 16, "domain": "com.microsoft"}
    product = g.op("MatMulNBits", inputs, (*made[:2], columns), **given)
    return g.op("Add", [product, g.floats(columns)], (*made[:2], columns)) if g.chance() else product


@MOTIFS.motif("linear", "packed_gates", "block_ends", integers=True)
def _gated_block(g: RandomGraph, x: str, shape: Shape) -> str:
    """As between the attentions of language models."""
    rows, made = rows_of(g, x, shape, 32)
    normed = g.op("SimplifiedLayerNormalization", [rows, g.floats(32)], made, epsilon=1e-3, axis=-1, stash_type=1)
    gate, up = (_block_product(g, normed, made, 32, 48) for _ in range(2))
    wide = (*made[:2], 48)
    function = g.pick("Sigmoid", "Tanh")
    activated = g.op(function, [gate], wide)
    if function == "Sigmoid":
        activated = g.op("Mul", [gate, activated], wide)
    product = g.op("Mul", [activated, up] if g.chance() else [up, activated], wide)
    down = _block_product(g, product, made, 48, 32)
    return g.op("Abs", [g.op("Add", [down, rows] if g.chance() else [rows, down], made)], made)


@MOTIFS.motif("elementwise_chains", chains=True)
def _chain(g: RandomGraph, x: str, shape: Shape) -> str:
    for op_type in ("Abs", "Sqrt", "Neg", "Tanh"):
        x = g.op(op_type, [x], shape)
    return x


@MOTIFS.motif("columns", "sibling_convolutions", columns=True)
def _columns(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = image_of(g, x, shape, 4)
    branches = [
        g.op("Conv", [image, g.floats(4, 4, 1, 1)], made),
        *(
            g.op("Conv", [g.op("Conv", [image, g.floats(4, 4, 1, 1)], made), g.floats(4, 4, 3, 3)], made, pads=[1] * 4)
            for _ in range(2)
        ),
    ]
    return g.op("Concat", branches, (made[0], 12, *made[2:]), axis=1)
