"""A decoder's inputs and outputs, by the names that exporters use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from py_ort.compiler.package.format import is_package
from py_ort.exceptions import InvalidArgument

#: Operators that write new rows only, where a cache is bound as input and output.
_IN_PLACE = {"GroupQueryAttention", "TensorScatter"}
_LOGITS_WANTED = ("num_logits_to_keep", "logits_to_keep")


@dataclass(frozen=True)
class Cache:
    """One cache: names of its input and output, and its shape but for the rows, [batch, heads, rows, size]."""

    past: str
    present: str
    heads: int
    size: int


@dataclass(frozen=True)
class Decoder:
    """A model from tokens and caches to logits and longer caches, for one text.

    Attributes:
        path: The ONNX file.
        numbers: The dtypes of other inputs than tokens and caches, by name: attention_mask, position_ids, ….
        ids: The dtype of input_ids.
        dtype: The caches' dtype.
        caches: All of them.
        in_place: True if each cache is written by an operator that can do so in place.
        external: The files of its weights, as the model names them.
        vocabulary: Size of the vocabulary.
    """

    path: Path
    ids: Any
    numbers: dict[str, Any]
    dtype: Any
    caches: tuple[Cache, ...]
    in_place: bool
    external: tuple[str, ...]
    vocabulary: int

    def feeds(self, words: np.ndarray, past: int) -> dict[str, np.ndarray]:
        """Return the feeds other than caches.

        Args:
            words: Tokens [n] after the cached ones.
            past: Number of cached tokens.
        """
        total = past + len(words)
        values = {
            "attention_mask": np.ones((1, total)),
            "position_ids": np.arange(past, total)[None],
            **dict.fromkeys(_LOGITS_WANTED, np.array(1)),
        }
        given = {name: values[name].astype(dtype) for name, dtype in self.numbers.items()}
        return {"input_ids": words[None].astype(self.ids), **given}

    def prompt(self, length: int) -> np.ndarray:
        """Return some tokens, the same for all engines."""
        return np.random.default_rng(0).integers(0, self.vocabulary, length)


def read_decoder(path: str | Path) -> Decoder:
    """Look at a model.

    Raises:
        InvalidArgument: It is no decoder with caches, or has unknown inputs.
    """
    if is_package(path):
        raise InvalidArgument(f"{path}: --decode takes the ONNX model, whose inputs' names it reads")
    graph = (proto := onnx.load(str(path), load_external_data=False)).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value.type.tensor_type for value in graph.input if value.name not in weights}
    outputs = [value.name for value in graph.output]
    writers = {name: node.op_type for node in graph.node for name in node.output}
    caches = tuple(_caches(path, inputs, outputs))
    numbers = {n: _dtype(t) for n, t in inputs.items() if n != "input_ids" and all(n != c.past for c in caches)}
    known = {"attention_mask", "position_ids", *_LOGITS_WANTED}
    if not caches or "input_ids" not in inputs or "logits" not in outputs or not known.issuperset(numbers):
        raise InvalidArgument(
            f"{path}: --decode is for models with input_ids, logits and past_key_values…, and of other inputs "
            f"{', '.join(sorted(known))} only; this one has {', '.join(inputs)} and gives {', '.join(outputs)}"
        )
    external = {e.value for t in proto.graph.initializer for e in t.external_data if e.key == "location"}
    logits = next(value for value in graph.output if value.name == "logits").type.tensor_type
    return Decoder(
        Path(path),
        _dtype(inputs["input_ids"]),
        numbers,
        _dtype(inputs[caches[0].past]),
        caches,
        all(writers.get(cache.present) in _IN_PLACE for cache in caches),
        tuple(sorted(external)),
        logits.shape.dim[-1].dim_value or 256,
    )


def _caches(path: str | Path, inputs: dict[str, Any], outputs: list[str]) -> Iterator[Cache]:
    for name, tensor in inputs.items():
        if not name.startswith("past"):
            continue
        present = next(
            (o for o in (name.replace("past_key_values", "present"), f"present{name[4:]}") if o in outputs), ""
        )
        dims = [dim.dim_value for dim in tensor.shape.dim]
        if not present or len(dims) != 4 or not dims[1] or not dims[3]:
            raise InvalidArgument(
                f"{path}: the cache {name} should be [batch, heads, rows, size] with known heads and size, and come "
                f"out as {name.replace('past_key_values', 'present')}"
            )
        yield Cache(name, present, dims[1], dims[3])


def _dtype(tensor: Any) -> Any:
    return helper.tensor_dtype_to_np_dtype(tensor.elem_type)
