"""Common parts of searches for text: inputs, scores after the options, and turns of a decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute
from py_ort.ir.operators import MICROSOFT
from py_ort.ops.loops import loop
from py_ort.ops.text_decoders import Prompted, Rows, T5Form, like_gpt2

INT32, INT64, FLOAT = int(ir.DataType.INT32), int(ir.DataType.INT64), int(ir.DataType.FLOAT)
LOWEST = np.array(np.finfo(np.float32).min, np.float32)
LAST = np.array([-1])
#: Inputs that all searches have.
COMMON = ("repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask")


class Search:
    """A search's inputs by name, its attributes, and its decoder."""

    def __init__(self, node: ir.Node, names: Sequence[str]) -> None:
        self._node = node
        self._inputs = dict(zip(names, node.inputs, strict=False))
        self.graph: ir.Graph = attribute(node, "decoder")
        self.pad = np.array(attribute(node, "pad_token_id"), np.int32)
        self.eos = np.array(attribute(node, "eos_token_id"), np.int32)

    def __getitem__(self, name: str) -> Any:
        return self._inputs.get(name)

    def attribute(self, name: str) -> int:
        found: int = attribute(self._node, name, 0)
        return found

    def number(self, name: str, otherwise: float) -> float:
        found: float = attribute(self._node, name, otherwise)
        return found

    def like_gpt2(self) -> bool:
        """Return True if the decoder, and the decoder of the first turn, have the form of GPT-2."""
        return (
            not self.attribute("model_type")
            and attribute(self._node, "encoder") is None
            and all(like_gpt2(graph, self.attribute("vocab_size")) for graph in (self.graph, self._begin()))
        )

    def _begin(self) -> ir.Graph:
        """The decoder of the first turn."""
        found: ir.Graph = attribute(self._node, "init_decoder", self.graph)
        return found

    def encoder_form(self) -> T5Form | None:
        """The form of encoder and decoder, when it is T5's or Whisper's."""
        encoder, start = (attribute(self._node, name) for name in ("encoder", "decoder_start_token_id"))
        kind, begun = self.attribute("model_type"), self["decoder_input_ids"] is not None
        if kind not in (1, 2) or encoder is None or (start is None and not begun) or (kind == 1 and begun):
            return None
        return T5Form.of(encoder, self.graph, self.attribute("vocab_size"), masked=kind == 1)

    def encoded(self, form: T5Form, build: Builder, copies: Any) -> Rows:
        """Return the first inputs of a decoder that has an encoder; `copies` is the text of each row."""
        mask, begin = self["attention_mask"], self["decoder_input_ids"]
        if self.attribute("model_type") == 2:
            mask = None
        elif mask is None:
            mask = self._written(build)
        if begin is None:
            start = np.array(self.attribute("decoder_start_token_id"), np.int32).reshape(1, 1)
            texts = build.op("Shape", self["input_ids"], start=0, end=1)
            begin = build.op("Expand", start, build.op("Concat", texts, np.array([1]), axis=0))
        return form.first(build, self["input_ids"], mask, begin, copies)

    def _written(self, build: Builder) -> Any:
        """1 where the input has a token, 0 where it is padded."""
        return build.op("Cast", build.op("Not", build.op("Equal", self["input_ids"], self.pad)), to=INT32)

    def prompt(self, build: Builder, copies: Any = None) -> Rows:
        """The prompt, padded before; `copies` says which of its rows there are."""
        there = self._written(build)
        before = build.op("Sub", build.op("CumSum", there, np.array(1)), np.array([1], np.int32))
        mask = there if self["attention_mask"] is None else self["attention_mask"]
        rows = [self["input_ids"], build.op("Mul", before, there), mask]
        if copies is not None:
            rows = [build.op("Gather", value, copies, axis=0) for value in rows]
        return Prompted.first(self._begin(), self.graph, build, *rows)

    def processed(self, build: Builder, scores: Any, sequences: Any, begins: Begins, prefix_mask: Any) -> Any:
        """Scores [rows, vocabulary] as masks, penalties and lengths leave them, in onnxruntime's order."""
        lowest = build.constant(LOWEST)
        if self["repetition_penalty"] is not None:
            written = build.op("Cast", sequences, to=INT64)
            ones = build.op("Cast", build.op("Greater", sequences, np.array(-1, np.int32)), to=FLOAT)
            zeros = build.op("Sub", scores, scores)
            seen = build.op(
                "Greater", build.op("ScatterElements", zeros, written, ones, axis=1), np.array([0], np.float32)
            )
            factor = self["repetition_penalty"]
            negative = build.op("Less", scores, np.array([0], np.float32))
            changed = build.op("Where", negative, build.op("Mul", scores, factor), build.op("Div", scores, factor))
            scores = build.op("Where", seen, changed, scores)
        size = self.attribute("no_repeat_ngram_size")
        if size > 0:
            written = build.op("Cast", sequences, to=INT64)
            scores = build.op("NGramRepeatBlock", written, scores, domain=MICROSOFT, ngram_size=size)
            scores = build.op("Max", scores, lowest)
        if self["vocab_mask"] is not None:
            scores = build.op("Where", build.op("Equal", self["vocab_mask"], np.array([0], np.int32)), lowest, scores)
        if prefix_mask is not None and begins is not None:
            hidden = build.op("And", build.op("Equal", prefix_mask, np.array([0], np.int32)), begins)
            scores = build.op("Where", hidden, lowest, scores)
        if self["min_length"] is not None:
            short = build.op("Less", count_of(build, sequences, 1), self["min_length"])
            count = build.op("Reshape", count_of(build, scores, 1), np.array([], np.int64))
            token = build.op("Equal", build.op("Range", np.array(0, np.int32), count, np.array(1, np.int32)), self.eos)
            scores = build.op("Where", build.op("And", token, short), lowest, scores)
        temperature = self["temperature"]
        if temperature is None and self.number("temperature", 1.0) != 1:
            temperature = np.array([self.number("temperature", 1.0)], np.float32)
        scores = scores if temperature is None else build.op("Div", scores, temperature)
        penalty = self.number("presence_penalty", 0.0)
        if self["presence_mask"] is not None and penalty != 0:
            present = build.op("Cast", self["presence_mask"], to=FLOAT)
            scores = build.op("Sub", scores, build.op("Mul", present, np.array([penalty], np.float32)))
        return scores


