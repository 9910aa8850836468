"""Random attention: all variations of exporters at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from transformer_blocks import FLOAT, INT64, LEAST, Block

SIZES = {"batch": 2, "sequence": 3, "past": 2, "total": 5}


class RandomAttention(Block):
    """One attention on x, drawn by a seed; `form` describes it."""

    def __init__(self, seed: int) -> None:
        """Draw its form."""
        rng = np.random.default_rng(seed)
        heads = int(rng.choice([2, 4]))
        kv_heads = int(rng.choice([n for n in (1, 2, 4) if heads % n == 0]))
        super().__init__(heads, int(rng.choice([4, 8])), kv_heads, seed=seed)
        self.form: dict[str, Any] = {
            "stacked": bool(rng.random() < 0.3),
            "cache": bool(rng.random() < 0.5),
            "rotary": str(rng.choice(["", "slice", "split", "pairs", "halves"])),
            "norm": bool(rng.random() < 0.2),
            "scale": str(rng.choice(["", "q", "k", "both", "scores", "quotient"])),
            "softcap": bool(rng.random() < 0.2),
            "masks": [
                str(m) for m in rng.choice(["causal", "table", "input", "chosen", "compared"], rng.integers(0, 3))
            ],
            "turn": str(rng.choice(["at once", "twice", "export"])),
            "guard": bool(rng.random() < 0.1),
        }
        if self.form["stacked"]:
            self.form["masks"] = [m for m in self.form["masks"] if m != "table"]

    def rotated(self, x: str, form: str, cos: str, sin: str) -> str:
        if form in ("slice", "split"):
            return self.rotate(x, cos, sin, form)
        half = self.size // 2
        if form == "halves":
            a, b = self.ops("Split", x, self.ints(half, half), outputs=2, axis=-1)
        else:
            a, b = self.slice(x, 3, 0, step=2), self.slice(x, 3, 1, step=2)
        first = self.op("Sub", self.op("Mul", a, cos), self.op("Mul", b, sin))
        second = self.op("Add", self.op("Mul", a, sin), self.op("Mul", cos, b))
        if form == "halves":
            return self.op("Concat", first, second, axis=-1)
        pairs = self.op("Concat", self.unsqueeze(first, -1), self.unsqueeze(second, -1), axis=-1)
        return self.op("Reshape", pairs, self.op("Shape", x))

    def scaled(self, x: str, *where: str) -> str:
        number = self.size ** (-0.25 if self.form["scale"] == "both" else -0.5)
        return self.op("Mul", x, self.constant(number)) if self.form["scale"] in where else x

    def masked(self, scores: str, q: str, k: str, mask: str) -> str:
        queries, keys = self.size_of(q, 2), self.size_of(k, 2)
        if mask == "causal":
            return self.op("Add", scores, self.causal_of(q, k))
        if mask == "input":
            return self.op("Add", scores, self.input("mask", FLOAT, ["batch", 1, "sequence", "total"]))
        if mask == "table":
            table = self.constant(np.tril(np.ones((1, 1, 16, 16))), bool)
            seen = self.slice(self.slice(table, 2, self.op("Sub", keys, queries), keys), 3, 0, keys)
            return self.op("Where", seen, scores, self.constant(LEAST))
        if mask == "chosen":
            given = self.input("seen", INT64, ["batch", "total"])
            hidden = self.op("Equal", self.unsqueeze(given, 1, 2), self.constant(0, np.int64))
            return self.op("Where", hidden, self.constant(-1e9), scores)
        zero, one = self.constant(0, np.int64), self.constant(1, np.int64)
        end, new = (self.op("Squeeze", n, self.ints(0)) for n in (keys, queries))
        rows = self.unsqueeze(self.op("Range", self.op("Sub", end, new), end, one), 1)
        hidden = self.op("Less", rows, self.unsqueeze(self.op("Range", zero, end, one), 0))
        added = self.op("Where", hidden, self.constant(LEAST), self.constant(0.0))
        return self.op("Add", scores, self.unsqueeze(added, 0, 1))

    def write(self, *, symbolic: bool) -> onnx.ModelProto:
        """Return the model: x, and the inputs of its form → y, and present keys and values."""
        form = self.form
        x = self.rows()
        q, k, v = (
            self.split_heads(self.linear(x, self.width, n * self.size, bias=False), n)
            for n in (self.heads, self.kv_heads, self.kv_heads)
        )
        if form["norm"]:
            q, k = self.rms_norm(q, self.size), self.rms_norm(k, self.size)
        if form["rotary"]:
            angles = self.frequencies(self.size // 2)
            if form["rotary"] in ("slice", "split"):
                angles = self.op("Concat", angles, angles, axis=-1)
            cos, sin = (self.unsqueeze(self.op(f, angles), 1) for f in ("Cos", "Sin"))
            q, k = (self.rotated(t, form["rotary"], cos, sin) for t in (q, k))
        if form["cache"]:
            k, v = self.cached(k, "key"), self.cached(v, "value")
        if self.kv_heads != self.heads:
            k, v = (self.repeat_kv(t, self.heads // self.kv_heads) for t in (k, v))
        q, k4 = self.scaled(q, "q", "both"), self.scaled(k, "k", "both")
        if form["stacked"]:
            q3, k3, v3 = (self.stack(t) for t in (q, k4, v))
            scores = self.op("MatMul", q3, self.transpose(k3, 0, 2, 1))
        else:
            v3, turn = v, form["turn"]
            t = self.swapped(k4) if turn == "export" else self.transpose(k4, 0, 1, 3, 2)
            scores = self.op("MatMul", q, t)
        scores = self.scaled(scores, "scores")
        scores = self.op("Div", scores, self.constant(self.size**0.5)) if form["scale"] == "quotient" else scores
        if form["softcap"]:
            scores = self.op("Mul", self.op("Tanh", self.op("Div", scores, self.constant(3.0))), self.constant(3.0))
        if form["stacked"] and form["masks"]:
            sizes = self.size_of(q, 0), self.heads, self.size_of(q, 2), self.size_of(k, 2)
            scores = self.op("Reshape", scores, self.shape(*sizes))
        for mask in dict.fromkeys(form["masks"]):
            scores = self.masked(scores, q, k, mask)
        if form["stacked"] and form["masks"]:
            count = self.op("Mul", self.size_of(q, 0), self.ints(self.heads))
            scores = self.op("Reshape", scores, self.shape(count, *sizes[2:]))
        weights = self.op("Softmax", scores, axis=-1)
        if form["guard"]:
            weights = self.op("Where", self.op("IsNaN", weights), self.constant(0.0), weights)
        mixed = self.op("MatMul", weights, v3)
        if form["stacked"]:
            sizes = self.size_of(x, 0), self.heads, self.size_of(x, 1), self.size
            mixed = self.op("Reshape", mixed, self.shape(*sizes))
        self.output(self.linear(self.join_heads(mixed), self.width, self.width), "y", 3)
        model = self.model()
        for value in model.graph.input if not symbolic else ():
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_value = self.feed_sizes()[dim.dim_param]
        return model

    def feed_sizes(self) -> dict[str, int]:
        """Return sizes that fit each other."""
        return SIZES if self.form["cache"] else {**SIZES, "total": SIZES["sequence"]}

    def feeds(self, model: onnx.ModelProto) -> dict[str, np.ndarray]:
        """Make inputs; every query has at least one key."""
        from graphs import random_feeds

        feeds = random_feeds(model, self.feed_sizes())
        if "seen" in feeds:
            feeds["seen"][:, 0] = 1
        if "position_ids" in feeds:
            feeds["position_ids"] = np.array([[2, 3, 4], [1, 2, 4]], np.int64)
        return feeds
