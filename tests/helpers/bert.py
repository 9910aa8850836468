"""A small BERT in the form of PyTorch's export: shape arithmetic before each reshape, norms and Gelu in their parts."""

from __future__ import annotations

import numpy as np
import onnx
from graph_writer import GraphWriter


class _Bert(GraphWriter):
    """For opset 11: axes are attributes."""

    def norm(self, x: str, width: int) -> str:
        mean = self.op("ReduceMean", x, axes=[-1])
        centered = self.op("Sub", x, mean)
        variance = self.op("ReduceMean", self.op("Pow", centered, self.constant(2.0)), axes=[-1])
        root = self.op("Sqrt", self.op("Add", variance, self.constant(1e-12)))
        scaled = self.op("Mul", self.op("Div", centered, root), self.constant(np.ones(width) * 1.1))
        return self.op("Add", scaled, self.weights(width))

    def heads(self, x: str, heads: int, width: int, perm: list[int]) -> str:
        shape = self.shape(self.size(x, 0), self.size(x, 1), heads, width)
        return self.transpose(self.op("Reshape", x, shape), *perm)


def bert(layers: int = 2, width: int = 32, heads: int = 4, words: int = 50, length: int = 64) -> onnx.ModelProto:
    """Return the model: input_ids and attention_mask [batch, sequence] of int64 → [batch, sequence, width]."""
    g = _Bert(opset=11)
    mask = g.op("Cast", g.op("Unsqueeze", g.op("Unsqueeze", "attention_mask", axes=[1]), axes=[2]), to=1)
    bias = g.op("Mul", g.op("Sub", g.constant(1.0), mask), g.constant(-10000.0))
    positions = g.op(
        "Slice",
        g.constant(np.arange(length)[None], np.int64),
        g.constant([0], np.int64),
        g.size("input_ids", 1),
        g.constant([1], np.int64),
    )
    x = g.op(
        "Add", g.op("Gather", g.weights(words, width), "input_ids"), g.op("Gather", g.weights(length, width), positions)
    )
    x = g.norm(x, width)
    each = width // heads
    for _ in range(layers):
        q = g.heads(g.linear(x, width, width), heads, each, [0, 2, 1, 3])
        k = g.heads(g.linear(x, width, width), heads, each, [0, 2, 3, 1])
        v = g.heads(g.linear(x, width, width), heads, each, [0, 2, 1, 3])
        scores = g.op("Add", g.op("Div", g.op("MatMul", q, k), g.constant(np.sqrt(each))), bias)
        context = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=3), v), perm=[0, 2, 1, 3])
        joined = g.op("Concat", g.size(context, 0), g.size(context, 1), g.constant([width], np.int64), axis=0)
        x = g.norm(g.op("Add", g.linear(g.op("Reshape", context, joined), width, width), x), width)
        h = g.linear(x, width, 4 * width)
        gelu = g.op(
            "Mul",
            g.op("Mul", h, g.op("Add", g.op("Erf", g.op("Div", h, g.constant(np.sqrt(2)))), g.constant(1.0))),
            g.constant(0.5),
        )
        x = g.norm(g.op("Add", g.linear(gelu, 4 * width, width), x), width)
    g.output(x, "last_hidden_state", 3)
    for name in ("input_ids", "attention_mask"):
        g.input(name, onnx.TensorProto.INT64, ["batch", "sequence"])
    return g.model(ir_version=7)
