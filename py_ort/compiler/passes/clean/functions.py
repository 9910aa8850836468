"""Operators without a kernel are replaced by the operators that they are made of, where these have kernels.

What ONNX's own say, their function bodies; what com.microsoft's say, their family (`@in_parts` in `py_ort.ops`): where
the first provider has no kernel of one, but runs all its parts.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.canonical.canonicalize import canonicalize_nodes
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.functions import function_body, instantiate
from py_ort.ir.graph import all_nodes, subgraphs
from py_ort.ir.operators import Parts, operator, parts
from py_ort.ir.schemas import CANONICAL_OPSET

_DEPTH = 4  # bodies may call operators that have bodies


class Functions(Pass):
    """Function bodies, where they help."""

    def __init__(self, target: Target) -> None:
        """`target` tells which nodes can run as they are."""
        self._target = target

    def call(self, model: ir.Model) -> int:
        """Expand nodes that no provider can run, and nodes whose expansion the first provider can run."""
        count = 0
        for _ in range(_DEPTH):
            expanded = sum(self._expand(node) for node in list(all_nodes(model.graph)) if node.graph is not None)
            count += expanded
            if not expanded:
                break
        return count

    def _expand(self, node: ir.Node) -> bool:
        runs = self._target.has(node.domain, node.op_type)
        if runs or (not operator(node.domain, node.op_type).expand and runs is not None):
            return False
        declared = parts(node.domain, node.op_type)
        if declared is not None:
            return all(self._target.has(*name) for name in declared.of) and _in_parts(node, declared)
        body = function_body(node)
        if body is None:
            return False
        if runs is False and not all(self._is_plain(inner) for inner in body):
            return False  # another provider runs it, and the first one would not run all parts either
        # Bodies that the node had are in the newest form already.
        opsets = {**body.opset_imports, "": CANONICAL_OPSET} if subgraphs(node) else dict(body.opset_imports)
        canonicalize_nodes(instantiate(node, body), opsets)
        return True

    def _is_plain(self, node: ir.Node) -> bool:
        return node.op_type == "Constant" or (not subgraphs(node) and bool(self._target.has(node.domain, node.op_type)))


def _in_parts(node: ir.Node, declared: Parts) -> bool:
    graph = node.graph
    assert graph is not None
    known = set(graph)
    build = Builder(node)
    made = declared.make(node, build)
    if made is None:
        return False
    build.finish(*(made if isinstance(made, tuple) else (made,)))
    canonicalize_nodes([inner for inner in graph if inner not in known], {"": CANONICAL_OPSET})
    return True