def count_of(build: Builder, value: Any, axis: int) -> Any:
    """The size of an axis, [1] of int32."""
    return build.op("Cast", build.op("Shape", value, start=axis, end=axis + 1), to=INT32)


def int64(build: Builder, value: Any) -> Any:
    return build.op("Cast", value, to=INT64)


#: True in the first turn: known when the model is loaded, or a boolean of the graph; None: never.
Begins = Any
#: turn(build, begins, rows, own) returns whether to go on, the states and rows after it, and what is kept of each turn.
Turn = Callable[[Builder, Begins, Rows, list[Any]], tuple[Any, list[Any], Rows, list[Any]]]


def turns(build: Builder, trips: Any, own: list[Any], first: Rows, turn: Turn) -> tuple[list[Any], list[Any]]:
    """Run turns while they want to go on; returns the states after the last one, and what was kept [turns, ...].

    A first turn that is another than those behind it is made before the loop.
    """
    rows, kept_first, go = first, [], np.array(True)
    if first.begins_otherwise:
        go, own, rows, kept = turn(build, np.array(True), first, own)
        kept_first = [build.op("Unsqueeze", value, np.array([0])) for value in kept]
        trips = build.op("Sub", trips, np.array(1))

    def body(build: Builder, number: Any, states: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        begins = None if first.begins_otherwise else build.op("Equal", number, np.array(0))
        goes_on, after, then, kept = turn(build, begins, rows.of(states[len(own) :]), states[: len(own)])
        return goes_on, [*after, *then.states()], kept

    states, kept = loop(build, trips, [*own, *rows.states()], body, go)
    if kept_first:
        kept = [build.op("Concat", *pair, axis=0) for pair in zip(kept_first, kept, strict=True)]
    return states[: len(own)], kept


def trips_of(search: Search, build: Builder, begun: Any) -> Any:
    """How many tokens texts [rows, positions] may get."""
    room = build.op("Sub", search["max_length"], count_of(build, begun, 1))
    return int64(build, build.op("Reshape", build.op("Max", room, np.array([0], np.int32)), np.array([], np.int64)))


def padded(search: Search, build: Builder, sequences: Any, axis: int) -> Any:
    """Sequences along their last axis, up to max_length."""
    room = build.op("Sub", search["max_length"], count_of(build, sequences, axis))
    pads = build.op("Concat", np.array([0] * (2 * axis + 1)), int64(build, build.op("Reshape", room, LAST)), axis=0)
    return build.op("Pad", sequences, pads, search.pad)


def any_of(build: Builder, truths: Any) -> Any:
    return build.op(
        "Greater", build.op("ReduceMax", build.op("Cast", truths, to=INT32), keepdims=0), np.array(0, np.int32)
    )


def first_column(build: Builder, value: Any) -> Any:
    return build.op("Gather", value, np.array(0), axis=1)
