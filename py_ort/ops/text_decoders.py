"""Decoders that searches run turn by turn, in the forms that onnxruntime knows.

Like GPT-2: input_ids, position_ids, attention_mask and caches [2, batch, heads, positions, size] go in, logits and
longer caches come out. Like T5: an encoder runs once; its mask, perhaps its hidden states, and its caches go into each
turn of a decoder, which has own caches [batch, heads, positions, size] of keys and values. Like Whisper: the same of
sound, without a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.functions import inline, inline_settled
from py_ort.ir.graph import dims

_FLOAT = int(ir.DataType.FLOAT)
_LAST = np.array([-1])


class Rows(Protocol):
    """The next inputs of a decoder, for each row (a text, or a beam of one)."""

    @property
    def tokens(self) -> Any:
        """The first tokens of the text, and in a turn the tokens of that turn: int32 [rows, some]."""

    @property
    def begins_otherwise(self) -> bool:
        """True if another graph runs the first turn than the later turns."""

    @property
    def cache_axis(self) -> int:
        """The axis of caches that rows have."""

    def states(self) -> list[Any]:
        """The values that change from turn to turn."""

    def of(self, states: Sequence[Any]) -> Rows:
        """These rows in a turn with such states."""

    def decoded(self, build: Builder) -> tuple[Any, list[Any]]:
        """The logits [rows, vocabulary] of what comes next, as float32, and the caches then."""

    def after(self, build: Builder, texts: Any, column: Any, caches: list[Any]) -> Rows:
        """Return the inputs of the next turn, for texts [rows, positions] whose last tokens are `column` [rows, 1]."""


def _last(build: Builder, logits: Any) -> Any:
    return build.op("Cast", build.op("Gather", logits, np.array(-1), axis=1), to=_FLOAT)


def _names(values: Sequence[ir.Value]) -> list[str]:
    return [value.name or "" for value in values]


def _has_size(logits: ir.Value, size: int) -> bool:
    """Return True if the scores have this size; a search may give a smaller vocabulary than the decoder's."""
    known = dims(logits)
    return size <= 0 or known is None or not isinstance(known[-1], int) or known[-1] == size


def _empty(build: Builder, like: ir.Value, batch: Any, leading: Sequence[int]) -> Any:
    """A cache without a position for so many rows."""
    known = dims(like)
    assert known is not None and like.dtype is not None
    parts = [batch, np.array([known[-3], 0, known[-1]])]
    shape = build.op("Concat", *([np.array(leading)] if leading else []), *parts, axis=0)
    return build.op("ConstantOfShape", shape, value=np.zeros(1, like.dtype.numpy()))


def _sized(caches: Sequence[ir.Value], rank: int) -> bool:
    """Return True if the number of heads and their sizes are known."""
    shapes = [dims(value) for value in caches]
    return all(shape is not None and len(shape) == rank for shape in shapes) and all(
        isinstance(shape[i], int) for shape in shapes if shape for i in (-3, -1)
    )


def like_gpt2(graph: ir.Graph, vocabulary: int) -> bool:
    """Return True if a decoder has the form of GPT-2; `vocabulary` is the size that a search gives, 0 for none."""
    names, results = _names(graph.inputs), _names(graph.outputs)
    return (
        names[:3] == ["input_ids", "position_ids", "attention_mask"]
        and results[:1] == ["logits"]
        and len(names) - 2 == len(results)
        and all(name.startswith("past") for name in names[3:])
        and _has_size(graph.outputs[0], vocabulary)
        and _sized(graph.inputs[3:], 5)
    )


@dataclass(frozen=True)
class Prompted:
    """Rows of a decoder like GPT-2: tokens, their positions, a mask of all so far, caches."""

    begin: ir.Graph
    graph: ir.Graph
    tokens: Any
    positions: Any
    mask: Any
    caches: list[Any]
    cache_axis: int = 1

    @staticmethod
    def first(begin: ir.Graph, graph: ir.Graph, build: Builder, tokens: Any, positions: Any, mask: Any) -> Prompted:
        """Return the inputs of a prompt, which `begin` reads; `graph` reads the tokens after the prompt."""
        batch = build.op("Shape", tokens, start=0, end=1)
        caches = [_empty(build, value, batch, [2]) for value in begin.inputs[3:]]
        return Prompted(begin, graph, tokens, positions, mask, caches)

    @property
    def begins_otherwise(self) -> bool:
        return self.begin is not self.graph

    def states(self) -> list[Any]:
        return [self.tokens, self.positions, self.mask, *self.caches]

    def of(self, states: Sequence[Any]) -> Prompted:
        return Prompted(self.graph, self.graph, states[0], states[1], states[2], list(states[3:]))

    def decoded(self, build: Builder) -> tuple[Any, list[Any]]:
        if self.begins_otherwise:
            found = inline_settled(self.begin, self.states(), build)
        else:
            found = inline(self.graph, self.states(), build.anchor)
        return _last(build, found[0]), found[1:]

    def after(self, build: Builder, texts: Any, column: Any, caches: list[Any]) -> Prompted:
        positions = build.op("Add", build.op("Gather", self.positions, _LAST, axis=1), np.array([1], np.int32))
        ones = build.op("Add", build.op("Sub", column, column), np.array([1], np.int32))
        mask = build.op("Concat", self.mask, ones, axis=1)
        return Prompted(self.graph, self.graph, column, positions, mask, caches)


