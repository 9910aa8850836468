"""Lengths of texts, which a kernel on the GPU reads: made on the CPU, where they are made of feeds and little else.

A mask that grows with each word then never goes to the GPU, but a number: runs that differ in it alone are replays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from py_ort.ir.graph import input_at, subgraphs
from py_ort.ir.operators import operator, reads
from py_ort.providers import PlacedNode

#: A chain of more nodes than this does more than to count.
_MOST = 12
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)


def counting_nodes(
    graph: ir.Graph, placed: Mapping[ir.Node, PlacedNode], on_cpu_too: Callable[[ir.Node], bool]
) -> set[ir.Node]:
    """Return the nodes of the GPU that make lengths of feeds.

    Args:
        graph: The main graph.
        placed: Where each node is so far.
        on_cpu_too: A predicate: does the CPU have a kernel for the node?
    """
    found: set[ir.Node] = set()
    for node in graph:
        for index in operator(node.domain, node.op_type).lengths:
            value = input_at(node, index)
            chain = _chain(value, graph)
            if chain and all(not placed[one].on_device or on_cpu_too(one) for one in chain):
                found.update(one for one in chain if placed[one].on_device)
    return found


def _chain(value: ir.Value | None, graph: ir.Graph) -> set[ir.Node]:
    """The nodes that make integers of feeds and constants; none where others have a part in it."""
    chain: set[ir.Node] = set()
    waiting = [value]
    while waiting:
        made = waiting.pop()
        if made is None or made.const_value is not None:
            continue
        if made.dtype not in _INTEGERS:
            return set()
        maker = made.producer()
        if maker is None:
            if not made.is_graph_input():
                return set()
            continue
        if maker in chain:
            continue
        declared = operator(maker.domain, maker.op_type)
        if maker.graph is not graph or declared.heavy or declared.walked or not declared.pure or subgraphs(maker):
            return set()
        chain.add(maker)
        if len(chain) > _MOST:
            return set()
        waiting.extend(v for i, v in enumerate(maker.inputs) if v is not None and reads(maker, i))
    return chain
