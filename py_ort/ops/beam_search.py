"""Searches with beams: BeamSearch and WhisperBeamSearch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.operators import MICROSOFT, lowering
from py_ort.ops.searches import (
    COMMON,
    FLOAT,
    INT32,
    LAST,
    LOWEST,
    Begins,
    Search,
    any_of,
    count_of,
    first_column,
    int64,
    padded,
    trips_of,
    turns,
)
from py_ort.ops.text_decoders import Rows


@dataclass(frozen=True)
class _Beams:
    """Numbers of the search: beams of a text, twice as many candidates, and what a longer text is divided by."""

    count: Any
    twice: Any
    penalty: Any
    early: bool

    def length(self, build: Builder, sequences: Any) -> Any:
        """Return the divisor of a text's score, [1]."""
        size = build.op("Cast", build.op("Shape", sequences, start=1, end=2), to=FLOAT)
        return size if self.penalty is None else build.op("Pow", size, self.penalty)

    def bases(self, build: Builder, texts: Any, each: Any) -> Any:
        """The number of the first row of each text, [texts, 1], where a text has `each` rows."""
        count = build.op("Reshape", count_of(build, texts, 0), np.array([], np.int64))
        return build.op(
            "Unsqueeze",
            build.op("Mul", build.op("Range", np.array(0, np.int32), count, np.array(1, np.int32)), each),
            np.array([1]),
        )


def _best(build: Builder, beams: _Beams, kept: tuple[Any, Any], found: tuple[Any, Any], most: Any) -> tuple[Any, Any]:
    """The best of finished texts and new ones, each as scores [texts, some] and tokens [texts, some, positions]."""
    scores = build.op("Concat", kept[0], found[0], axis=1)
    tokens = build.op("Concat", kept[1], found[1], axis=1)
    best, places = build.op("TopK", scores, int64(build, most), axis=1, outputs=2)
    each = count_of(build, scores, 1)
    rows = build.op("Add", beams.bases(build, scores, each), build.op("Cast", places, to=INT32))
    positions = build.op("Shape", tokens, start=2, end=3)
    flat = build.op("Reshape", tokens, build.op("Concat", LAST, positions, axis=0))
    return best, build.op("Gather", flat, rows, axis=0)


_BEAM_INPUTS = (
    *("input_ids", "max_length", "min_length", "num_beams", "num_return_sequences", "length_penalty"),
    *(*COMMON, "decoder_input_ids", "logits_processor"),
    *("cross_qk_layer_head", "extra_decoding_ids", "temperature"),
)


