"""Blocks of encoders: BERT and a vision transformer by both exporters' products of scaled heads, CLIP's text part."""

from __future__ import annotations

import numpy as np
import onnx
from transformer_blocks import END, FLOAT, INT64, LEAST, Block


class _Encoder(Block):
    def scale(self, q: str) -> str:
        """1 / √size, computed from the tensor's shape."""
        size = self.op("Cast", self.slice(self.op("Shape", q), 0, -1, END), to=FLOAT)
        return self.op("Div", self.constant([1.0]), self.op("Sqrt", size))

    def product_attention(self, q: str, k: str, v: str, form: str, mask: str = "", causal: bool = False) -> str:
        """scaled_dot_product_attention: half of the scale on queries, half on keys."""
        root = self.op("Sqrt", self.scale(q))
        transposed = self.swapped(k) if form == "export" else self.transpose(k, 0, 1, 3, 2)
        scores = self.op("MatMul", self.op("Mul", q, root), self.op("Mul", transposed, root))
        mask = self.causal_of(q, k) if causal else mask
        scores = self.op("Add", scores, mask) if mask else scores
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), v)


def bert(*, form: str = "script") -> onnx.ModelProto:
    """A layer of BERT; `form` is `script` for TorchScript's exporter, `export` for torch.export's."""
    g = _Encoder(2, 8)
    x = g.rows()
    given = g.op("Cast", g.unsqueeze(g.input("attention_mask", INT64, ["batch", "sequence"]), 1, 2), to=FLOAT)
    wide = g.expand(given, g.shape(g.size_of(x, 0), 1, g.size_of(x, 1), g.size_of(x, 1)))
    hidden = g.op("Sub", g.constant(1.0), wide)
    mask = g.op("Where", g.op("Cast", hidden, to=onnx.TensorProto.BOOL), g.constant(LEAST), hidden)
    q, k, v = (g.split_heads(g.linear(x, g.width, g.width), 2) for _ in range(3))
    context = g.product_attention(q, k, v, form, mask)
    x = g.layer_norm(g.op("Add", g.linear(g.join_heads(context), g.width, g.width), x), g.width)
    h = g.gelu(g.linear(x, g.width, 2 * g.width))
    g.output(g.layer_norm(g.op("Add", g.linear(h, 2 * g.width, g.width), x), g.width), "y", 3)
    return g.model()


def vit(*, form: str = "script") -> onnx.ModelProto:
    """Patches of an image, a class token before them, and one layer; `form` as for `bert`."""
    g = _Encoder(2, 8)
    image = g.input("x", FLOAT, ["batch", 3, 8, 8])
    patches = g.op("Conv", image, g.weights(g.width, 3, 4, 4), g.weights(g.width), kernel_shape=[4, 4], strides=[4, 4])
    flat = g.op("Reshape", patches, g.shape(g.size_of(patches, 0), g.width, -1))
    token = g.expand(g.weights(1, 1, g.width), g.shape(g.size_of(image, 0), -1, -1))
    x = g.op("Concat", token, g.transpose(flat, 0, 2, 1), axis=1)
    x = g.op("Add", x, g.weights(1, 5, g.width))
    h = g.layer_norm(x, g.width)
    q, k, v = (g.split_heads(g.linear(h, g.width, g.width), 2) for _ in range(3))
    x = g.op("Add", g.linear(g.join_heads(g.product_attention(q, k, v, form)), g.width, g.width), x)
    h = g.gelu(g.linear(g.layer_norm(x, g.width), g.width, 2 * g.width))
    g.output(g.op("Add", g.linear(h, 2 * g.width, g.width), x), "y", 3)
    return g.model()


def clip() -> onnx.ModelProto:
    """CLIP's text part: products of stacked heads, a causal mask made from a triangle, Gelu by a sigmoid."""
    g = _Encoder(2, 8)
    x = g.rows()
    batch, places = g.size_of(x, 0), g.size_of(x, 1)
    h = g.layer_norm(x, g.width)
    q = g.op("Mul", g.linear(h, g.width, g.width), g.constant(g.size**-0.5))
    k, v = (g.linear(h, g.width, g.width) for _ in range(2))
    stacks = [g.stack(g.split_heads(t, 2)) for t in (q, k, v)]
    scores = g.op("MatMul", stacks[0], g.transpose(stacks[1], 0, 2, 1))
    full = g.op("Expand", g.constant(LEAST), g.shape(places, places))
    mask = g.unsqueeze(g.op("Trilu", full, g.constant(1, np.int64), upper=1), 0, 1)
    four = g.op("Add", g.op("Reshape", scores, g.shape(batch, 2, places, places)), mask)
    scores = g.op("Reshape", four, g.shape(g.op("Mul", batch, g.ints(2)), places, places))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), stacks[2])
    context = g.join_heads(g.op("Reshape", mixed, g.shape(batch, 2, places, g.size)))
    x = g.op("Add", x, g.linear(context, g.width, g.width))
    h = g.linear(g.layer_norm(x, g.width), g.width, 2 * g.width)
    h = g.op("Mul", h, g.op("Sigmoid", g.op("Mul", h, g.constant(1.702))))
    g.output(g.op("Add", x, g.linear(h, 2 * g.width, g.width)), "y", 3)
    return g.model()
