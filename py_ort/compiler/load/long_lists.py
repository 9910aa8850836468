"""Attributes of very many numbers or texts, as the trees of an ensemble have: kept as arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from py_ort.compiler.load.texts import readable_bytes
from py_ort.ir.graph import all_nodes
from py_ort.ir.long_list import LongList

#: How many items make a list a long one.
LONG = 4096
_DOMAIN = "ai.onnx.ml"
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


class LongLists:
    """Takes the long lists out of a model before the IR reads it, and puts them in afterwards."""

    def __init__(self) -> None:
        self._lists: list[LongList] = []

    def take_out(self, model: onnx.ModelProto) -> None:
        """Take the lists of nodes of ai.onnx.ml, in place; others are few, and passes read them."""
        for part in (model.graph, *model.functions):
            for node in _nodes(part):
                if node.domain == _DOMAIN:
                    for item in node.attribute:
                        self._take(item)

    def _take(self, item: onnx.AttributeProto) -> None:
        if item.type == onnx.AttributeProto.INTS and len(item.ints) >= LONG:
            packed: Sequence[Any] = array("q", np.array(item.ints, np.int64).tobytes())
            placeholder = item.ints
        elif item.type == onnx.AttributeProto.FLOATS and len(item.floats) >= LONG:
            packed = array("f", np.array(item.floats, np.float32).tobytes())
            placeholder = item.floats
        elif item.type == onnx.AttributeProto.STRINGS and len(item.strings) >= LONG:
            # Modes of nodes are few, and keys of encoders are not read twice.
            texts = {text: readable_bytes(text).decode() for text in set(item.strings)}
            packed = tuple(map(texts.__getitem__, item.strings))
            placeholder = item.strings
        else:
            return
        number = len(self._lists)
        self._lists.append(LongList(item.name, ir.AttributeType(item.type), packed))
        del placeholder[:]
        item.doc_string = f"\0{number}"

    def put_in(self, model: ir.Model) -> None:
        """Put the long lists back, into the IR that was made of the model without them."""
        if not self._lists:
            return
        for graph in (model.graph, *(function.graph for function in model.functions.values())):
            for node in all_nodes(graph):
                if node.domain == _DOMAIN:
                    for name, item in list(node.attributes.items()):
                        if item.doc_string and item.doc_string.startswith("\0"):
                            node.attributes[name] = self._lists[int(item.doc_string[1:])]


def _nodes(graph: Any) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for item in node.attribute:
            if item.type in _GRAPHS:
                for inner in (item.g, *item.graphs):
                    yield from _nodes(inner)
