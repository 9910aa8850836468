"""Checks of sizes that ONNX's own inference leaves to the kernels, made once it is known which nodes stay.

Kernels on the GPU cannot fail for what they read, so constant indices are checked here as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import all_nodes, array, attribute, dims
from py_ort.ir.operators import operator
from py_ort.ir.rules import Rules

_LARGEST = 2**31 - 1
_check, _check_indices = Rules[Callable[[ir.Node], None]](), Rules[Callable[[ir.Node], None]]()


def check_sizes(model: ir.Model) -> None:
    """Check the outputs' sizes, convolutions' channels, scales of normalizations, and constant indices.

    Raises:
        InvalidGraph: Of the node that cannot run.
    """
    # A model that declares larger inputs than there can be is never run, so it may be loaded, as in onnxruntime.
    fed = (d for value in model.graph.inputs for d in dims(value) or () if isinstance(d, int))
    largest = _LARGEST if max(fed, default=0) <= _LARGEST else math.inf
    for node in all_nodes(model.graph):
        for output in node.outputs:
            sizes = dims(output)
            if sizes and any(isinstance(d, int) and not 0 <= d <= largest for d in sizes):
                raise inconsistent(node, f"its output would have the shape [{', '.join(map(str, sizes))}]")
        _scales(node)
        check = _check.of(node)
        if check is not None:
            check(node)
        # A branch may be there for other sizes, and never be taken.
        check = _check_indices.of(node) if node.graph is model.graph else None
        if check is not None:
            check(node)


@_check("Conv")
def _conv(node: ir.Node) -> None:
    x, weights = dims(node.inputs[0]), dims(node.inputs[1])
    if x and weights and len(x) > 2 and len(weights) == len(x):
        _channels(node, x[1], each=weights[1], outputs=weights[0])


@_check("ConvTranspose")
def _conv_transpose(node: ir.Node) -> None:
    x, weights = dims(node.inputs[0]), dims(node.inputs[1])
    group = attribute(node, "group", 1)
    if x and weights and len(x) > 2 and len(weights) == len(x) and isinstance(weights[0], int):
        if weights[0] % group:
            raise inconsistent(node, f"weights of {weights[0]} channels are not of {group} groups")
        outputs = weights[1] * group if isinstance(weights[1], int) else weights[1]
        _channels(node, x[1], each=weights[0] // group, outputs=outputs)


def _channels(node: ir.Node, channels: object, *, each: object, outputs: object) -> None:
    group = attribute(node, "group", 1)
    if isinstance(channels, int) and isinstance(each, int) and channels != each * group:
        raise inconsistent(node, f"weights of {group} groups of {each} channels do not go with {channels} channels")
    if not isinstance(outputs, int):
        return
    if outputs % group:
        raise inconsistent(node, f"{outputs} output channels are not of {group} groups")
    bias = dims(node.inputs[2]) if len(node.inputs) > 2 else None
    if bias and isinstance(bias[0], int) and bias[0] != outputs:
        raise inconsistent(node, f"a bias of {bias[0]} elements does not go with {outputs} output channels")


def _scales(node: ir.Node) -> None:
    """Scales and biases broadcast to the first input."""
    for index in operator(node.domain, node.op_type).scales:
        x, own = dims(node.inputs[0]), dims(node.inputs[index]) if index < len(node.inputs) else None
        if x is None or own is None:
            continue
        pairs = zip(reversed(own), reversed(x), strict=False)
        if len(own) > len(x) or any(isinstance(a, int) and isinstance(b, int) and a not in (1, b) for a, b in pairs):
            shapes = [f"[{', '.join(map(str, sizes))}]" for sizes in (own, x)]
            raise inconsistent(node, f"a scale or bias of shape {shapes[0]} does not broadcast to {shapes[1]}")


@_check_indices("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
def _indices(node: ir.Node) -> None:
    x, indices = dims(node.inputs[0]), array(node.inputs[1])
    if not x or indices is None or indices.size == 0 or (indices.ndim == 0 and node.op_type.endswith("ND")):
        return
    if node.op_type.endswith("ND"):
        first = attribute(node, "batch_dims", 0)
        columns = [(first + k, indices[..., k]) for k in range(indices.shape[-1])]
    else:
        columns = [(attribute(node, "axis", 0) % len(x), indices)]
    for axis, column in columns:
        size, least, most = x[axis], int(np.min(column)), int(np.max(column))
        if isinstance(size, int) and (least < -size or most >= size):
            wrong = most if most >= size else least
            raise inconsistent(node, f"index {wrong} is outside of axis {axis}, which has {size} elements")
