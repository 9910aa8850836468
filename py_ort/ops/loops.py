"""Loops that lowerings make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import dims
from py_ort.ir.schemas import CANONICAL_OPSET

#: turn(build, number, states) returns whether to go on, the states after it, and what is kept of each turn.
Turn = Callable[[Builder, Any, list[Any]], tuple[Any, list[Any], list[Any]]]


def loop(
    build: Builder, trips: Any, states: Sequence[Any], turn: Turn, begin: Any = None
) -> tuple[list[Any], list[Any]]:
    """Add a Loop; returns the states after the last turn, and what was kept [turns, ...].

    `begin` says whether there is a first turn at all, if not always.
    """
    name = f"{build.anchor.name or build.anchor.op_type}_turns"
    number = ir.Value(name=f"{name}_number", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
    go = ir.Value(name=f"{name}_go", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    carried = []
    for i, state in enumerate(states):
        known = dims(state)
        shape = None if known is None else ir.Shape([None] * len(known))
        carried.append(ir.Value(name=f"{name}_state_{i}", type=state.type, shape=shape))
    anchor = ir.Node("", "Identity", [go], num_outputs=1)
    body = ir.Graph([number, go, *carried], [], nodes=[anchor], name=name)
    inner = Builder(anchor, origin=build.origin)
    goes_on, after, kept = turn(inner, number, carried)
    body.outputs.extend(inner.op("Identity", value) for value in (goes_on, *after, *kept))
    body.remove(anchor, safe=True)
    for made in inner.made:
        made.version = CANONICAL_OPSET if made.domain == "" else None
    for i, output in enumerate(body.outputs):
        output.name = f"{name}_after_{i}"
    begin = np.array(True) if begin is None else begin
    count = len(states) + len(kept)
    found = build.op("Loop", trips, begin, *states, outputs=count, body=ir.AttrGraph("body", body))
    found = [found] if count == 1 else list(found)
    return found[: len(states)], found[len(states) :]