@dataclass(frozen=True)
class Encoded:
    """Rows of a decoder like T5's; `fixed` (text, mask, hidden states) and `cross` (caches) are the encoder's."""

    graph: ir.Graph
    fixed: list[Any]
    cross: list[Any]
    tokens: Any
    caches: list[Any]
    whole: bool
    logits: Any = None
    cache_axis: int = 0

    @property
    def begins_otherwise(self) -> bool:
        return self.logits is not None

    def states(self) -> list[Any]:
        return [self.tokens, *self.caches]

    def of(self, states: Sequence[Any]) -> Encoded:
        return replace(self, tokens=states[0], caches=list(states[1:]), logits=None)

    def decoded(self, build: Builder) -> tuple[Any, list[Any]]:
        if self.logits is not None:
            return _last(build, self.logits), self.caches
        found = inline(self.graph, [self.tokens, *self.fixed, *self.caches, *self.cross], build.anchor)
        return _last(build, found[0]), found[1:]

    def after(self, build: Builder, texts: Any, column: Any, caches: list[Any]) -> Encoded:
        return replace(self, tokens=texts if self.whole else column, caches=caches, logits=None)


_ENCODER_OUTPUTS = ["logits", "encoder_hidden_states"]


@dataclass(frozen=True)
class T5Form:
    """An encoder, its decoder, and how they fit.

    The older form's encoder takes the decoder's first turn as well. A decoder that points at what it copies takes the
    encoder's text.
    """

    encoder: ir.Graph
    decoder: ir.Graph
    takes_turn: bool
    takes_text: bool
    takes_states: bool
    caches: int

    @staticmethod
    def of(encoder: ir.Graph, decoder: ir.Graph, vocabulary: int, masked: bool) -> T5Form | None:
        """The form of two graphs, or None when they have none that is known; `masked`: of padded text, not of sound."""
        inputs, outputs = _names(encoder.inputs), _names(encoder.outputs)
        names, results = _names(decoder.inputs), _names(decoder.outputs)
        mask = ["encoder_attention_mask"] if masked else []
        takes_text = masked and names[1:2] == inputs[:1]
        read = ["input_ids", *inputs[: int(takes_text)], *mask]
        takes_turn = inputs[-1:] == ["decoder_input_ids"]
        takes_states = names[len(read) : len(read) + 1] == ["encoder_hidden_states"]
        caches = len(results) - 1
        first = len(read) + takes_states
        known = (
            inputs == ["encoder_input_ids", *mask, *(["decoder_input_ids"] if takes_turn else [])]
            and (masked or takes_turn)
            and outputs[: 2 * takes_turn] == _ENCODER_OUTPUTS[: 2 * takes_turn]
            and len(outputs) == (2 + 2 * caches if takes_turn else caches)
            and (takes_turn or not takes_states)
            and names[: len(read)] == read
            and results[:1] == ["logits"]
            and len(names) == first + 2 * caches
            and _has_size(decoder.outputs[0], vocabulary)
            and (takes_turn or _sized(decoder.inputs[first : first + caches], 4))
        )
        return T5Form(encoder, decoder, takes_turn, takes_text, takes_states, caches) if known else None

    def first(self, build: Builder, source: Any, mask: Any, begin: Any, copies: Any) -> Encoded:
        """Run the encoder once for each text; `copies` says of which text each row is.

        `mask` is None for sound; `begin` are the tokens that texts begin with, [texts, some].
        """
        masks = [] if mask is None else [mask]
        given = [source, *masks, begin] if self.takes_turn else [source, *masks]
        found = inline_settled(self.encoder, given, build)
        fixed = [*([source] if self.takes_text else []), *masks]
        begin, *found = (build.op("Gather", value, copies, axis=0) for value in (begin, *fixed, *found))
        fixed, found = found[: len(fixed)], found[len(fixed) :]
        read = dims(self.decoder.inputs[0])
        whole = read is None or len(read) < 2 or read[1] != 1
        if self.takes_turn:
            logits, hidden, *found = found
            fixed += [hidden] if self.takes_states else []
            own, cross = found[: self.caches], found[self.caches :]
            return Encoded(self.decoder, fixed, cross, begin, own, whole, logits)
        rows = build.op("Shape", begin, start=0, end=1)
        own = [_empty(build, value, rows, []) for value in self.decoder.inputs[1 + len(fixed) :][: self.caches]]
        return Encoded(self.decoder, fixed, found, begin, own, whole)
