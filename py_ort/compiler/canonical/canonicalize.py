"""Rewrites every node to its newest opset's form, with all attributes spelled out, and infers types on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from py_ort.compiler.canonical.index_width import widen_indices
from py_ort.compiler.load.attributes import check_attributes
from py_ort.ir.builder import Builder
from py_ort.ir.constants import hoist_constant
from py_ort.ir.functions import instantiate
from py_ort.ir.graph import attribute, set_attributes, subgraphs
from py_ort.ir.infer import infer_node
from py_ort.ir.operators import lowerings
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.uninterrupted import check as check_time

Functions = Mapping[ir.OperatorIdentifier, ir.Function]
Check = Callable[[ir.Node, int], None]


def canonicalize(model: ir.Model, check: Check | None = None) -> int:
    """Bring every node of the model, at every depth, to the form that kernels know, and infer its outputs.

    One walk in order: a rewrite may rely on its inputs' dtypes and ranks. Functions of the model are inlined on the
    way.

    Args:
        model: A model that was read and checked.
        check: Called for each node, in its old form, with its opset, when its inputs' types are known.

    Returns:
        How many nodes were rewritten into others.

    Raises:
        InvalidGraph: With `check`, inputs that do not fit together.
    """
    functions = dict(model.functions)
    count = canonicalize_nodes(list(model.graph), dict(model.opset_imports), functions, check)
    model.opset_imports[""] = CANONICAL_OPSET
    model.functions.clear()
    return count


def canonicalize_nodes(
    nodes: list[ir.Node], opsets: dict[str, int], functions: Functions | None = None, check: Check | None = None
) -> int:
    """Bring nodes, in order, and the nodes of their subgraphs from their model's opsets to the newest form."""
    count = 0

    def settle(inner: list[ir.Node]) -> None:
        nonlocal count
        count += canonicalize_nodes(inner, opsets, functions, check)

    def visit(inner: ir.Graph) -> None:
        settle(list(inner))

    pending = [(iter(nodes), opsets)]
    while pending:
        rest, opsets = pending[-1]
        node = next(rest, None)
        if node is None:
            pending.pop()
            continue
        check_time()
        function = functions.get(node.op_identifier()) if functions else None
        if function is not None:
            body = instantiate(node, function)
            for inner in body:
                check_attributes(inner)
            pending.append((iter(body), dict(function.opset_imports)))
            count += 1
            continue
        if node.op_type == "Constant" and node.domain == "":
            count += hoist_constant(node)
            continue
        version = node.version or opsets.get(node.domain, CANONICAL_OPSET if node.domain == "" else 1)
        if check is not None:
            widen_indices(node, version)
            check(node, version)
        made = _rewrite(node, version, settle)
        for new in made:
            if subgraphs(new):  # bodies are still of the old form; those of other nodes are not any more
                infer_node(new, None, visit)
        if node.graph is None:
            count += 1
        else:
            infer_node(node, opsets if node.domain != "" else None, visit, strict=check is not None)
    return count


def _rewrite(node: ir.Node, version: int, settle: Callable[[list[ir.Node]], None]) -> list[ir.Node]:
    """Bring one node from opset `version` to the newest form.

    Returns:
        The nodes that were made, which took its place unless it is still there.
    """
    made: list[ir.Node] = []
    _fill_defaults(node, version)
    _settle_flags(node)
    for entry in lowerings(node.domain, node.op_type):
        if not entry.since <= version < entry.before:
            continue
        build = Builder(node)
        build.settle = settle
        result = entry.rewrite(node, build)
        made += build.made
        if result is not None:
            build.finish(*(result if isinstance(result, tuple) else (result,)))
            return made
    node.version = None
    return made


#: Attributes that onnxruntime compares with 1: whatever else they are, they are off. SplitToSequence is an exception.
_FLAGS = ("keepdims", "is_causal", "unidirectional")


def _settle_flags(node: ir.Node) -> None:
    for name in _FLAGS:
        if attribute(node, name, 1) not in (0, 1) and node.op_type != "SplitToSequence":
            set_attributes(node, **{name: 0})


def _fill_defaults(node: ir.Node, version: int) -> None:
    """Write the defaults of the model's opset as attributes: defaults differ between opsets (Softmax' axis)."""
    found = schema(node.domain, node.op_type, version)
    if found is None or node.op_type == "Constant" or subgraphs(node):
        return
    node.attributes.pop("consumed_inputs", None)
    for name, spec in found.attributes.items():
        if name in node.attributes or not spec.default_value.type or name == "consumed_inputs":
            continue
        default = ir.from_proto(spec.default_value)
        set_attributes(node, **{name: default})
