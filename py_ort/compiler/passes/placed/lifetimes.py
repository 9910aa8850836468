"""The nodes between which each tensor is alive, and the bytes that are alive at each node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.placed.estimates import SYMBOLS, Estimates
from py_ort.ir.graph import attribute
from py_ort.ir.operators import operator
from py_ort.schema.dialect import INTO


class _Held(NamedTuple):
    """The memory of a tensor, which is alive from node `begin` to node `end`.

    `known` is False if the size depends on data. `size` has the bytes for each number of `SYMBOLS`, twice: the first
    time 0 unless `known`, the second time estimated in any case.
    """

    begin: int
    end: int
    size: np.ndarray
    known: bool


class Lifetimes:
    """The lifetimes of a graph's tensors, for passes that let several tensors share one buffer instead of a copy.

    The buffer is alive from its first tensor to its last, which may cost more memory than the copy. A pass must
    therefore not raise the peak, the bytes at the node where most are alive. Symbolic sizes are estimated. Sizes that
    depend on data are estimated, too, but count only if the shared tensors have such sizes.

    Attributes:
        position: The place of each node in the graph's order.
    """

    def __init__(self, graph: ir.Graph) -> None:
        """Look at a graph as it is."""
        self.position = {node: i for i, node in enumerate(graph)}
        self._held: dict[ir.Value, _Held] = {}
        self._alive = np.zeros((2 * len(SYMBOLS), len(self.position) + 1))
        estimates, last, views = Estimates(), len(self.position) - 1, _views(graph)
        for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
            if not value.uses() and not value.is_graph_output():
                continue
            made = value.producer()
            begin = 0 if made is None else self.position[made]
            end = max([begin, *(self.position.get(user, last) for user, _ in value.uses())])
            if value.is_graph_output():
                end = last
            whole = views.get(value)
            if whole in self._held:
                self._held[whole] = self._held[whole]._replace(end=max(end, self._held[whole].end))
            else:
                size, known = estimates.bytes(value)
                self._held[value] = _Held(begin, end, np.concatenate([size if known else 0 * size, size]), known)
        for held in self._held.values():
            self._alive[:, held.begin] += held.size
            self._alive[:, held.end + 1] -= held.size
        self._alive = np.cumsum(self._alive, axis=1)
        self._most = self._alive.max(axis=1, keepdims=True)

    def joinable(self, parts: Sequence[ir.Value], concat: ir.Node) -> bool:
        """Return True if `parts` may be written into the output of `concat` in place."""
        return self._change(*self._joined(parts, concat)) is not None

    def join(self, parts: Sequence[ir.Value], concat: ir.Node) -> None:
        """Take note of it."""
        before, after = self._joined(parts, concat)
        self._apply(self._change(before, after), after)
        for value in parts:
            del self._held[value]
        self._held[concat.outputs[0]] = after

    def merge(self, values: Sequence[ir.Value]) -> bool:
        """Let the first of these be all of them, side by side, unless that is too much."""
        before = [self._held[value] for value in values]
        after = _over(before, np.sum([held.size for held in before], axis=0))
        change = self._change(before, after)
        if change is None:
            return False
        self._apply(change, after)
        self._held[values[0]] = after
        return True

    def renamed(self, old: ir.Value, new: ir.Value) -> None:
        """Replace one value by another."""
        self._held[new] = self._held.pop(old)

    def _joined(self, parts: Sequence[ir.Value], concat: ir.Node) -> tuple[list[_Held], _Held]:
        """Return the values held now, and the value that would replace them."""
        whole = self._held[concat.outputs[0]]
        before = [*(self._held[value] for value in parts), whole]
        return before, _over(before, whole.size)

    def _change(self, before: Sequence[_Held], after: _Held) -> np.ndarray | None:
        """Return the added memory at each node, from the first to the last; None if it is too much."""
        added = np.zeros((len(after.size), after.end - after.begin + 1))
        for held, sign in (*((each, -1) for each in before), (after, 1)):
            added[:, held.begin - after.begin : held.end - after.begin + 1] += sign * held.size[:, None]
        rows = slice(len(SYMBOLS)) if after.known else slice(len(SYMBOLS), None)
        alive = self._alive[rows, after.begin : after.end + 1] + added[rows]
        return None if (alive > self._most[rows]).any() else added

    def _apply(self, change: np.ndarray | None, after: _Held) -> None:
        assert change is not None
        self._alive[:, after.begin : after.end + 1] += change


def _over(before: Sequence[_Held], size: np.ndarray) -> _Held:
    begin, end = min(held.begin for held in before), max(held.end for held in before)
    return _Held(begin, end, size, all(held.known for held in before))


def _views(graph: ir.Graph) -> dict[ir.Value, ir.Value]:
    """Return the values that share another value's memory, and that value: its reshaped source, or a wider tensor."""
    found: dict[ir.Value, ir.Value] = {}
    for node in graph:
        at = 0 if operator(node.domain, node.op_type).view else attribute(node, INTO)
        source = None if at is None else node.inputs[at]
        if source is not None:
            found[node.outputs[0]] = found.get(source, source)
    return found
