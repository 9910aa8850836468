"""AttnLSTM: an LSTM that also reads from a memory, by Bahdanau's attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ops.loops import loop
from py_ort.ops.recurrent import activations_of, as_attributes

OPERATORS = [Operator("AttnLSTM", domain=MICROSOFT)]

_INT64 = int(ir.DataType.INT64)
_WAYS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
#: W, R, B, the initial states and P of an LSTM, then QW, MW, V and AW.
_OF_DIRECTIONS = (1, 2, 3, 5, 6, 7, 8, 9, 10, 13)


@lowering("AttnLSTM", domain=MICROSOFT)
def attn_lstm(node: ir.Node, build: Builder) -> Any:
    """Each direction is a Loop, which does one step of an LSTM and looks into the memory in each iteration."""
    given = [*node.inputs, *[None] * (14 - len(node.inputs))]
    if any(value is None for value in given[8:12]):
        return None
    x, lengths = given[0], given[4]
    steps = build.op("Shape", x, start=0, end=1)
    if lengths is None:
        lengths = build.op("Expand", steps, build.op("Shape", x, start=1, end=2))
    lengths = build.op("Cast", lengths, to=_INT64)
    memory, known = _memory(build, given[11], given[12])
    found = []
    for number, is_reverse in enumerate(_WAYS[attribute(node, "direction", "forward")]):
        weights = [
            build.op("Gather", value, np.array([number]), axis=0) if i in _OF_DIRECTIONS and value is not None else None
            for i, value in enumerate(given)
        ]
        way = _Way(lengths, memory, known, weights, _activations(node, number))
        read = _reversed(build, x, lengths) if is_reverse else x
        y, h, c = way.run(build, read, steps, hidden=attribute(node, "hidden_size"))
        found.append((_reversed(build, y, lengths) if is_reverse else y, h, c))
    ys, *states = zip(*found, strict=True)
    y = build.op("Concat", *(build.op("Unsqueeze", value, np.array([1])) for value in ys), axis=1)
    return (y, *(build.op("Concat", *state, axis=0) for state in states))[: len(node.outputs)]


def _reversed(build: Builder, x: Any, lengths: Any) -> Any:
    return build.op("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)


def _memory(build: Builder, memory: Any, lengths: Any) -> tuple[Any, Any]:
    """The memory [batch, steps, depth], zeros behind its end, and where it has something: [batch, steps], or None."""
    if lengths is None:
        return memory, None
    size = build.op("Squeeze", build.op("Shape", memory, start=1, end=2), np.array([0]))
    places = build.op("Range", np.array(0), size, np.array(1))
    ends = build.op("Unsqueeze", build.op("Cast", lengths, to=_INT64), np.array([1]))
    known = build.op("Less", places, ends)
    return build.op("Where", build.op("Unsqueeze", known, np.array([2])), memory, np.array(0, np.float32)), known


def _activations(node: ir.Node, number: int) -> dict[str, Any]:
    """The attributes of a direction's LSTM."""
    found = {name: attribute(node, name) for name in ("clip", "input_forget")}
    return {**found, **as_attributes(activations_of(node)[3 * number : 3 * number + 3])}


@dataclass(frozen=True)
class _Way:
    """One direction; `weights` are those of the operator's inputs that directions have, each with a first axis of 1."""

    lengths: Any
    memory: Any
    known: Any
    weights: list[Any]
    attributes: dict[str, Any]

    def run(self, build: Builder, x: Any, steps: Any, hidden: int) -> tuple[Any, Any, Any]:
        """Y [steps, batch, hidden], and the last states [1, batch, hidden]."""
        _, w, r, _, _, h, c, *_ = self.weights
        batch = build.op("Shape", x, start=1, end=2)
        empty = build.op("Expand", np.array(0, np.float32), build.op("Concat", [1], batch, [hidden], axis=0))
        width = build.op("Sub", build.op("Shape", w, start=2), build.op("Shape", x, start=2))
        nothing = build.op("Expand", np.array(0, np.float32), build.op("Concat", batch, width, axis=0))
        keys = build.op("MatMul", self.memory, self.weights[9])

        def iteration(build: Builder, number: Any, states: list[Any]) -> tuple[Any, list[Any], list[Any]]:
            h, c, found = states
            now = build.op("Concat", build.op("Gather", x, number, axis=0), found, axis=1)
            now = build.op("Unsqueeze", now, np.array([0]))
            _, new_h, new_c = build.op(
                "LSTM", now, w, r, self.weights[3], None, h, c, self.weights[7], outputs=3,
                hidden_size=hidden, **self.attributes,
            )  # fmt: skip
            found = self._found(build, new_h, keys)
            active = build.op("Unsqueeze", build.op("Less", number, self.lengths), np.array([1]))
            h, c = (build.op("Where", active, *pair) for pair in ((new_h, h), (new_c, c)))
            y = build.op("Where", active, build.op("Squeeze", h, np.array([0])), np.array(0, np.float32))
            return build.constant(np.array(True)), [h, c, found], [y]

        trips = build.op("Squeeze", steps, np.array([0]))
        states = [empty if h is None else h, empty if c is None else c, nothing]
        (h, c, _), (y,) = loop(build, trips, states, iteration)
        return y, h, c

    def _found(self, build: Builder, h: Any, keys: Any) -> Any:
        """Return the attention of the state [1, batch, hidden]: [batch, depth], or as wide as the attention layer."""
        query_weights, vector, layer = (self.weights[i] for i in (8, 10, 13))
        h = build.op("Squeeze", h, np.array([0]))
        query = build.op("MatMul", h, build.op("Squeeze", query_weights, np.array([0])))
        fit = build.op("Tanh", build.op("Add", keys, build.op("Unsqueeze", query, np.array([1]))))
        scores = build.op("ReduceSum", build.op("Mul", fit, vector), np.array([2]), keepdims=0)
        if self.known is not None:
            scores = build.op("Where", self.known, scores, np.array(-np.inf, np.float32))
        align = build.op("Unsqueeze", build.op("Softmax", scores, axis=-1), np.array([1]))
        context = build.op("Squeeze", build.op("MatMul", align, self.memory), np.array([1]))
        if layer is None:
            return context
        return build.op("MatMul", build.op("Concat", h, context, axis=1), build.op("Squeeze", layer, np.array([0])))
