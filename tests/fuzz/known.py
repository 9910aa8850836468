"""Differences that are not ours. Each line says which models, and why."""

from __future__ import annotations

import re
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


#: What native onnxruntime refuses and py_ort runs, by a pattern of native's text, with the reason.
LENIENT = {
    **dict.fromkeys(
        ("out of data bounds", "Out of range value in index", "roi_batch_id", "indices must be empty"),
        "on GPUs, indices out of range read the nearest element, and scatter nothing (docs/api.md)",
    ),
    **dict.fromkeys(
        (
            "(Starts|Ends|Axes|Steps) must be a 1-D array",
            "'repeat' input tensor must be 1 dimensional",
            "k tensor should be a 1D tensor",
        ),
        "a scalar is that number",
    ),
    **dict.fromkeys(
        (
            r"requested shape:\{.*0,-1\}",
            "head_size > 0",
            "token_id . out of range",
            "DFT input signal dimension must",
            r"Output channels M .* must be positive",
        ),
        "what has no elements, or zeros alone",
    ),
    r"inconsistent total_sequence_length \(between attn_mask": "a shorter mask hides the keys behind it (opset 24)",
    r"'scales' is expected to have shape .* got \{1,": "as many scales, in a row",
    "zero points shape and scales shape do not match": "native compares names of sizes; the kernel compares sizes",
    r"inconsistent q_sequence_length \(between attn_mask": "a mask broadcasts, also along the queries",
    "input shall be 3 dimensions": "an activation of rows of any rank",
    "Unsupported pooling size": "native pools over three axes at most",
    "Only N can be zero": "native refuses images without pixels",
    "not implemented for CPU": "native has no kernel of this form",
    "left operand cannot broadcast": "a product without rows has no elements",
    "kernel_shape is not compatible with W": "the sizes of W go before the attribute",
    "running FastGelu node": "onnxruntime-web's tests have biases of any length, read flat",
    r"X_shape.NumDimensions\(\) == 4": "native's LRN is of images alone, ONNX's of any rank",
    r"IsScalarOr1ElementVector\(a_zero_point\)": "ONNX has zero points of rows",
    "the corresponding outermost": "native resizes three axes at most",
    r"bias shape must be \[N\]": "native wants this bias's size to be known when it loads",
}


def lenient(refusal: str) -> str:
    """Return why py_ort runs what native onnxruntime refused with this text, or ""."""
    return next((why for part, why in LENIENT.items() if re.search(part, refusal)), "")
