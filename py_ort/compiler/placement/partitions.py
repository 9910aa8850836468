"""Nodes on the GPU between nodes on the CPU: they cost an upload and a download, which waits for the GPU.

A cheap node all of whose inputs are on the CPU, and whose result goes back there, runs on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from py_ort.ir.graph import subgraphs
from py_ort.ir.operators import INTERNAL, MICROSOFT, NHWC, operator, reads
from py_ort.providers import PlacedNode

_OURS = ("", NHWC, INTERNAL, MICROSOFT)
#: Operators of these domains whose work outweighs the transfers.


def small_partitions(
    graph: ir.Graph, placed: Mapping[ir.Node, PlacedNode], on_cpu_too: Callable[[ir.Node], bool]
) -> set[ir.Node]:
    """Return the nodes of the GPU that had better run on the CPU.

    Args:
        graph: The main graph; the graphs within its nodes stay as they are.
        placed: Where each node is so far.
        on_cpu_too: A predicate: does the CPU have a kernel for the node?
    """
    fed: set[ir.Node] = set()  # could run on the CPU without a download
    for node in graph:
        if placed[node].on_device and _light(node) and on_cpu_too(node):
            read = [v for i, v in enumerate(node.inputs) if v is not None and reads(node, i)]
            makers = [v.producer() for v in read if v.const_value is None]
            if makers and all(maker is not None and (maker in fed or _on_cpu(maker, placed)) for maker in makers):
                fed.add(node)
    found: set[ir.Node] = set()
    for node in reversed(list(graph)):
        if node in fed and any(
            user in found or (reads(user, i) and _on_cpu(user, placed)) for o in node.outputs for user, i in o.uses()
        ):
            found.add(node)
    return found


def _light(node: ir.Node) -> bool:
    return (
        node.domain in _OURS
        and not any(operator(domain, node.op_type).heavy for domain in {"", node.domain})
        and not subgraphs(node)
    )


def _on_cpu(node: ir.Node, placed: Mapping[ir.Node, PlacedNode]) -> bool:
    found = placed.get(node)
    return found is not None and not found.on_device
