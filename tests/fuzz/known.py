"""Differences that are not ours. Each line says which models, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import onnx

Model = onnx.ModelProto


class Known(NamedTuple):
    """A difference: in which nodes, and why it is none of ours."""

    applies: Callable[[onnx.NodeProto], bool]
    why: str


KNOWN: list[Known] = [
    Known(
        lambda node: node.op_type == "MaxUnpool" and len(node.input) > 2,
        "onnxruntime takes MaxUnpool's indices for those of the size without output_shape, against ONNX's node test",
    ),
]


def known(model: bytes) -> str:
    """Return why a difference of this model is expected, or ""."""
    try:
        nodes = onnx.ModelProto.FromString(model).graph.node
    except Exception:
        return ""
    return next((each.why for each in KNOWN for node in nodes if each.applies(node)), "")
