"""Blocks of known architectures, in the forms of PyTorch's exporters and transformers: sizes by names.

`form` selects among exporters' variations. All are small: width 16 or so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter
from onnx import TensorProto

LEAST = -3.4028234663852886e38
END = 2**63 - 1
INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


class Block(GraphWriter):
    """Parts that the architectures share."""

    def __init__(self, heads: int, size: int, kv_heads: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.heads, self.size, self.kv_heads = heads, size, kv_heads or heads
        self.width = heads * size

    def rows(self, batch: str = "batch", places: str = "sequence") -> str:
        return self.input("x", FLOAT, [batch, places, self.width])

    def split_heads(self, x: str, heads: int, *, transposed: bool = True) -> str:
        four = self.op("Reshape", x, self.shape(self.size_of(x, 0), self.size_of(x, 1), heads, self.size))
        return self.transpose(four, 0, 2, 1, 3) if transposed else four

    def size_of(self, x: str, axis: int) -> str:
        return GraphWriter.size(self, x, axis)

    def join_heads(self, x: str) -> str:
        y = self.transpose(x, 0, 2, 1, 3)
        return self.op("Reshape", y, self.shape(self.size_of(y, 0), self.size_of(y, 1), self.width))

    def rms_norm(self, x: str, width: int) -> str:
        mean = self.op("ReduceMean", self.op("Pow", x, self.constant(2.0)), axes=[-1])
        root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-6)))
        normal = self.op("Mul", x, self.op("Div", self.constant(1.0), root))
        return self.op("Mul", self.constant(1 + np.arange(width) / width), normal)

    def layer_norm(self, x: str, width: int) -> str:
        return self.op("LayerNormalization", x, self.weights(width), self.weights(width), axis=-1)

    def gelu(self, x: str) -> str:
        activated = self.op("Add", self.op("Erf", self.op("Div", x, self.constant(2**0.5))), self.constant(1.0))
        return self.op("Mul", self.op("Mul", x, activated), self.constant(0.5))

    def gelu_new(self, x: str) -> str:
        """GPT-2's, by tanh."""
        cube = self.op("Mul", self.constant(0.044715), self.op("Pow", x, self.constant(3.0)))
        activated = self.op("Tanh", self.op("Mul", self.constant((2 / np.pi) ** 0.5), self.op("Add", x, cube)))
        return self.op("Mul", self.op("Mul", self.constant(0.5), x), self.op("Add", self.constant(1.0), activated))

    def stack(self, x: str) -> str:
        """[batch, heads, places, size] → [batch * heads, places, size]."""
        count = self.op("Mul", self.size_of(x, 0), self.ints(self.heads))
        return self.op("Reshape", x, self.shape(count, -1, self.size))

    def swapped(self, k: str) -> str:
        """The last two axes of a tensor of any rank, swapped like torch.export's decomposition does."""
        shape = self.op("Shape", k)
        last, before = self.slice(shape, 0, -1, END), self.slice(shape, 0, -2, -1)
        three = self.op("Reshape", k, self.op("Concat", self.ints(-1), before, last, axis=0))
        back = self.op("Concat", self.slice(shape, 0, 0, -2), last, before, axis=0)
        return self.op("Reshape", self.transpose(three, 0, 2, 1), back)

    def causal_of(self, q: str, k: str) -> str:
        """The mask that the exporters write for is_causal."""
        ends = (self.slice(self.op("Shape", t), 0, -2, -1) for t in (q, k))
        ones = self.op("Expand", self.constant(1.0), self.op("Concat", *ends, axis=0))
        hidden = self.op("Equal", self.op("Trilu", ones, upper=0), self.constant(0.0))
        return self.op("Where", hidden, self.constant(-np.inf), self.constant(0.0))

    def expand(self, x: str, shape: str) -> str:
        """Expand in the form of TorchScript's exporter: sizes of -1 are kept."""
        ones = self.op("ConstantOfShape", self.op("Shape", shape), value=onnx.helper.make_tensor("v", INT64, [1], [1]))
        kept = self.op("Equal", shape, self.op("Mul", ones, self.constant(-1, np.int64)))
        return self.op("Expand", x, self.op("Where", kept, ones, shape))

    def repeat_kv(self, x: str, times: int) -> str:
        batch, places = self.size_of(x, 0), self.size_of(x, 2)
        five = self.expand(self.unsqueeze(x, 2), self.shape(batch, self.kv_heads, times, places, self.size))
        return self.op("Reshape", five, self.shape(batch, self.heads, places, self.size))

    def frequencies(self, pairs: int) -> str:
        """Angles [batch, positions, pairs] from position_ids, by a product."""
        places = self.input("position_ids", INT64, ["batch", "sequence"])
        inverse = self.constant((10.0 ** -(np.arange(pairs) / pairs))[None, :, None])
        wide = self.expand(inverse, self.shape(self.size_of(places, 0), -1, 1))
        known = self.op("Cast", self.unsqueeze(places, 1), to=FLOAT)
        return self.transpose(self.op("MatMul", wide, known), 0, 2, 1)

    def rotate_half(self, x: str, form: str) -> str:
        if form == "split":
            a, b = self.ops("Split", x, outputs=2, axis=-1)
        else:  # x.shape[-1] // 2 is computed from the tensor
            half = self.op("Div", self.size_of(x, -1), self.ints(2))
            a, b = self.slice(x, 3, 0, half), self.slice(x, 3, half)
        return self.op("Concat", self.op("Neg", b), a, axis=-1)

    def rotate(self, x: str, cos: str, sin: str, form: str = "slice") -> str:
        return self.op("Add", self.op("Mul", x, cos), self.op("Mul", self.rotate_half(x, form), sin))

    def swiglu(self, x: str) -> str:
        gate = self.linear(x, self.width, 2 * self.width, bias=False)
        up = self.linear(x, self.width, 2 * self.width, bias=False)
        mixed = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), up)
        return self.linear(mixed, 2 * self.width, self.width, bias=False)

    def cached(self, new: str, name: str) -> str:
        past = self.input(f"past_{name}", FLOAT, ["batch", self.kv_heads, "past", self.size])
        joined = self.op("Concat", past, new, axis=-2)
        self.output(joined, f"present_{name}", 4)
        return joined

    def decoder_mask(self, x: str, total: str) -> str:
        """Causal and padded: [batch, 1, sequence, total], added to scores."""
        given = self.input("attention_mask", INT64, ["batch", "total"])
        end, new = (self.op("Squeeze", n, self.ints(0)) for n in (total, self.size_of(x, 1)))
        past = self.op("Sub", end, new)
        one, zero = self.constant(1, np.int64), self.constant(0, np.int64)
        rows = self.op("Reshape", self.op("Range", past, end, one), self.ints(-1, 1))
        hidden = self.op("Greater", self.op("Range", zero, end, one), rows)
        seen = self.op("Cast", self.unsqueeze(given, 1, 2), to=TensorProto.BOOL)
        allowed = self.op("And", self.op("Not", self.unsqueeze(hidden, 0, 1)), seen)
        return self.op("Where", allowed, self.constant(0.0), self.constant(LEAST))


