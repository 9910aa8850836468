"""Moves convolutions, pools and other operators on channels to the NHWC domain, if the provider has kernels for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.layout.forms import Forms, channels_last
from py_ort.ir.graph import array, attribute, dims, input_at, rank, required
from py_ort.ir.operators import NHWC, operator
from py_ort.schema.dialect import PRODUCT_RESIDUAL

WINDOWS = frozenset({"conv", "pool", "channels"})
"""Layout rules of operators that the NHWC domain may have. Of "channels", input 0 and output 0 are images."""

TRANSPARENT = frozenset(
    {"elementwise", "concat", "axis", "axis_input", "slice", "pad", "vector", "resize"}
    | {"quantized", "quantized_concat", "quantized_pool", "table"}
)
"""Layout rules of operators whose inputs may have any permutation that their output has."""

JOINING = frozenset({"elementwise", "concat", "quantized_concat"})
"""The rules of `TRANSPARENT` by which the form depends on more than the first input."""

Supports = Callable[[ir.Node], bool]
"""A predicate: does the provider that will run this node have the NHWC form of it?"""


def is_window(node: ir.Node, supports: Supports) -> bool:
    """Return True if the node can be of the NHWC domain."""
    if node.domain != "" or not node.inputs or node.inputs[0] is None:
        return False
    kind = operator("", node.op_type).layout
    if kind not in WINDOWS or rank(node.inputs[0]) not in ((4,) if kind == "channels" else (3, 4)):
        return False
    if any(o.uses() or o.is_graph_output() for o in node.outputs[1:]) or attribute(node, "storage_order", 0):
        return False  # MaxPool's indices count in NCHW
    if node.op_type.startswith("Conv") and rank(node.inputs[1]) != rank(node.inputs[0]):
        return False
    if node.op_type == "ConvTranspose" and attribute(node, "output_shape"):
        return False
    return supports(node)


def takes_residual(node: ir.Node) -> bool:
    """Return True if the node may have a residual: an image of the output's shape."""
    return node.op_type in ("Conv", "ConvTranspose")


def to_nhwc(node: ir.Node, forms: Forms) -> None:
    """Make the node again in the NHWC domain."""
    x, residual = node.inputs[0], input_at(node, PRODUCT_RESIDUAL)
    assert x is not None
    count = rank(x)
    perm = channels_last(count or 4)
    if count == 4:
        conv = takes_residual(node)
        inputs = [forms.form(x, perm), *(forms.plain(v) for v in node.inputs[1 : PRODUCT_RESIDUAL if conv else None])]
        if conv and residual is not None:
            inputs += [None] * (PRODUCT_RESIDUAL - len(inputs)) + [forms.form(residual, perm)]
        forms.emit(node, inputs, perm, domain=NHWC)
        return
    # One spatial axis: N, L, C is N, 1, L, C.
    wide = forms.insert("Unsqueeze", [forms.form(x, perm), [1]])[0]
    inputs = [wide]
    if len(node.inputs) > 1:
        inputs.append(_weights_of_one_dimension(required(node.inputs[1]), forms))
        inputs += [forms.plain(v) for v in node.inputs[2:3]]
    if residual is not None:
        z = forms.insert("Unsqueeze", [forms.form(residual, perm), [1]])[0]
        inputs += [None] * (PRODUCT_RESIDUAL - len(inputs)) + [z]
    made = forms.emit(node, inputs, None, domain=NHWC, **_two_dimensional(node))
    flat = forms.insert("Squeeze", [made[0], [1]])[0]
    known = dims(node.outputs[0])
    if known is not None:
        flat.shape = ir.Shape([known[a] for a in perm])
    forms.register(node.outputs[0], perm, flat)


def _weights_of_one_dimension(weights: ir.Value, forms: Forms) -> ir.Value:
    contents = array(weights)
    if contents is not None:
        return forms.constant(np.expand_dims(contents, 2), weights.name)
    return forms.insert("Unsqueeze", [forms.plain(weights), [2]])[0]


def _two_dimensional(node: ir.Node) -> dict[str, Any]:
    """The attributes of one spatial axis, for two."""
    changes: dict[str, Any] = {}
    for name, neutral in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("output_padding", 0)):
        given = attribute(node, name)
        if given:
            changes[name] = [neutral, *given]
    pads = attribute(node, "pads")
    if pads:
        changes["pads"] = [0, pads[0], 0, pads[1]]
    return changes
