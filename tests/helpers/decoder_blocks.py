"""Blocks of decoders besides Llama's: GPT-2, GPT-J, BLOOM, T5, Whisper, and torch.export's for opset 23."""

from __future__ import annotations

import numpy as np
import onnx
from transformer_blocks import FLOAT, INT64, LEAST, Block


def gpt2(*, cache: bool = True, padded: bool = False) -> onnx.ModelProto:
    """Queries, keys and values by one Gemm; a table of 32 x 32 bools, cut, says which keys are visible."""
    g = Block(4, 4)
    x = g.rows()
    flat = g.op("Reshape", g.layer_norm(x, g.width), g.ints(-1, g.width))
    packed = g.op("Gemm", flat, g.weights(g.width, 3 * g.width), g.weights(3 * g.width))
    packed = g.op("Reshape", packed, g.shape(g.size_of(x, 0), g.size_of(x, 1), 3 * g.width))
    q, k, v = (g.split_heads(part, 4) for part in g.ops("Split", packed, g.ints(*[g.width] * 3), outputs=3, axis=2))
    if cache:
        k, v = g.cached(k, "key"), g.cached(v, "value")
    scores = g.op("Div", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.constant(g.size**0.5))
    keys, queries = g.size_of(k, -2), g.size_of(q, -2)
    table = g.constant(np.tril(np.ones((1, 1, 32, 32))), bool)
    seen = g.slice(g.slice(table, 2, g.op("Sub", keys, queries), keys), 3, 0, keys)
    scores = g.op("Where", seen, scores, g.constant(LEAST))
    if padded:
        wide = g.op("Cast", g.unsqueeze(g.input("attention_mask", INT64, ["batch", "total"]), 1, 2), to=FLOAT)
        scores = g.op("Add", scores, g.op("Mul", g.op("Sub", g.constant(1.0), wide), g.constant(LEAST)))
    x = g.op("Add", g.linear(g.join_heads(g.op("MatMul", g.op("Softmax", scores, axis=-1), v)), g.width, g.width), x)
    h = g.linear(g.layer_norm(x, g.width), g.width, 2 * g.width)
    g.output(g.op("Add", g.linear(g.gelu_new(h), 2 * g.width, g.width), x), "y", 3)
    return g.model()


