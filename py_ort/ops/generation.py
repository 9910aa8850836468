"""Operators that generate text.

Searches become a Loop around a copy of their decoder, whose nodes run wherever others do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.value_types import like
from py_ort.ops.sampling import draw, likely_first, uniform, unlikely_first
from py_ort.ops.searches import COMMON, INT32, Begins, Search, any_of, first_column, padded, trips_of, turns
from py_ort.ops.text_decoders import Rows


def _infer_scores(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[1])


def _infer_sequences(node: ir.Node) -> None:
    node.outputs[0].type = ir.TensorType(ir.DataType.INT32)
    for output in node.outputs[1:]:
        output.type = ir.TensorType(ir.DataType.FLOAT)


OPERATORS = [
    Operator("NGramRepeatBlock", domain=MICROSOFT, infer=_infer_scores, indices=(0,)),
    Operator("DynamicTimeWarping", domain=MICROSOFT),
    *(
        Operator(name, domain=MICROSOFT, infer=_infer_sequences)
        for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")
    ),
]


@lowering("GreedySearch", domain=MICROSOFT)
def greedy_search(node: ir.Node, build: Builder) -> Any:
    """Each turn appends the likeliest token; rows that have ended get padding."""
    search = Search(node, ("input_ids", "max_length", "min_length", *COMMON))

    def likeliest(build: Builder, scores: Any, number: Any) -> Any:
        return build.op("ArgMax", scores, axis=1, keepdims=0)

    return _one_by_one(search, build, likeliest) if search.like_gpt2() else None


@lowering("Sampling", domain=MICROSOFT)
def sampling(node: ir.Node, build: Builder) -> Any:
    """Each turn appends a token drawn from the likeliest ones."""
    search = Search(node, ("input_ids", "max_length", "min_length", *COMMON, "presence_mask", "seed"))
    if not search.like_gpt2() or len(node.outputs) > 1:  # onnxruntime's CPU gives no filtered_logits either
        return None
    texts = build.op("Shape", search["input_ids"], start=0, end=1)
    numbers = uniform(build, search["seed"], trips_of(search, build, search["input_ids"]), texts)
    top, keep = search.number("top_p", 0.0), search.attribute("min_tokens_to_keep")
    filtered = search.number("filter_value", -1e20)
    likely = likely_first if search.attribute("custom") else unlikely_first

    def drawn(build: Builder, scores: Any, number: Any) -> Any:
        scores = likely(build, scores, top, keep, filtered)
        return draw(build, scores, build.op("Gather", numbers, number, axis=0))

    return _one_by_one(search, build, drawn)


def _one_by_one(search: Search, build: Builder, choose: Callable[[Builder, Any, Any], Any]) -> Any:
    """Append `choose(build, scores, number of the turn)` in each turn."""
    first = search.prompt(build)
    never = build.op("Equal", first_column(build, first.states()[1]), np.array([-1], np.int32))

    def turn(build: Builder, begins: Begins, rows: Rows, own: list[Any]) -> tuple[Any, list[Any], Rows, list[Any]]:
        sequences, ended = own
        scores, caches = rows.decoded(build)
        scores = search.processed(build, scores, sequences, begins, search["prefix_vocab_mask"])
        number = build.op("Sub", *(build.op("Shape", x, start=1, end=2) for x in (sequences, first.tokens)))
        number = build.op("Squeeze", number, np.array([0]))
        token = build.op("Cast", choose(build, scores, number), to=INT32)
        ended = build.op("Or", ended, build.op("Equal", token, search.eos))
        column = build.op("Unsqueeze", build.op("Where", ended, search.pad, token), np.array([1]))
        grown = build.op("Concat", sequences, column, axis=1)
        after = rows.after(build, grown, column, caches)
        return any_of(build, build.op("Not", ended)), [grown, ended], after, []

    (texts, _), _ = turns(build, trips_of(search, build, first.tokens), [first.tokens, never], first, turn)
    return padded(search, build, texts, 1)
