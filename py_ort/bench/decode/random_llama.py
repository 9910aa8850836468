"""Writes a decoder like Llama with random weights: `python -m py_ort.bench.decode.random_llama 1B decoder.onnx`.

For machines without a network: sizes, names and operators are those of the exports that people run, onnxruntime-genai's
(GroupQueryAttention) and older ones (rotation, caches that are concatenated, a softmax). Equal arguments, equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
_ELEMENTS = {"float32": (TensorProto.FLOAT, np.float32), "float16": (TensorProto.FLOAT16, np.float16)}
_INT64 = TensorProto.INT64
#: Tensors from so many bytes on lie in the file beside the model.
_LARGE = 1024


@dataclass(frozen=True)
class Size:
    """How large a decoder is: of rows `width`, of the products between gate and down `inner`."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int = 32000


#: As Qwen2.5 0.5B, Llama 3.2 1B and 3B, with a smaller vocabulary, one for CPUs, and one for tests.
SIZES = {
    "0.5B": Size(24, 896, 4864, 14, 2, 64),
    "1B": Size(16, 2048, 8192, 32, 8, 64),
    "3B": Size(28, 3072, 8192, 24, 8, 128),
    "small": Size(4, 1024, 2816, 16, 4, 64, 8000),
    "tiny": Size(2, 64, 128, 4, 2, 16, 96),
}


@dataclass(frozen=True)
class Form:
    """How a decoder is written.

    Attributes:
        bits: Bits of weights, for MatMulNBits; 0: MatMul of floats.
        block: Weights with one scale.
        zero_points: True if blocks have zero points.
        accuracy_level: MatMulNBits' attribute: with 0 the runtime decides, with 4 it may round rows to 8 bits.
        dtype: "float32" or "float16", of all else.
        caches: "grouped" (GroupQueryAttention) or "concat".
        packed: True if one product makes queries, keys and values; for "grouped" caches.
        positions: The longest text.
        last_row: True if only the last row's logits are computed.
    """

    bits: int = 4
    block: int = 32
    zero_points: bool = False
    accuracy_level: int = 0
    dtype: str = "float32"
    caches: str = "grouped"
    packed: bool = False
    positions: int = 4096
    last_row: bool = False


