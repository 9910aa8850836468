"""Errors that name a node."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import origins


def inconsistent(node: ir.Node, text: str) -> InvalidGraph:
    """Make the error of a node whose inputs do not fit it."""
    name = origins(node)[0]
    shapes = {
        v.name or f"input {i}": [str(d) for d in v.shape]
        for i, v in enumerate(node.inputs)
        if v is not None and v.shape is not None
    }
    text = text.removeprefix("[ShapeInferenceError]").removeprefix("[TypeInferenceError]").strip()
    return InvalidGraph(
        f"node {name} ({node.op_type}): {text}", node=name, op_type=node.op_type, domain=node.domain, shapes=shapes
    )


def node_at_fault(traceback: TracebackType | None) -> dict[str, Any]:
    """Return the node that was worked on, as fields of an error: the innermost variable `node`."""
    found = None
    while traceback is not None:
        node = traceback.tb_frame.f_locals.get("node")
        found = node if isinstance(node, ir.Node) else found
        traceback = traceback.tb_next
    if found is None:
        return {}
    return {"node": ", ".join(origins(found)), "op_type": found.op_type, "domain": found.domain}
