"""Keys or values as attention reads them: heads repeated for groups of queries, KV caches joined with new rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.attention.head_views import Heads, heads_of
from py_ort.compiler.passes.match import made_by, nodes_reading, only_user, same_size, size_at
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins, rank, remove, replace_value, required
from py_ort.ir.shape_data import product

SWAPPED = (0, 1, 3, 2)


@dataclass
class Kept:
    """Keys or values [batch, heads, positions, size]; `transposed`: as [batch, heads, size, positions].

    `joined` is the Concat of `past` and `new`, if there is one.
    """

    value: ir.Value
    transposed: bool = False
    past: ir.Value | None = None
    new: ir.Value | None = None
    joined: ir.Node | None = None

    @property
    def count(self) -> Any:
        """The number of heads."""
        return size_at(self.value, 1)

    def heads(self) -> Heads | None:
        """Return the places of the heads, for all positions."""
        return heads_of(self.value, SWAPPED if self.transposed else (0, 1, 2, 3))

    def new_heads(self) -> Heads | None:
        """Return the places of the heads, for the new positions."""
        return heads_of(self.new)

    def plain(self, build: Builder) -> ir.Value:
        """Return all positions as [batch, heads, positions, size]."""
        if not self.transposed:
            return self.value
        made: ir.Value = build.op("Transpose", self.value, perm=list(SWAPPED))
        return made


def kept(value: ir.Value, user: ir.Node, transposed: bool) -> Kept:
    """Follow keys or values of `user` back through their Transpose, repetition and Concat."""
    reader = user
    if transposed:
        transpose = made_by(value, "Transpose")
        if transpose is None or tuple(attribute(transpose, "perm", ())) != SWAPPED:
            return Kept(value, transposed=True)
        reader, value = transpose, required(transpose.inputs[0])
    alone = only_user(reader.outputs[0]) is not None or reader is user
    repeated = unrepeated(value)
    if repeated is not None:
        alone = alone and all(only_user(n.outputs[0]) is not None for n in repeated)
        reader, value = repeated[-1], required(repeated[-1].inputs[0])
    found = Kept(value)
    join = made_by(value, "Concat")
    if (
        join is None
        or not alone
        or len(join.inputs) != 2
        or attribute(join, "axis", 0) not in (2, -2)
        or rank(value) != 4
    ):
        return found
    past, new = join.inputs
    others = [node for node in nodes_reading(value) if node is not reader and not _asks_for_shape(node)]
    if others or past is None or new is None or past is new or not _fits(past, new):
        return found
    found.past, found.new, found.joined = past, new, join
    return found


def _asks_for_shape(node: ir.Node) -> bool:
    return node.domain == "" and node.op_type == "Shape"


def _fits(past: ir.Value, new: ir.Value) -> bool:
    a, b = dims(past), dims(new)
    return a is not None and b is not None and len(a) == len(b) == 4 and same_size(a[1], b[1]) and same_size(a[3], b[3])


def unrepeated(value: ir.Value | None) -> list[ir.Node] | None:
    """Return the nodes that repeat each head equally often, the last one first; None if there are none.

    [batch, heads, …] → [batch, heads, 1, …] → [batch, heads, times, …] → [batch, heads * times, …], or the first two
    axes in one.
    """
    merge = made_by(value, "Reshape")
    widen = None if merge is None else made_by(merge.inputs[0], "Expand", "Tile")
    split = None if widen is None else made_by(widen.inputs[0], "Unsqueeze", "Reshape")
    if merge is None or widen is None or split is None:
        return None
    source, narrow, wide, result = (dims(v) for v in (split.inputs[0], split.outputs[0], widen.outputs[0], value))
    if source is None or narrow is None or wide is None or result is None or (len(source), len(wide)) != (4, 5):
        return None
    count, times = source[1], wide[2]
    if not isinstance(count, int) or not isinstance(times, int) or wide[1] != count or narrow[2] != 1:
        return None
    if not all(map(same_size, [*narrow[:2], *narrow[3:]], source)):
        return None
    if not all(same_size(wide[axis + (axis > 1)], source[axis]) for axis in (0, 2, 3)):
        return None
    heads: list[Any] = [product([source[0], count * times])] if len(result) == 3 else [source[0], count * times]
    wanted = [*heads, *source[2:]]
    return [merge, widen, split] if len(result) == len(wanted) and all(map(same_size, result, wanted)) else None


def give_present(build: Builder, side: Kept, present: ir.Value, rows: Heads | None) -> None:
    """Replace the Concat by the attention's output `present`; Shape nodes that read it compute from its inputs."""
    join, new = side.joined, side.new
    assert join is not None and new is not None and side.past is not None
    joined = join.outputs[0]
    present.type, present.shape = joined.type, joined.shape
    for node in nodes_reading(joined):
        assert _asks_for_shape(node)
        here = Builder(node, origin=(*origins(join), *origins(node)))
        source, axis = (rows.root, 1) if rows is not None else (new, 2)
        length = here.op("Shape", source, start=axis, end=axis + 1)
        wide = here.op("Add", here.op("Shape", side.past), here.op("Mul", length, [0, 0, 1, 0]))
        start, end = attribute(node, "start", 0), attribute(node, "end")
        if start != 0 or end is not None:
            wide = here.op("Slice", wide, [start], [4 if end is None else end], [0])
        here.finish(wide)
    replace_value(joined, present)
    remove(join)
