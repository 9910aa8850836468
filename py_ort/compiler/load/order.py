"""Sorts nodes topologically: not every exporter does, and onnxruntime accepts such models."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import all_graphs, all_nodes, origins, subgraphs


def put_in_order(model: ir.Model) -> None:
    """Sort graphs and functions, at every depth, in which a node comes before the producer of an input.

    Raises:
        InvalidGraph: Nodes wait for each other.
    """
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        if _is_sorted(graph, set()):
            continue
        try:
            graph.sort()
        except ValueError as e:
            circle = next(found for inner in all_graphs(graph) if (found := _circle(inner)))
            names = [origins(node)[0] for node in circle]
            raise InvalidGraph(
                f"these nodes of graph {graph.name!r} wait for each other's outputs: {', '.join(names)}",
                node=names[0],
                op_type=circle[0].op_type,
                domain=circle[0].domain,
            ) from e


def _is_sorted(graph: ir.Graph, made: set[ir.Node]) -> bool:
    for node in graph:
        if not all(_is_sorted(subgraph, made) for subgraph in subgraphs(node)):
            return False
        if not all(maker in made for maker in _makers(node)):
            return False
        made.add(node)
    return True


def _makers(node: ir.Node) -> Iterator[ir.Node]:
    """Yield the nodes whose outputs a node reads itself."""
    for value in node.inputs:
        maker = None if value is None else value.producer()
        if maker is not None:
            yield maker


def _circle(graph: ir.Graph) -> list[ir.Node]:
    """Return a cycle of nodes: each reads an output of the next, and the last an output of the first."""
    reads = {node: [*_makers(node)] for node in graph}
    for node, makers in reads.items():
        for subgraph in subgraphs(node):
            makers.extend(maker for inner in all_nodes(subgraph) for maker in _makers(inner))
    done: set[ir.Node] = set()
    for start in reads:
        path = {start: iter(reads[start])}
        while path:
            node, makers_left = next(reversed(path.items()))
            maker = next(makers_left, None)
            if maker is None:
                done.add(node)
                del path[node]
            elif maker in path:
                return list(path)[list(path).index(maker) :]
            elif maker in reads and maker not in done:
                path[maker] = iter(reads[maker])
    return []
