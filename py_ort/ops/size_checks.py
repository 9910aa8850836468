"""Checks of sizes that ONNX's own inference leaves to the kernels, made once it is known which nodes stay."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.ops.builder import all_nodes, attribute, dims
from py_ort.ops.infer import inconsistent

_LARGEST = 2**31 - 1


def check_sizes(model: ir.Model) -> None:
    """Check the outputs' sizes, and convolutions' channels.

    Raises:
        InvalidGraph: Of the node that cannot run.
    """
    for node in all_nodes(model.graph):
        for output in node.outputs:
            sizes = dims(output)
            if sizes and any(isinstance(d, int) and not 0 <= d <= _LARGEST for d in sizes):
                raise inconsistent(node, f"its output would have the shape [{', '.join(map(str, sizes))}]")
        check = _CHECKS.get(node.op_type) if node.domain == "" else None
        if check is not None:
            check(node)


def _conv(node: ir.Node) -> None:
    x, weights = dims(node.inputs[0]), dims(node.inputs[1])
    if x and weights and len(x) > 2 and len(weights) == len(x):
        _channels(node, x[1], each=weights[1], outputs=weights[0])


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


_CHECKS: dict[str, Callable[[ir.Node], None]] = {"Conv": _conv, "ConvTranspose": _conv_transpose}
