"""com.microsoft's WordConvEmbedding: words from their characters."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, dims
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ops.convolution import conv

OPERATORS = [Operator("WordConvEmbedding", domain=MICROSOFT)]
_INT32 = int(ir.DataType.INT32)
_LOWEST = np.array(-1e12, np.float32)


@lowering("WordConvEmbedding", domain=MICROSOFT)
def word_embedding(node: ir.Node, build: Builder) -> Any:
    """Compute, for each filter, the maximum of its convolution over the word's characters.

    A word has as many characters as numbers above 0, but none if the first is 0. For such words onnxruntime's result
    is undefined, and this one is 0.
    """
    words, weights, bias, table = node.inputs[:4]
    _check(node)
    characters = build.op("Unsqueeze", build.op("Gather", table, words, axis=0), np.array([1]))
    found = build.op("Conv", characters, weights, bias)  # [words, filters, places, 1]
    conv(found.producer(), build)
    found = build.op("Tanh", found)
    found = build.op("Squeeze", found, np.array([3]))
    there = build.op("Greater", words, np.array(0, np.int32))
    length = build.op("ReduceSum", build.op("Cast", there, to=_INT32), np.array([1]), keepdims=1)
    width = build.op("Cast", build.op("Shape", weights, start=2, end=3), to=_INT32)
    last = build.op("Max", build.op("Sub", length, width), np.array([0], np.int32))
    count = build.op(
        "Reshape", build.op("Cast", build.op("Shape", found, start=2, end=3), to=_INT32), np.array([], int)
    )
    place = build.op("Range", np.array(0, np.int32), count, np.array(1, np.int32))
    within = build.op("Unsqueeze", build.op("LessOrEqual", place, last), np.array([1]))
    best = build.op("ReduceMax", build.op("Where", within, found, _LOWEST), np.array([2]), keepdims=0)
    begins = build.op("Gather", there, np.array([0]), axis=1)
    return build.op("Where", begins, best, np.array(0, np.float32))


def _check(node: ir.Node) -> None:
    """Check that sizes in attributes are those of the weights."""
    weights, table = dims(node.inputs[1]), dims(node.inputs[3])
    if weights is None or table is None:
        return
    named = {"embedding_size": weights[0], "conv_window_size": weights[2], "char_embedding_size": table[1]}
    for name, size in named.items():
        if attribute(node, name, -1) not in (-1, size):
            raise inconsistent(node, f"{name} is {attribute(node, name)}, but the weights have {size}")
