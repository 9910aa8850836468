"""When tensors are alive, and how many bytes are at each node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from py_ort.ops.builder import dims, rank

_NEAR = 24  # nodes between the first and the last that write into a tensor of unknown size
_MANY = 10_000  # nodes, from which on nobody adds up what is alive at each of them


class _Held(NamedTuple):
    begin: int
    end: int
    size: int


class Lifetimes:
    """The tensors of a graph, for what makes several of them one: that one is there from the first to the last of them.

    A tensor made early for what comes into it late may cost more than a copy.

    Attributes:
        position: The place of each node in the graph's order.
    """

    def __init__(self, graph: ir.Graph) -> None:
        """Look at a graph as it is."""
        self.position = {node: i for i, node in enumerate(graph)}
        values = [value for node in graph for value in node.outputs if value.uses() or value.is_graph_output()]
        self._held = {value: self._find(value) for value in (*graph.inputs, *values)}
        self._alive: np.ndarray | None = None
        if len(self.position) > _MANY or any(held.size < 0 for held in self._held.values()):
            return
        changes = np.zeros(len(self.position) + 1, np.int64)
        for held in self._held.values():
            _add(changes, held, held.size)
        self._alive = np.cumsum(changes)[:-1]
        self._most = int(self._alive.max(initial=0))

    def joined(self, parts: Sequence[ir.Value], concat: ir.Node) -> np.ndarray | bool | None:
        """Say what would be alive if the output of `concat` were made of `parts` in place; None if that is too much."""
        return self._with(*self._change(parts, concat))

    def _with(self, before: Sequence[_Held], after: _Held) -> np.ndarray | bool | None:
        if self._alive is None:
            return max(held.begin for held in before) - after.begin <= _NEAR or None
        changes = np.zeros(len(self.position) + 1, np.int64)
        for held in before:
            _add(changes, held, -held.size)
        _add(changes, after, after.size)
        alive: np.ndarray = self._alive + np.cumsum(changes)[:-1]
        return None if int(alive.max(initial=0)) > self._most else alive

    def join(self, parts: Sequence[ir.Value], concat: ir.Node) -> None:
        """Take note of it."""
        alive = self.joined(parts, concat)
        if isinstance(alive, np.ndarray):
            self._alive = alive
        _, after = self._change(parts, concat)
        for value in parts:
            del self._held[value]
        self._held[concat.outputs[0]] = after

    def merge(self, values: Sequence[ir.Value]) -> bool:
        """Let the first of these be all of them, unless that is too much."""
        before = [self._held[value] for value in values]
        after = _Held(min(h.begin for h in before), max(h.end for h in before), sum(h.size for h in before))
        alive = self._with(before, after)
        if alive is None:
            return False
        self._alive = alive if isinstance(alive, np.ndarray) else None
        self._held |= {values[0]: after}
        return True

    def renamed(self, old: ir.Value, new: ir.Value) -> None:
        """What was one value is another one now."""
        self._held[new] = self._held.pop(old)

    def _change(self, parts: Sequence[ir.Value], concat: ir.Node) -> tuple[list[_Held], _Held]:
        """What is there now, and what would be instead."""
        whole = self._held[concat.outputs[0]]
        before = [*(self._held[value] for value in parts), whole]
        return before, _Held(min(h.begin for h in before), max(h.end for h in before), whole.size)

    def _find(self, value: ir.Value) -> _Held:
        made, last = value.producer(), len(self.position) - 1
        begin = 0 if made is None else self.position[made]
        end = max([begin, *(self.position.get(user, last) for user, _ in value.uses())])
        return _Held(begin, last if value.is_graph_output() else end, _bytes(value))


def _add(changes: np.ndarray, held: _Held, size: int) -> None:
    changes[held.begin] += size
    changes[held.end + 1] -= size


def _bytes(value: ir.Value) -> int:
    """Its size; -1 where that is unknown."""
    known = [d for d in dims(value) or [] if isinstance(d, int)]
    if value.dtype is None or len(known) != rank(value):
        return -1
    return math.prod(known) * max(1, math.ceil(value.dtype.itemsize))
