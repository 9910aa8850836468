"""Drawing tokens as onnxruntime does: the same ones for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ops.loops import loop

_INT64, _DOUBLE = int(ir.DataType.INT64), int(ir.DataType.DOUBLE)
# C++'s minstd_rand0, and how many numbers it gives.
_FACTOR, _MODULUS = 16807, 2**31 - 1
_NUMBERS = float(_MODULUS - 1)


def uniform(build: Builder, seed: Any, iterations: Any, rows: Any) -> Any:
    """Numbers in [0, 1) for each iteration and row, [iterations, rows] of float64: two of the generator's make one.

    `seed`: [1] of int32, or None; `iterations` a scalar, `rows` [1], of int64.
    """
    state = np.array([0]) if seed is None else build.op("Cast", seed, to=_INT64)
    state = build.op("Mod", build.op("Reshape", state, np.array([], np.int64)), np.array(_MODULUS))
    state = build.op("Max", state, np.array(1))
    count = build.op("Mul", build.op("Mul", iterations, build.op("Squeeze", rows, np.array([0]))), np.array(2))

    def step(build: Builder, number: Any, states: list[Any]) -> tuple[Any, list[Any], list[Any]]:
        after = build.op("Mod", build.op("Mul", states[0], np.array(_FACTOR)), np.array(_MODULUS))
        return build.constant(np.array(True)), [after], [after]

    _, (numbers,) = loop(build, count, [state], step)
    pairs = build.op("Concat", build.op("Reshape", iterations, np.array([-1])), rows, np.array([2]), axis=0)
    pairs = build.op("Reshape", build.op("Sub", numbers, np.array(1)), pairs)
    pairs = build.op("Cast", pairs, to=_DOUBLE)
    sums = build.op("ReduceSum", build.op("Mul", pairs, np.array([1, _NUMBERS])), np.array([2]), keepdims=0)
    return build.op("Div", sums, np.array(_NUMBERS * _NUMBERS))


def unlikely_first(build: Builder, scores: Any, top: float, keep: int, filtered: float) -> Any:
    """Scores [rows, vocabulary] where the least likely tokens, of 1 - `top` in all, have the value `filtered`.

    The last `keep` ones stay.
    """
    ordered, places = _ordered(build, scores, 0)
    sums = build.op("CumSum", build.op("Softmax", ordered, axis=-1), np.array(1))
    goes = build.op("LessOrEqual", sums, np.array(np.float32(1) - np.float32(top)))
    if keep:
        size = build.op("Squeeze", build.op("Shape", scores, start=1, end=2), np.array([0]))
        rank = build.op("Range", np.array(0), size, np.array(1))
        goes = build.op("And", goes, build.op("Less", rank, build.op("Sub", size, np.array(keep))))
    return _without(build, scores, ordered, places, goes, filtered)


def likely_first(build: Builder, scores: Any, top: float, keep: int, filtered: float) -> Any:
    """Scores where only the likeliest tokens, of `top` in all and one more, keep theirs (onnxruntime's `custom`)."""
    ordered, places = _ordered(build, scores, 1)
    before = build.op("CumSum", build.op("Softmax", ordered, axis=-1), np.array(1), exclusive=1)
    goes = build.op("Greater", before, np.array(top, np.float32))
    return _without(build, scores, ordered, places, goes, filtered)


def _ordered(build: Builder, scores: Any, largest: int) -> Any:
    size = build.op("Shape", scores, start=1, end=2)
    return build.op("TopK", scores, size, axis=1, largest=largest, outputs=2)


def _without(build: Builder, scores: Any, ordered: Any, places: Any, goes: Any, filtered: float) -> Any:
    left = build.op("Where", goes, np.array(filtered, np.float32), ordered)
    return build.op("ScatterElements", scores, places, left, axis=1)


def draw(build: Builder, scores: Any, numbers: Any) -> Any:
    """The token of each row [rows] of int64 that its number in [0, 1) falls on."""
    chances = build.op("Cast", build.op("Softmax", scores, axis=-1), to=_DOUBLE)
    sums = build.op("CumSum", chances, np.array(1))
    total = build.op("ReduceMax", sums, np.array([1]), keepdims=1)
    reached = build.op("LessOrEqual", sums, build.op("Mul", build.op("Unsqueeze", numbers, np.array([1])), total))
    return build.op("ReduceSum", build.op("Cast", reached, to=_INT64), np.array([1]), keepdims=0)
