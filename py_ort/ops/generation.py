"""Operators that generate text.

Searches become a Loop around a copy of their decoder, whose nodes run wherever others do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.value_types import like
from py_ort.ops.loops import loop
from py_ort.ops.sampling import draw, likely_first, uniform, unlikely_first
from py_ort.ops.text_decoders import Prompted, Rows, T5Form, like_gpt2

_INT32, _INT64, _FLOAT = int(ir.DataType.INT32), int(ir.DataType.INT64), int(ir.DataType.FLOAT)
_LOWEST = np.array(np.finfo(np.float32).min, np.float32)
_LAST = np.array([-1])


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


class _Search:
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
        """Whether the decoder, and that of the first turn, have the form of GPT-2."""
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
        """What a decoder reads first that has an encoder; `copies` says of which text each row is."""
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
        return build.op("Cast", build.op("Not", build.op("Equal", self["input_ids"], self.pad)), to=_INT32)

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
        lowest = build.constant(_LOWEST)
        if self["repetition_penalty"] is not None:
            written = build.op("Cast", sequences, to=_INT64)
            ones = build.op("Cast", build.op("Greater", sequences, np.array(-1, np.int32)), to=_FLOAT)
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
            written = build.op("Cast", sequences, to=_INT64)
            scores = build.op("NGramRepeatBlock", written, scores, domain=MICROSOFT, ngram_size=size)
            scores = build.op("Max", scores, lowest)
        if self["vocab_mask"] is not None:
            scores = build.op("Where", build.op("Equal", self["vocab_mask"], np.array([0], np.int32)), lowest, scores)
        if prefix_mask is not None and begins is not None:
            hidden = build.op("And", build.op("Equal", prefix_mask, np.array([0], np.int32)), begins)
            scores = build.op("Where", hidden, lowest, scores)
        if self["min_length"] is not None:
            short = build.op("Less", _count(build, sequences, 1), self["min_length"])
            count = build.op("Reshape", _count(build, scores, 1), np.array([], np.int64))
            token = build.op("Equal", build.op("Range", np.array(0, np.int32), count, np.array(1, np.int32)), self.eos)
            scores = build.op("Where", build.op("And", token, short), lowest, scores)
        temperature = self["temperature"]
        if temperature is None and self.number("temperature", 1.0) != 1:
            temperature = np.array([self.number("temperature", 1.0)], np.float32)
        scores = scores if temperature is None else build.op("Div", scores, temperature)
        penalty = self.number("presence_penalty", 0.0)
        if self["presence_mask"] is not None and penalty != 0:
            present = build.op("Cast", self["presence_mask"], to=_FLOAT)
            scores = build.op("Sub", scores, build.op("Mul", present, np.array([penalty], np.float32)))
        return scores


def _count(build: Builder, value: Any, axis: int) -> Any:
    """The size of an axis, [1] of int32."""
    return build.op("Cast", build.op("Shape", value, start=axis, end=axis + 1), to=_INT32)


def _int64(build: Builder, value: Any) -> Any:
    return build.op("Cast", value, to=_INT64)


#: Whether a turn is the first one: known when the model is loaded, a truth, or None: no.
Begins = Any
#: turn(build, begins, rows, own) returns whether to go on, the states and rows after it, and what is kept of each turn.
Turn = Callable[[Builder, Begins, Rows, list[Any]], tuple[Any, list[Any], Rows, list[Any]]]


def _turns(build: Builder, trips: Any, own: list[Any], first: Rows, turn: Turn) -> tuple[list[Any], list[Any]]:
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


def _trips(search: _Search, build: Builder, begun: Any) -> Any:
    """How many tokens texts [rows, positions] may get."""
    room = build.op("Sub", search["max_length"], _count(build, begun, 1))
    return _int64(build, build.op("Reshape", build.op("Max", room, np.array([0], np.int32)), np.array([], np.int64)))


def _padded(search: _Search, build: Builder, sequences: Any, axis: int) -> Any:
    """Sequences along their last axis, up to max_length."""
    room = build.op("Sub", search["max_length"], _count(build, sequences, axis))
    pads = build.op("Concat", np.array([0] * (2 * axis + 1)), _int64(build, build.op("Reshape", room, _LAST)), axis=0)
    return build.op("Pad", sequences, pads, search.pad)


def _any(build: Builder, truths: Any) -> Any:
    return build.op(
        "Greater", build.op("ReduceMax", build.op("Cast", truths, to=_INT32), keepdims=0), np.array(0, np.int32)
    )


_COMMON = ("repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask")


@lowering("GreedySearch", domain=MICROSOFT)
def greedy_search(node: ir.Node, build: Builder) -> Any:
    """Each turn appends the likeliest token; rows that have ended get padding."""
    search = _Search(node, ("input_ids", "max_length", "min_length", *_COMMON))

    def likeliest(build: Builder, scores: Any, number: Any) -> Any:
        return build.op("ArgMax", scores, axis=1, keepdims=0)

    return _one_by_one(search, build, likeliest) if search.like_gpt2() else None


@lowering("Sampling", domain=MICROSOFT)
def sampling(node: ir.Node, build: Builder) -> Any:
    """Each turn appends a token drawn from the likeliest ones."""
    search = _Search(node, ("input_ids", "max_length", "min_length", *_COMMON, "presence_mask", "seed"))
    if not search.like_gpt2() or len(node.outputs) > 1:  # onnxruntime's CPU gives no filtered_logits either
        return None
    texts = build.op("Shape", search["input_ids"], start=0, end=1)
    numbers = uniform(build, search["seed"], _trips(search, build, search["input_ids"]), texts)
    top, keep = search.number("top_p", 0.0), search.attribute("min_tokens_to_keep")
    filtered = search.number("filter_value", -1e20)
    likely = likely_first if search.attribute("custom") else unlikely_first

    def drawn(build: Builder, scores: Any, number: Any) -> Any:
        scores = likely(build, scores, top, keep, filtered)
        return draw(build, scores, build.op("Gather", numbers, number, axis=0))

    return _one_by_one(search, build, drawn)


def _one_by_one(search: _Search, build: Builder, choose: Callable[[Builder, Any, Any], Any]) -> Any:
    """Append `choose(build, scores, number of the turn)` in each turn."""
    first = search.prompt(build)
    never = build.op("Equal", _first_column(build, first.states()[1]), np.array([-1], np.int32))

    def turn(build: Builder, begins: Begins, rows: Rows, own: list[Any]) -> tuple[Any, list[Any], Rows, list[Any]]:
        sequences, ended = own
        scores, caches = rows.decoded(build)
        scores = search.processed(build, scores, sequences, begins, search["prefix_vocab_mask"])
        number = build.op("Sub", *(build.op("Shape", x, start=1, end=2) for x in (sequences, first.tokens)))
        number = build.op("Squeeze", number, np.array([0]))
        token = build.op("Cast", choose(build, scores, number), to=_INT32)
        ended = build.op("Or", ended, build.op("Equal", token, search.eos))
        column = build.op("Unsqueeze", build.op("Where", ended, search.pad, token), np.array([1]))
        grown = build.op("Concat", sequences, column, axis=1)
        after = rows.after(build, grown, column, caches)
        return _any(build, build.op("Not", ended)), [grown, ended], after, []

    (texts, _), _ = _turns(build, _trips(search, build, first.tokens), [first.tokens, never], first, turn)
    return _padded(search, build, texts, 1)


@dataclass(frozen=True)
class _Beams:
    """Numbers of the search: beams of a text, twice as many candidates, and what a longer text is divided by."""

    count: Any
    twice: Any
    penalty: Any
    early: bool

    def length(self, build: Builder, sequences: Any) -> Any:
        """What the score of a text is divided by, [1]."""
        size = build.op("Cast", build.op("Shape", sequences, start=1, end=2), to=_FLOAT)
        return size if self.penalty is None else build.op("Pow", size, self.penalty)

    def bases(self, build: Builder, texts: Any, each: Any) -> Any:
        """The number of the first row of each text, [texts, 1], where a text has `each` rows."""
        count = build.op("Reshape", _count(build, texts, 0), np.array([], np.int64))
        return build.op(
            "Unsqueeze",
            build.op("Mul", build.op("Range", np.array(0, np.int32), count, np.array(1, np.int32)), each),
            np.array([1]),
        )


def _best(build: Builder, beams: _Beams, kept: tuple[Any, Any], found: tuple[Any, Any], most: Any) -> tuple[Any, Any]:
    """The best of finished texts and new ones, each as scores [texts, some] and tokens [texts, some, positions]."""
    scores = build.op("Concat", kept[0], found[0], axis=1)
    tokens = build.op("Concat", kept[1], found[1], axis=1)
    best, places = build.op("TopK", scores, _int64(build, most), axis=1, outputs=2)
    each = _count(build, scores, 1)
    rows = build.op("Add", beams.bases(build, scores, each), build.op("Cast", places, to=_INT32))
    positions = build.op("Shape", tokens, start=2, end=3)
    flat = build.op("Reshape", tokens, build.op("Concat", _LAST, positions, axis=0))
    return best, build.op("Gather", flat, rows, axis=0)


_BEAM_INPUTS = (
    *("input_ids", "max_length", "min_length", "num_beams", "num_return_sequences", "length_penalty"),
    *(*_COMMON, "decoder_input_ids", "logits_processor"),
    *("cross_qk_layer_head", "extra_decoding_ids", "temperature"),
)


@lowering("BeamSearch", "WhisperBeamSearch", domain=MICROSOFT)
def beam_search(node: ir.Node, build: Builder) -> Any:
    """Each turn looks at twice as many candidates as there are beams: those that end a text are kept with their score
    by length, as many as there are beams; the best of the others go on.
    """
    search = _Search(node, _BEAM_INPUTS)
    form = search.encoder_form()
    unknown = any(
        search[name] is not None for name in ("logits_processor", "cross_qk_layer_head", "extra_decoding_ids")
    )
    if unknown or len(node.outputs) > 3:
        return None
    if form is None and (search["decoder_input_ids"] is not None or not search.like_gpt2()):
        return None
    count = build.op("Reshape", search["num_beams"], _LAST)
    early = search.attribute("early_stopping") != 0
    beams = _Beams(count, build.op("Mul", count, np.array([2], np.int32)), search["length_penalty"], early)
    every = build.op("Mul", _count(build, search["input_ids"], 0), count)
    rows = build.op(
        "Range", np.array(0, np.int32), build.op("Reshape", every, np.array([], np.int64)), np.array(1, np.int32)
    )
    texts = build.op("Div", rows, count)
    first = search.prompt(build, texts) if form is None else search.encoded(form, build, texts)
    prefix_mask = search["prefix_vocab_mask"]
    prefix_mask = None if prefix_mask is None else build.op("Gather", prefix_mask, texts, axis=0)
    # At first all beams of a text are the same: only one of them counts.
    others = build.op("Greater", build.op("Sub", rows, build.op("Mul", texts, count)), np.array([0], np.int32))
    begin = build.op("Where", others, np.array([-1e9], np.float32), np.array([0], np.float32))
    grid = build.op("Concat", _LAST, _int64(build, count), axis=0)
    nothing = build.op("Add", build.op("Mul", build.op("Reshape", begin, grid), np.array(0, np.float32)), _LOWEST)
    size = build.op("Shape", first.tokens, start=1, end=2)
    unfinished = build.op("Reshape", first.tokens, build.op("Concat", grid, size, axis=0))
    never = build.op("Greater", _first_column(build, nothing), np.array([0], np.float32))

    def turn(build: Builder, begins: Begins, rows: Rows, own: list[Any]) -> tuple[Any, list[Any], Rows, list[Any]]:
        sequences, totals, *kept, done = own
        logits, caches = rows.decoded(build)
        scores = build.op("LogSoftmax", logits, axis=-1)
        scores = search.processed(build, scores, sequences, begins, prefix_mask)
        vocabulary = _count(build, scores, 1)
        scores = build.op("Add", scores, build.op("Unsqueeze", totals, np.array([1])))
        seen = []
        if len(node.outputs) > 2:
            seen = [build.op("Reshape", scores, build.op("Concat", grid, _int64(build, vocabulary), axis=0))]
        wide = build.op("Reshape", scores, build.op("Concat", build.op("Shape", done), _LAST, axis=0))
        best, places = build.op("TopK", wide, _int64(build, beams.twice), axis=1, outputs=2)
        places = build.op("Cast", places, to=_INT32)
        beam = build.op("Div", places, vocabulary)
        tokens = build.op("Sub", places, build.op("Mul", beam, vocabulary))
        sources = build.op("Add", beams.bases(build, done, beams.count), beam)
        ends = build.op("Equal", tokens, search.eos)
        twice = build.op("Reshape", beams.twice, np.array([], np.int64))
        ranks = build.op("Range", np.array(0, np.int32), twice, np.array(1, np.int32))
        # Texts that end here.
        length = beams.length(build, sequences)
        counts = build.op("And", ends, build.op("Less", ranks, beams.count))
        counts = build.op("And", counts, build.op("Unsqueeze", build.op("Not", done), np.array([1])))
        ended = build.op("Where", counts, build.op("Div", best, length), _LOWEST)
        found = ended, build.op("Gather", sequences, sources, axis=0)
        finished, texts = _best(build, beams, (kept[0], kept[1]), found, beams.count)
        texts = _with_column(build, texts, search.pad)
        worst = build.op("ReduceMin", finished, np.array([1]), keepdims=0)
        settled = build.op("Greater", worst, _LOWEST)
        if not beams.early:
            # Of this text: onnxruntime looks at scores of the texts before it in the batch.
            possible = build.op("Div", _first_column(build, best), length)
            settled = build.op("And", settled, build.op("GreaterOrEqual", worst, possible))
        done = build.op("Or", done, settled)
        # Beams that go on: the first ones that do not end.
        order = build.op(
            "Cast", build.op("Where", ends, np.array([0], np.int32), build.op("Sub", twice, ranks)), to=_FLOAT
        )
        _, chosen = build.op("TopK", order, _int64(build, beams.count), axis=1, outputs=2)
        totals, column, sources = (
            build.op("Reshape", build.op("GatherElements", value, chosen, axis=1), _LAST)
            for value in (best, tokens, sources)
        )
        column = build.op("Unsqueeze", column, np.array([1]))
        caches = [build.op("Gather", cache, sources, axis=rows.cache_axis) for cache in caches]
        grown = build.op("Concat", build.op("Gather", sequences, sources, axis=0), column, axis=1)
        after = rows.after(build, grown, column, caches)
        return _any(build, build.op("Not", done)), [grown, totals, finished, texts, done], after, seen

    own, trips = [first.tokens, begin, nothing, unfinished, never], _trips(search, build, first.tokens)
    (sequences, totals, *kept, done), seen = _turns(build, trips, own, first, turn)
    open_texts = build.op("Unsqueeze", build.op("Not", done), np.array([1]))
    by_length = build.op("Reshape", build.op("Div", totals, beams.length(build, sequences)), grid)
    size = build.op("Shape", sequences, start=1, end=2)
    last = build.op("Where", open_texts, by_length, _LOWEST)
    found = last, build.op("Reshape", sequences, build.op("Concat", grid, size, axis=0))
    most = build.op("Reshape", search["num_return_sequences"], _LAST)
    scores, texts = _best(build, beams, (kept[0], kept[1]), found, most)
    every_turn = [_for_turns(build, trips, value) for value in seen]
    return (_padded(search, build, texts, 2), scores, *every_turn)[: len(node.outputs)]


def _for_turns(build: Builder, trips: Any, seen: Any) -> Any:
    """What was kept of each turn, and zeros for those that were not wanted any more."""
    room = build.op("Sub", build.op("Reshape", trips, _LAST), build.op("Shape", seen, start=0, end=1))
    pads = build.op("Concat", np.array([0] * 4), room, np.array([0] * 3), axis=0)
    return build.op("Pad", seen, pads)


def _with_column(build: Builder, texts: Any, token: np.ndarray) -> Any:
    return build.op("Pad", texts, np.array([0, 0, 0, 0, 0, 1]), token)


def _first_column(build: Builder, value: Any) -> Any:
    return build.op("Gather", value, np.array(0), axis=1)
