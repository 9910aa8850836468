"""Differences that are not py_ort's fault. Each row has the models, and the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import onnx

Model = onnx.ModelProto


class Known(NamedTuple):
    """A difference: its nodes, and the reason why it is not py_ort's fault."""

    applies: Callable[[onnx.NodeProto], bool]
    why: str


KNOWN: list[Known] = [
    Known(
        lambda node: node.op_type == "MaxUnpool" and len(node.input) > 2,
        "onnxruntime takes MaxUnpool's indices for those of the size without output_shape, against ONNX's node test",
    ),
    Known(
        lambda node: node.op_type == "MultiHeadAttention" and any(a.name == "unidirectional" for a in node.attribute),
        "in onnxruntime the last of several queries sees all keys, also where more are new than queries",
    ),
    Known(
        lambda node: (
            node.op_type == "MaxPool"
            and any(a.name == "auto_pad" and a.s.startswith(b"SAME") for a in node.attribute)
            and any(a.name == "dilations" and set(a.ints) != {1} for a in node.attribute)
        ),
        "onnxruntime pads for SAME as if windows had no dilations, against ONNX",
    ),
]


def known(model: bytes) -> str:
    """Return the reason why a difference of this model is expected, or ""."""
    try:
        nodes = onnx.ModelProto.FromString(model).graph.node
    except Exception:
        return ""
    return next((each.why for each in KNOWN for node in nodes if each.applies(node)), "")


#: Refusals for the numbers in a tensor, which no kernel on a GPU can make: patterns of native's text.
LENIENT_ON_GPUS = (
    "out of data bounds",
    "Out of range value in index",
    "invalid (index|indice) found",
    "roi_batch_id",
    "indices must be empty",
    "Invalid sequence length",
    "position_ids value",
    "Invalid value/s in sequence_lens",
)
#: Refusals of native onnxruntime for models that py_ort runs, by a pattern of native's text, with the reason.
LENIENT = {
    **dict.fromkeys(
        (
            "(Starts|Ends|Axes|Steps) must be a 1-D array",
            "'repeat' input tensor must be 1 dimensional",
            "k tensor should be a 1D tensor",
            "An axes tensor must be a",
            "A shape tensor must be a vector",
            "Axes tensor should be a 1D tensor",
            "shape input must be 1D tensor",
            "seqlens_k must be at least 1D",
            "Starts and (axes|steps) shape mismatch",
        ),
        "a scalar is that number, a column its numbers",
    ),
    **dict.fromkeys(
        (
            r"requested shape:\{[^}]*\b0\b",
            r"Input shape:\{[^}]*\b0\b",
            "Scale value should be greater than 0",
            "(num_heads|sequence_length) > 0 was false",
            "not defined for empty set",
            "Computed output dimension is <= 0",
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
    "input is expected to have 3 or 2 dimensions": "rows of any rank",
    "'(quantized_weight|scales|zero_points)' is expected to have shape": "as many elements in another shape",
    "Explicit output_shape is inconsistent": "what no window reaches is the bias",
    "batch_size must be 1 when sequence_length > 1": "native appends several rows to caches of one batch only",
    "attention_bias dimension 3 must be equal|attn_mask must be 2D": "masks that are shorter, or of fewer axes",
    "'key' and 'value' shall have same shape": "values may be of another size",
    "B zero point is not valid": "one zero point for each column of stacked matrices, too",
    "block_size must be 0 for per-tensor": "a block of ONNX may be as long as the axis",
    "Pad reflect: (pre|post)-pad": "mirrored as often as it takes, as by numpy",
    "Could not find an implementation": "native has no CPU kernel of it",
    "Unsupported pooling size": "native pools over three axes at most",
    "Got total_sequence_length=": "a cache may have room for more rows",
    "data_rank > 0 was false": "a scalar has no axis to pad",
    "Only N can be zero|Input spatial dimension must be positive": "native refuses images without pixels",
    "not implemented for CPU": "native has no kernel of this form",
    "left operand cannot broadcast": "a product without rows has no elements",
    "kernel_shape is not compatible with W": "the sizes of W go before the attribute",
    "running FastGelu node": "onnxruntime-web's tests have biases of any length, read flat",
    r"X_shape.NumDimensions\(\) == 4": "native's LRN is of images alone, ONNX's of any rank",
    r"IsScalarOr1ElementVector\(a_zero_point\)": "ONNX has zero points of rows",
    "the corresponding outermost": "native resizes three axes at most",
    r"bias shape must be \[N\]": "native wants this bias's size to be known when it loads",
}


def lenient(refusal: str, provider: str) -> str:
    """Return the reason why py_ort runs on a provider what native onnxruntime refused with this text, or ""."""
    if provider != "wasm" and re.search("|".join(LENIENT_ON_GPUS), refusal):
        return "on GPUs, indices out of range read the nearest element, and scatter nothing"
    return next((why for part, why in LENIENT.items() if re.search(part, refusal)), "")
