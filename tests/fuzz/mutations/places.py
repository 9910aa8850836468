"""Places for mutations in models drawn at random, and lists changed there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import onnx
from onnx import AttributeProto, TensorProto

Mutation = Callable[[random.Random, onnx.ModelProto], bool]
Damage = Callable[[random.Random, bytes], bytes]
Change = TypeVar("Change", Mutation, Damage)


class Changes(list[Change]):
    """The mutations of a module, in the order in which they stand there."""

    def add(self, change: Change) -> Change:
        """Register a function."""
        self.append(change)
        return change


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for item in node.attribute:
            for inner in (*([item.g] if item.HasField("g") else ()), *item.graphs):
                yield from graphs(inner)


def some_graph(decide: random.Random, model: onnx.ModelProto) -> onnx.GraphProto:
    return decide.choice(list(graphs(model.graph)))


def some(decide: random.Random, items: Any) -> Any:
    return decide.choice(list(items)) if len(items) else None


def some_node(decide: random.Random, model: onnx.ModelProto) -> onnx.NodeProto | None:
    return some(decide, [node for graph in graphs(model.graph) for node in graph.node])


def some_attribute(decide: random.Random, model: onnx.ModelProto) -> AttributeProto | None:
    return some(decide, [item for graph in graphs(model.graph) for node in graph.node for item in node.attribute])


def some_tensor(decide: random.Random, model: onnx.ModelProto) -> TensorProto | None:
    found = [tensor for graph in graphs(model.graph) for tensor in graph.initializer]
    for graph in graphs(model.graph):
        for node in graph.node:
            found += [item.t for item in node.attribute if item.HasField("t")]
    return some(decide, found)


def some_value(decide: random.Random, model: onnx.ModelProto) -> onnx.ValueInfoProto | None:
    found = [v for graph in graphs(model.graph) for v in (*graph.input, *graph.output, *graph.value_info)]
    return some(decide, found)


def names(model: onnx.ModelProto) -> list[str]:
    found = [""]
    for graph in graphs(model.graph):
        found += [v.name for v in (*graph.input, *graph.output, *graph.initializer)]
        found += [name for node in graph.node for name in (*node.input, *node.output)]
    return [*dict.fromkeys(found), "nobody"]


def _swap(decide: random.Random, items: Any) -> bool:
    if len(items) < 2:
        return False
    a, b = decide.sample(range(len(items)), 2)
    kept = list(items)
    kept[a], kept[b] = kept[b], kept[a]
    _fill(items, kept)
    return True


def _fill(items: Any, contents: list[Any]) -> None:
    copies = [copied(each) for each in contents]
    del items[:]
    items.extend(copies)


def copied(each: Any) -> Any:
    if hasattr(each, "CopyFrom"):
        made = type(each)()
        made.CopyFrom(each)
        return made
    return each


def reorder_drop_or_repeat(decide: random.Random, items: Any) -> bool:
    if not len(items):
        return False
    what = decide.choice(["drop", "repeat", "swap"])
    if what == "swap":
        return _swap(decide, items)
    at = decide.randrange(len(items))
    kept = list(items)
    if what == "drop":
        del kept[at]
    else:
        kept.insert(decide.randrange(len(kept) + 1), kept[at])
    _fill(items, kept)
    return True


def change_list(decide: random.Random, items: Any, pool: tuple[Any, ...]) -> bool:
    if len(items) and decide.random() < 0.5:
        items[decide.randrange(len(items))] = decide.choice(pool)
        return True
    if decide.random() < 0.5:
        return reorder_drop_or_repeat(decide, items)
    items.append(decide.choice(pool))
    return True


def product(dims: Any) -> int:
    count = 1
    for dim in dims:
        count *= abs(dim)
    return count