def gptj(*, rotary_size: int = 4) -> onnx.ModelProto:
    """Neighbors rotate, in the first `rotary_size` of 8 elements, before heads become the first axis."""
    g = Block(2, 8)
    x = g.rows()
    places = g.input("position_ids", INT64, ["batch", "sequence"])
    angles = np.outer(np.arange(32), 10.0 ** -(np.arange(rotary_size // 2) / rotary_size))
    rows = g.op("Gather", g.constant(np.concatenate([np.sin(angles), np.cos(angles)], 1)), places)
    sin, cos = (
        g.unsqueeze(part, 2)
        for part in g.ops("Split", rows, g.ints(rotary_size // 2, rotary_size // 2), outputs=2, axis=-1)
    )

    def twice(t: str) -> str:
        five = g.op("Expand", g.unsqueeze(t, 4), g.ints(1, 1, 1, 1, 2))
        return g.op("Reshape", five, g.shape(g.size_of(places, 0), g.size_of(places, 1), 1, rotary_size))

    def rotated(t: str) -> str:
        front = g.slice(t, 3, 0, rotary_size) if rotary_size < g.size else t
        even, odd = g.slice(front, 3, 0, step=2), g.slice(front, 3, 1, step=2)
        pairs = g.op("Concat", g.unsqueeze(g.op("Neg", odd), -1), g.unsqueeze(even, -1), axis=-1)
        crossed = g.op("Reshape", pairs, g.shape(g.size_of(t, 0), g.size_of(t, 1), 2, rotary_size))
        whole = g.op("Add", g.op("Mul", front, twice(cos)), g.op("Mul", crossed, twice(sin)))
        if rotary_size < g.size:
            whole = g.op("Concat", whole, g.slice(t, 3, rotary_size), axis=-1)
        return g.transpose(whole, 0, 2, 1, 3)

    q, k, v = (g.split_heads(g.linear(x, g.width, g.width, bias=False), 2, transposed=False) for _ in range(3))
    q, k, v = rotated(q), rotated(k), g.transpose(v, 0, 2, 1, 3)
    scores = g.op("Div", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.constant(g.size**0.5))
    context = g.op("MatMul", g.op("Softmax", g.op("Add", scores, g.causal_of(q, k)), axis=-1), v)
    g.output(g.linear(g.join_heads(context), g.width, g.width), "y", 3)
    return g.model()


def bloom(*, floor: bool = False) -> onnx.ModelProto:
    """Heads next to their keys and values in one projection; a bias by key on stacked scores; a mask by head.

    `floor` keeps masked scores finite, as OPT's attention does.
    """
    g = Block(2, 8)
    x = g.rows()
    batch, places = g.size_of(x, 0), g.size_of(x, 1)
    packed = g.op("Reshape", g.linear(x, g.width, 3 * g.width), g.shape(batch, places, 2, 3, g.size))
    parts = (g.op("Gather", packed, g.constant(i, np.int64), axis=3) for i in range(3))
    q, k, v = (g.transpose(part, 0, 2, 1, 3) for part in parts)
    k, v = g.cached(k, "key"), g.cached(v, "value")
    mask = g.decoder_mask(x, g.size_of(k, 2))
    count = g.op("CumSum", "attention_mask", g.constant(-1, np.int64))
    far = g.op("Mul", g.constant([[0.5], [0.25]]), g.op("Cast", g.unsqueeze(count, 1), to=FLOAT))
    bias = g.op("Reshape", far, g.shape(g.op("Mul", batch, g.ints(2)), 1, -1))
    q, k, v = (g.stack(t) for t in (q, k, v))
    scores = g.op("Add", bias, g.op("Mul", g.op("MatMul", q, g.transpose(k, 0, 2, 1)), g.constant(g.size**-0.5)))
    scores = g.op("Add", g.op("Reshape", scores, g.shape(batch, 2, places, -1)), mask)
    scores = g.op("Max", scores, g.constant(LEAST)) if floor else scores
    weights = g.op("Reshape", g.op("Softmax", scores, axis=-1), g.shape(g.op("Mul", batch, g.ints(2)), places, -1))
    mixed = g.op("Reshape", g.op("MatMul", weights, v), g.shape(batch, 2, places, g.size))
    g.output(g.op("Add", g.linear(g.join_heads(mixed), g.width, g.width), x), "y", 3)
    return g.model()


def falcon() -> onnx.ModelProto:
    """One head of keys and one of values, after those of queries in one projection, selected by index."""
    g = Block(4, 8, 1)
    x = g.rows()
    packed = g.linear(x, g.width, 6 * g.size, bias=False)
    packed = g.op("Reshape", packed, g.shape(g.size_of(x, 0), g.size_of(x, 1), 6, g.size))
    k, v = (g.transpose(g.op("Gather", packed, g.ints(at), axis=2), 0, 2, 1, 3) for at in (-2, -1))
    q = g.transpose(g.slice(packed, 2, 0, -2), 0, 2, 1, 3)
    scores = g.op("Mul", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.constant(g.size**-0.5))
    context = g.op("MatMul", g.op("Softmax", g.op("Add", scores, g.causal_of(q, k)), axis=-1), v)
    g.output(g.op("Add", g.linear(g.join_heads(context), g.width, g.width, bias=False), x), "y", 3)
    return g.model()


def t5() -> onnx.ModelProto:
    """Without a scale; adds a bias by distance (here the distance itself selects it, up to 8 on either side)."""
    g = Block(2, 8)
    x = g.rows()
    h = g.rms_norm(x, g.width)
    q, k, v = (g.split_heads(g.linear(h, g.width, g.width, bias=False), 2) for _ in range(3))
    end = g.op("Squeeze", g.size_of(x, 1), g.ints(0))
    places = g.op("Range", g.constant(0, np.int64), end, g.constant(1, np.int64))
    distance = g.op("Sub", g.unsqueeze(places, 0), g.unsqueeze(places, 1))
    near = g.op("Clip", distance, g.constant(-8, np.int64), g.constant(8, np.int64))
    bias = g.op("Gather", g.weights(17, 2), g.op("Add", near, g.constant(8, np.int64)))
    bias = g.unsqueeze(g.transpose(bias, 2, 0, 1), 0)
    scores = g.op("Add", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), bias)
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    x = g.op("Add", x, g.linear(g.join_heads(context), g.width, g.width, bias=False))
    wide = g.linear(g.rms_norm(x, g.width), g.width, 2 * g.width, bias=False)
    g.output(g.op("Add", x, g.linear(g.op("Relu", wide), 2 * g.width, g.width, bias=False)), "y", 3)
    return g.model()


def whisper(*, masked: bool = True) -> onnx.ModelProto:
    """Products of heads stacked on the batch: attention to itself, with a cache, then to an encoder's keys by head."""
    g = Block(2, 8)
    x = g.rows()

    def attention(x: str, own: bool) -> str:
        q = g.op("Mul", g.linear(x, g.width, g.width), g.constant(g.size**-0.5))
        if own:
            k, v = (g.split_heads(g.linear(x, g.width, g.width, bias=b), 2) for b in (False, True))
            k, v = g.cached(k, "key"), g.cached(v, "value")
        else:
            k, v = (g.input(f"encoder_{n}", FLOAT, ["batch", 2, "frames", g.size]) for n in ("key", "value"))
        batch, places = g.size_of(x, 0), g.size_of(x, 1)
        keys = g.size_of(k, 2)
        q, k, v = (g.stack(t) for t in (g.split_heads(q, 2), k, v))
        scores = g.op("MatMul", q, g.transpose(k, 0, 2, 1))
        if own and masked:
            four = g.op("Reshape", scores, g.shape(batch, 2, places, keys))
            given = g.op("Add", four, g.input("mask", FLOAT, ["batch", 1, "sequence", "total"]))
            scores = g.op("Reshape", given, g.shape(g.op("Mul", batch, g.ints(2)), places, keys))
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        four = g.op("Reshape", mixed, g.shape(batch, 2, places, g.size))
        return g.linear(g.join_heads(four), g.width, g.width)

    x = g.op("Add", x, attention(g.layer_norm(x, g.width), True))
    x = g.op("Add", x, attention(g.layer_norm(x, g.width), False))
    h = g.linear(g.layer_norm(x, g.width), g.width, 2 * g.width)
    g.output(g.op("Add", x, g.linear(g.gelu(h), 2 * g.width, g.width)), "y", 3)
    return g.model()


def opset23(*, causal: bool = True, cache: bool = True) -> onnx.ModelProto:
    """Llama's block as torch.export writes it: whole operators, but keys and values repeated and joined before."""
    g = Block(4, 8, 2, opset=23)
    x = g.rows()
    angles = g.frequencies(g.size // 2)
    cos, sin = (g.op(f, angles) for f in ("Cos", "Sin"))
    h = g.op("RMSNormalization", x, g.weights(g.width), axis=-1, epsilon=1e-6)
    q, k, v = (g.split_heads(g.linear(h, g.width, n * g.size, bias=False), n) for n in (4, 2, 2))
    q, k = (g.op("RotaryEmbedding", t, cos, sin) for t in (q, k))
    if cache:
        k, v = g.cached(k, "key"), g.cached(v, "value")
    total = g.size_of(k, 2)
    mask = [] if causal and not cache else [g.op("Equal", g.decoder_mask(x, total), g.constant(0.0))]
    k, v = g.repeat_kv(k, 2), g.repeat_kv(v, 2)
    context = g.op("Attention", q, k, v, *mask, is_causal=int(not mask), scale=g.size**-0.5)
    g.output(g.op("Add", x, g.linear(g.join_heads(context), g.width, g.width, bias=False)), "y", 3)
    return g.model(ir_version=10)