def llama(
    *,
    rotary: str = "slice",
    cache: bool = True,
    kv_heads: int = 2,
    mask: bool = True,
    qk_norm: str = "",
    softcap: float = 0,
    partial: int = 0,
) -> onnx.ModelProto:
    """A block of Llama: x, position_ids, attention_mask and past keys and values → y and present ones.

    Args:
        rotary: `slice` as TorchScript's exporter writes rotate_half, `split` as torch.export's, `table` with tables
            of cosines and sines by position.
        cache: True for past keys and values.
        kv_heads: Number of key and value heads, of 4 heads.
        mask: Causal and padded; without, every query sees every key.
        qk_norm: Queries and keys are normalized by head, `rows` or `heads` first.
        softcap: Scores are kept below this.
        partial: Number of elements of each head that are rotated.
    """
    g = Block(4, 8, kv_heads)
    x = g.rows()
    pairs = (partial or g.size) // 2
    if rotary == "table":
        places = g.input("position_ids", INT64, ["batch", "sequence"])
        angles = np.outer(np.arange(32), 10.0 ** -(np.arange(pairs) / pairs))
        tables = [f(np.concatenate([angles, angles], -1))[None, None] for f in (np.cos, np.sin)]
        limit = g.op("Add", g.size_of("past_key", 2), g.size_of(x, 1)) if cache else g.size_of(x, 1)
        cos, sin = (
            g.unsqueeze(g.op("Gather", g.op("Squeeze", g.slice(g.constant(t), 2, 0, limit), g.ints(0, 1)), places), 1)
            for t in tables
        )
    else:
        angles = g.frequencies(pairs)
        both = g.op("Concat", angles, angles, axis=-1)
        cos, sin = (g.unsqueeze(g.op("Mul", g.op(f, both), g.constant(1.0)), 1) for f in ("Cos", "Sin"))
    h = g.rms_norm(x, g.width)
    q, k, v = (g.linear(h, g.width, n * g.size, bias=False) for n in (4, kv_heads, kv_heads))
    if qk_norm == "rows":
        q, k = (
            g.transpose(g.rms_norm(g.split_heads(t, n, transposed=False), g.size), 0, 2, 1, 3)
            for t, n in ((q, 4), (k, kv_heads))
        )
    elif qk_norm == "heads":
        q, k = (g.rms_norm(g.split_heads(t, n), g.size) for t, n in ((q, 4), (k, kv_heads)))
    else:
        q, k = g.split_heads(q, 4), g.split_heads(k, kv_heads)
    v = g.split_heads(v, kv_heads)
    if partial:
        q, k = (
            g.op("Concat", g.rotate(g.slice(t, 3, 0, partial), cos, sin, rotary), g.slice(t, 3, partial), axis=-1)
            for t in (q, k)
        )
    else:
        q, k = g.rotate(q, cos, sin, rotary), g.rotate(k, cos, sin, rotary)
    if cache:
        k, v = g.cached(k, "key"), g.cached(v, "value")
    added = g.decoder_mask(x, g.size_of(k, 2)) if mask else ""
    if kv_heads != 4:
        k, v = g.repeat_kv(k, 4 // kv_heads), g.repeat_kv(v, 4 // kv_heads)
    scores = g.op("Mul", g.op("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.constant(g.size**-0.5))
    if softcap:
        scores = g.op("Mul", g.op("Tanh", g.op("Div", scores, g.constant(softcap))), g.constant(softcap))
    scores = g.op("Add", scores, added) if added else scores
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    x = g.op("Add", x, g.linear(g.join_heads(context), g.width, g.width, bias=False))
    g.output(g.op("Add", x, g.swiglu(g.rms_norm(x, g.width))), "y", 3)
    return g.model()
