"""Rewrites every node to its newest opset's form, with all attributes spelled out."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops import lowerings
from py_ort.ops.builder import Builder, all_graphs, set_attributes
from py_ort.ops.infer import infer_node, newest_opset, schema


def canonicalise(model: ir.Model) -> int:
    """Bring every node of the model, at every depth, to the form that kernels know.

    Types of the old form were inferred before; the new nodes get theirs here.

    Returns:
        How many nodes were rewritten into others.
    """
    opsets = dict(model.opset_imports)
    count = 0
    for graph in list(all_graphs(model.graph)):
        for node in list(graph):
            version = opsets.get(node.domain, newest_opset() if node.domain == "" else 1)
            count += canonicalise_node(node, version)
    model.opset_imports[""] = newest_opset()
    return count


def canonicalise_node(node: ir.Node, version: int) -> bool:
    """Bring one node from opset `version` to the newest form. Return whether other nodes took its place."""
    _fill_defaults(node, version)
    for entry in lowerings(node.domain, node.op_type):
        if not entry.since <= version < entry.before:
            continue
        build = Builder(node)
        result = entry.rewrite(node, build)
        if result is not None:
            build.finish(*(result if isinstance(result, tuple) else (result,)))
            return True
    node.version = None
    if all(output.shape is None for output in node.outputs):
        infer_node(node)
    return False


def _fill_defaults(node: ir.Node, version: int) -> None:
    """Defaults changed from opset to opset (Softmax' axis): write down those of the model's own."""
    found = schema(node.domain, node.op_type, version)
    if found is None or node.op_type == "Constant":
        return
    node.attributes.pop("consumed_inputs", None)
    for name, spec in found.attributes.items():
        if name in node.attributes or not spec.default_value.type or name == "consumed_inputs":
            continue
        default = ir.from_proto(spec.default_value)
        set_attributes(node, **{name: default})