@lowering("BeamSearch", "WhisperBeamSearch", domain=MICROSOFT)
def beam_search(node: ir.Node, build: Builder) -> Any:
    """Each turn looks at twice as many candidates as there are beams: those that end a text are kept with their score
    by length, as many as there are beams; the best of the others go on.
    """
    search = Search(node, _BEAM_INPUTS)
    form = search.encoder_form()
    unknown = any(
        search[name] is not None for name in ("logits_processor", "cross_qk_layer_head", "extra_decoding_ids")
    )
    if unknown or len(node.outputs) > 3:
        return None
    if form is None and (search["decoder_input_ids"] is not None or not search.like_gpt2()):
        return None
    count = build.op("Reshape", search["num_beams"], LAST)
    early = search.attribute("early_stopping") != 0
    beams = _Beams(count, build.op("Mul", count, np.array([2], np.int32)), search["length_penalty"], early)
    every = build.op("Mul", count_of(build, search["input_ids"], 0), count)
    rows = build.op(
        "Range", np.array(0, np.int32), build.op("Reshape", every, np.array([], np.int64)), np.array(1, np.int32)
    )
    texts = build.op("Div", rows, count)
    first = search.prompt(build, texts) if form is None else search.encoded(form, build, texts)
    prefix_mask = search["prefix_vocab_mask"]
    prefix_mask = None if prefix_mask is None else build.op("Gather", prefix_mask, texts, axis=0)
    # All beams of a text are equal at first, so only one of them counts.
    others = build.op("Greater", build.op("Sub", rows, build.op("Mul", texts, count)), np.array([0], np.int32))
    begin = build.op("Where", others, np.array([-1e9], np.float32), np.array([0], np.float32))
    grid = build.op("Concat", LAST, int64(build, count), axis=0)
    nothing = build.op("Add", build.op("Mul", build.op("Reshape", begin, grid), np.array(0, np.float32)), LOWEST)
    size = build.op("Shape", first.tokens, start=1, end=2)
    unfinished = build.op("Reshape", first.tokens, build.op("Concat", grid, size, axis=0))
    never = build.op("Greater", first_column(build, nothing), np.array([0], np.float32))

    def turn(build: Builder, begins: Begins, rows: Rows, own: list[Any]) -> tuple[Any, list[Any], Rows, list[Any]]:
        sequences, totals, *kept, done = own
        logits, caches = rows.decoded(build)
        scores = build.op("LogSoftmax", logits, axis=-1)
        scores = search.processed(build, scores, sequences, begins, prefix_mask)
        vocabulary = count_of(build, scores, 1)
        scores = build.op("Add", scores, build.op("Unsqueeze", totals, np.array([1])))
        seen = []
        if len(node.outputs) > 2:
            seen = [build.op("Reshape", scores, build.op("Concat", grid, int64(build, vocabulary), axis=0))]
        wide = build.op("Reshape", scores, build.op("Concat", build.op("Shape", done), LAST, axis=0))
        best, places = build.op("TopK", wide, int64(build, beams.twice), axis=1, outputs=2)
        places = build.op("Cast", places, to=INT32)
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
        ended = build.op("Where", counts, build.op("Div", best, length), LOWEST)
        found = ended, build.op("Gather", sequences, sources, axis=0)
        finished, texts = _best(build, beams, (kept[0], kept[1]), found, beams.count)
        texts = _with_column(build, texts, search.pad)
        worst = build.op("ReduceMin", finished, np.array([1]), keepdims=0)
        settled = build.op("Greater", worst, LOWEST)
        if not beams.early:
            # Of this text: onnxruntime looks at scores of the texts before it in the batch.
            possible = build.op("Div", first_column(build, best), length)
            settled = build.op("And", settled, build.op("GreaterOrEqual", worst, possible))
        done = build.op("Or", done, settled)
        # Beams that go on: the first ones that do not end.
        order = build.op(
            "Cast", build.op("Where", ends, np.array([0], np.int32), build.op("Sub", twice, ranks)), to=FLOAT
        )
        _, chosen = build.op("TopK", order, int64(build, beams.count), axis=1, outputs=2)
        totals, column, sources = (
            build.op("Reshape", build.op("GatherElements", value, chosen, axis=1), LAST)
            for value in (best, tokens, sources)
        )
        column = build.op("Unsqueeze", column, np.array([1]))
        caches = [build.op("Gather", cache, sources, axis=rows.cache_axis) for cache in caches]
        grown = build.op("Concat", build.op("Gather", sequences, sources, axis=0), column, axis=1)
        after = rows.after(build, grown, column, caches)
        return any_of(build, build.op("Not", done)), [grown, totals, finished, texts, done], after, seen

    own, trips = [first.tokens, begin, nothing, unfinished, never], trips_of(search, build, first.tokens)
    (sequences, totals, *kept, done), seen = turns(build, trips, own, first, turn)
    open_texts = build.op("Unsqueeze", build.op("Not", done), np.array([1]))
    by_length = build.op("Reshape", build.op("Div", totals, beams.length(build, sequences)), grid)
    size = build.op("Shape", sequences, start=1, end=2)
    last = build.op("Where", open_texts, by_length, LOWEST)
    found = last, build.op("Reshape", sequences, build.op("Concat", grid, size, axis=0))
    most = build.op("Reshape", search["num_return_sequences"], LAST)
    scores, texts = _best(build, beams, (kept[0], kept[1]), found, most)
    every_turn = [_for_turns(build, trips, value) for value in seen]
    return (padded(search, build, texts, 2), scores, *every_turn)[: len(node.outputs)]


def _for_turns(build: Builder, trips: Any, seen: Any) -> Any:
    """Return the values kept in each turn, and zeros for turns after the end."""
    room = build.op("Sub", build.op("Reshape", trips, LAST), build.op("Shape", seen, start=0, end=1))
    pads = build.op("Concat", np.array([0] * 4), room, np.array([0] * 3), axis=0)
    return build.op("Pad", seen, pads)


def _with_column(build: Builder, texts: Any, token: np.ndarray) -> Any:
    return build.op("Pad", texts, np.array([0, 0, 0, 0, 0, 1]), token)