class _Writer:
    """The nodes and weights of a model, large weights in a file beside it."""

    def __init__(self, form: Form, data: Path, seed: int) -> None:
        self.form, self.nodes, self.weights = form, list[onnx.NodeProto](), list[onnx.TensorProto]()
        self.dtype: Any
        self.element, self.dtype = _ELEMENTS[form.dtype]
        self._rng, self._path, self._file, self._made = np.random.default_rng(seed), data, data.open("wb"), 0

    def close(self) -> None:
        self._file.close()

    def weight(self, name: str, array: np.ndarray) -> str:
        """Keep an array under a name."""
        tensor = numpy_helper.from_array(array, name)
        if array.nbytes >= _LARGE:
            self._file.write(b"\0" * (-self._file.tell() % 4096))
            at = {"location": self._path.name, "offset": str(self._file.tell()), "length": str(array.nbytes)}
            self._file.write(array.tobytes())
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in at.items())
        self.weights.append(tensor)
        return name

    def floats(self, name: str, values: np.ndarray) -> str:
        return self.weight(name, values.astype(self.dtype))

    def ints(self, *values: int) -> str:
        self._made += 1
        return self.weight(f"ints_{self._made}", np.array(values, np.int64))

    def random(self, *shape: int) -> np.ndarray:
        return self._rng.standard_normal(shape, np.float32)

    def norm(self, name: str, width: int) -> str:
        return self.floats(f"{name}.weight", 1 + self.random(width) / 8)

    def node(self, op: str, inputs: Sequence[str], output: str | Sequence[str], domain: str = "", **given: Any) -> str:
        """Append a node; return its first output."""
        outputs = [output] if isinstance(output, str) else list(output)
        name = f"/{outputs[0]}/{op}"
        self.nodes.append(helper.make_node(op, inputs, outputs, name, domain=domain, **given))
        return outputs[0]

    def product(self, x: str, name: str, rows: int, columns: int) -> str:
        """x [..., rows] times random weights, whose results vary as x does."""
        bits, block = self.form.bits, self.form.block
        if bits == 0:
            weight = self.floats(f"{name}.weight", self.random(rows, columns) / rows**0.5)
            return self.node("MatMul", [x, weight], f"{name}_out")
        blocks = -(-rows // block)
        inputs = [x, self.weight(f"{name}.qweight", self._bytes(columns, blocks, block * bits // 8))]
        spread = (4**bits / 12) ** 0.5
        scales = (1 + self.random(columns * blocks) / 16) / (spread * rows**0.5)
        inputs.append(self.floats(f"{name}.scales", scales))
        if self.form.zero_points:
            inputs.append(self.weight(f"{name}.zeros", self._middles(columns, -(-blocks * bits // 8))))
        sizes = {"K": rows, "N": columns, "bits": bits, "block_size": block}
        if self.form.accuracy_level:
            sizes["accuracy_level"] = self.form.accuracy_level
        return self.node("MatMulNBits", inputs, f"{name}_out", MICROSOFT, **sizes)

    def _bytes(self, *shape: int) -> np.ndarray:
        return np.frombuffer(self._rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)

    def _middles(self, columns: int, each: int) -> np.ndarray:
        """Zero points next to the middle of the range, packed as weights are."""
        bits = self.form.bits
        near = (1 << bits - 1) + self._rng.integers(-1, 1, (columns * each, 8 // bits))
        return np.bitwise_or.reduce(near << np.arange(0, 8, bits), axis=1).astype(np.uint8)


def write_random_llama(path: str | Path, size: Size, form: Form = Form(), seed: int = 0) -> Path:
    """Write a decoder: input_ids, attention_mask, position_ids where caches are concatenated, past_key_values.N.key and
    .value in; logits, present.N.key and .value out.

    Args:
        path: The ONNX file; its weights go to `path` + ".data".
        size: How large.
        form: How it is written.
        seed: Seed of the random weights.

    Returns:
        `path`.
    """
    path = Path(path)
    write = _Writer(form, path.with_name(path.name + ".data"), seed)
    try:
        table = write.floats("embed_tokens.weight", write.random(size.vocabulary, size.width))
        x = normed = write.node("Gather", [table, "input_ids"], "embedded")
        attention = {"grouped": _Grouped, "concat": _Concatenated}[form.caches](write, size)
        for layer in range(size.layers):
            x, normed = _layer(write, size, attention, layer, x, normed)
        _, normed = _normed(write, size, "model.norm", x, normed)
        if form.last_row:
            normed = write.node("Gather", [normed, write.ints(-1)], "last_row", axis=1)
        write.product(normed, "lm_head", size.width, size.vocabulary)
        write.nodes[-1].output[0] = "logits"
        onnx.save(_model(write, size), path)
    finally:
        write.close()
    return path


def _normed(write: _Writer, size: Size, name: str, x: str, added: str) -> tuple[str, str]:
    """x plus what a block gave, and that normalized; the embedding is the first of both."""
    weight = write.norm(name, size.width)
    if x == added:
        given: dict[str, Any] = {"epsilon": 1e-5, "axis": -1, "stash_type": 1}
        return x, write.node("SimplifiedLayerNormalization", [x, weight], f"{name}_out", **given)
    outputs = [f"{name}_out", "", "", f"{name}_sum"]
    write.node("SkipSimplifiedLayerNormalization", [x, added, weight], outputs, MICROSOFT, epsilon=1e-5)
    return outputs[3], outputs[0]


def _layer(write: _Writer, size: Size, attention: _Attention, layer: int, x: str, added: str) -> tuple[str, str]:
    """Return the residual, and what is yet to be added to it."""
    name = f"layers.{layer}"
    x, normed = _normed(write, size, f"{name}.input_layernorm", x, added)
    added = write.product(attention(layer, normed), f"{name}.o_proj", size.heads * size.head_size, size.width)
    x, normed = _normed(write, size, f"{name}.post_attention_layernorm", x, added)
    gate, up = (write.product(normed, f"{name}.{part}_proj", size.width, size.inner) for part in ("gate", "up"))
    sigmoid = write.node("Sigmoid", [gate], f"{name}.sigmoid")
    silu = write.node("Mul", [gate, sigmoid], f"{name}.silu")
    return x, write.product(write.node("Mul", [silu, up], f"{name}.mul"), f"{name}.down_proj", size.inner, size.width)


class _Attention:
    """The parts that both forms share: projections, and tables of angles."""

    def __init__(self, write: _Writer, size: Size) -> None:
        self.write, self.size = write, size
        half = size.head_size // 2
        angles = np.arange(write.form.positions)[:, None] * 500000.0 ** -(np.arange(half) / half)
        self.tables = [write.floats("cos_cache", np.cos(angles)), write.floats("sin_cache", np.sin(angles))]

    def __call__(self, layer: int, x: str) -> str:
        """Return the result of the heads of a layer, [batch, rows, heads * size]."""
        raise NotImplementedError

    def projections(self, name: str, x: str) -> list[str]:
        size = self.size
        query, key = size.heads * size.head_size, size.kv_heads * size.head_size
        parts = {"q": query, "k": key, "v": key}
        if self.write.form.packed:
            return [self.write.product(x, f"{name}.qkv_proj", size.width, sum(parts.values())), "", ""]
        return [self.write.product(x, f"{name}.{part}_proj", size.width, to) for part, to in parts.items()]


class _Grouped(_Attention):
    """GroupQueryAttention, with lengths of the mask."""

    def __init__(self, write: _Writer, size: Size) -> None:
        super().__init__(write, size)
        one = write.ints(1)
        write.node("ReduceSum", ["attention_mask", one], "seen", keepdims=1)
        write.node("Sub", ["seen", one], "last")
        write.node("Cast", ["last"], "seqlens_k", to=TensorProto.INT32)
        write.node("Shape", ["attention_mask"], "mask_shape")
        write.node("Gather", ["mask_shape", write.weight("one", np.array(1, np.int64))], "longest", axis=0)
        write.node("Cast", ["longest"], "total_seq_len", to=TensorProto.INT32)

    def __call__(self, layer: int, x: str) -> str:
        name = f"layers.{layer}"
        past, present = (
            [f"{when}.{layer}.{kind}" for kind in ("key", "value")] for when in ("past_key_values", "present")
        )
        inputs = [*self.projections(name, x), *past, "seqlens_k", "total_seq_len", *self.tables]
        given = {
            "num_heads": self.size.heads,
            "kv_num_heads": self.size.kv_heads,
            "do_rotary": 1,
            "rotary_interleaved": 0,
            "scale": self.size.head_size**-0.5,
        }
        return self.write.node("GroupQueryAttention", inputs, [f"{name}.attn", *present], MICROSOFT, **given)


class _Concatenated(_Attention):
    """Rotated queries and keys, caches with the new rows behind them, and a softmax under a causal mask."""

    def __init__(self, write: _Writer, size: Size) -> None:
        super().__init__(write, size)
        low = float(np.finfo(write.dtype).min)
        write.node("Shape", ["attention_mask"], "all_keys", start=1, end=2)
        write.node("Squeeze", ["all_keys"], "key_count")
        start, step = (write.weight(name, np.array(n, np.int64)) for name, n in (("zero", 0), ("step", 1)))
        write.node("Range", [start, "key_count", step], "keys")
        write.node("Unsqueeze", ["position_ids", write.ints(1, 3)], "rows")
        write.node("LessOrEqual", ["keys", "rows"], "before")
        write.node("Cast", ["attention_mask"], "is_word", to=TensorProto.BOOL)
        write.node("Unsqueeze", ["is_word", write.ints(1, 2)], "is_word_4d")
        write.node("And", ["before", "is_word_4d"], "is_seen")
        nothing, hidden = (write.floats(name, np.array(n)) for name, n in (("nothing", 0), ("hidden", low)))
        write.node("Where", ["is_seen", nothing, hidden], "mask")
        self._scale = write.floats("scale", np.array(size.head_size**-0.5))

    def _heads(self, x: str, heads: int) -> str:
        shape = self.write.ints(0, 0, heads, self.size.head_size)
        apart = self.write.node("Reshape", [x, shape], f"{x}_heads")
        return self.write.node("Transpose", [apart], f"{x}_first", perm=[0, 2, 1, 3])

    def _rotated(self, x: str) -> str:
        return self.write.node("RotaryEmbedding", [x, "position_ids", *self.tables], f"{x}_rotated", MICROSOFT)

    def _cached(self, layer: int, kind: str, x: str) -> str:
        """Behind what is cached, and once for each head of queries."""
        write, size = self.write, self.size
        present = write.node("Concat", [f"past_key_values.{layer}.{kind}", x], f"present.{layer}.{kind}", axis=2)
        apart = write.node("Unsqueeze", [present, write.ints(2)], f"{present}_apart")
        times = write.ints(1, 1, size.heads // size.kv_heads, 1, 1)
        each = write.node("Expand", [apart, times], f"{present}_each")
        return write.node("Reshape", [each, write.ints(0, size.heads, -1, size.head_size)], f"{present}_shared")

    def __call__(self, layer: int, x: str) -> str:
        write, size, name = self.write, self.size, f"layers.{layer}"
        q, k, v = self.projections(name, x)
        query = self._rotated(self._heads(q, size.heads))
        keys = self._cached(layer, "key", self._rotated(self._heads(k, size.kv_heads)))
        values = self._cached(layer, "value", self._heads(v, size.kv_heads))
        turned = write.node("Transpose", [keys], f"{name}.turned", perm=[0, 1, 3, 2])
        scores = write.node("MatMul", [query, turned], f"{name}.scores")
        scaled = write.node("Mul", [scores, self._scale], f"{name}.scaled")
        masked = write.node("Add", [scaled, "mask"], f"{name}.masked")
        weights = write.node("Softmax", [masked], f"{name}.weights", axis=-1)
        found = write.node("MatMul", [weights, values], f"{name}.found")
        back = write.node("Transpose", [found], f"{name}.back", perm=[0, 2, 1, 3])
        return write.node("Reshape", [back, write.ints(0, 0, size.heads * size.head_size)], f"{name}.attn")


def _model(write: _Writer, size: Size) -> onnx.ModelProto:
    info = helper.make_tensor_value_info
    inputs = [info("input_ids", _INT64, ["batch", "sequence"]), info("attention_mask", _INT64, ["batch", "total"])]
    if write.form.caches == "concat":
        inputs.append(info("position_ids", _INT64, ["batch", "sequence"]))
    rows: int | str = 1 if write.form.last_row else "sequence"
    outputs = [info("logits", write.element, ["batch", rows, size.vocabulary])]
    for layer in range(size.layers):
        for kind in ("key", "value"):
            for values, when, length in ((inputs, "past_key_values", "past"), (outputs, "present", "total")):
                cache: list[int | str | None] = ["batch", size.kv_heads, length, size.head_size]
                values.append(info(f"{when}.{layer}.{kind}", write.element, cache))
    graph = helper.make_graph(write.nodes, "random_llama", inputs, outputs, write.weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@click.command()
@click.argument("size", type=click.Choice(list(SIZES)))
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--bits", type=click.Choice([0, 2, 4, 8]), default=4, show_default=True, help="Of weights; 0: floats.")
@click.option("--block", type=int, default=32, show_default=True, help="Weights with one scale.")
@click.option("--zero-points", is_flag=True, help="Blocks have zero points.")
@click.option("--accuracy-level", type=click.IntRange(0, 4), default=0, show_default=True, help="Of MatMulNBits.")
@click.option("--dtype", type=click.Choice(list(_ELEMENTS)), default="float32", show_default=True)
@click.option("--caches", type=click.Choice(["grouped", "concat"]), default="grouped", show_default=True)
@click.option("--packed", is_flag=True, help="Queries, keys and values are one product.")
@click.option("--positions", type=int, default=4096, show_default=True, help="The longest text.")
@click.option("--last-row", is_flag=True, help="Only the last row has logits.")
@click.option("--layers", type=int, help="Other than the size has.")
@click.option("--seed", type=int, default=0, show_default=True)
def main(size: str, path: Path, layers: int | None, seed: int, **form: Any) -> None:
    """Write a decoder of SIZE with random weights to PATH."""
    from dataclasses import replace

    sizes = replace(SIZES[size], layers=layers) if layers else SIZES[size]
    write_random_llama(path, sizes, Form(**form), seed)


if __name__ == "__main__":
    main()
