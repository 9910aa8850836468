"""The provider of each node, in the form of `InferenceSession.get_provider_graph_assignment_info`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import onnx

from py_ort.compiler.load import read_proto
from py_ort.providers import Placement, onnxruntime_name


@dataclass(frozen=True)
class OrtEpAssignedNode:
    """A node of the model."""

    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class OrtEpAssignedSubgraph:
    """A provider's name and its nodes; here always one node."""

    ep_name: str
    node: OrtEpAssignedNode

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """Return the nodes."""
        return [self.node]


def assigned(placement: Placement, source: Any) -> list[OrtEpAssignedSubgraph]:
    """Return an entry for every node that runs; nodes that passes created have their own names.

    Args:
        placement: Placement of the session.
        source: The model's path or bytes, which has the nodes that were fused.
    """
    nodes = _nodes(read_proto(source).graph)
    known = {node.name: OrtEpAssignedNode(node.name, node.domain, node.op_type) for node in nodes}
    found = []
    for placed in placement.nodes:
        for name in placed.origin or (placed.name,):
            node = known.get(name, OrtEpAssignedNode(name, placed.domain, placed.op_type))
            found.append(OrtEpAssignedSubgraph(onnxruntime_name(placed.provider), node))
    return list(dict.fromkeys(found))


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)
