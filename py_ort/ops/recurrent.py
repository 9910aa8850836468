"""RNN, GRU, LSTM.

`LSTM` with `quantized_state` = 1: products see the old states as they are once quantized to uint8 by their own range,
all sequences of a direction together. `DynamicQuantizeLSTM` is such a one, of dequantized weights, where the provider
has no kernel of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, rank, set_attributes
from py_ort.ir.operators import MICROSOFT, Operator, in_parts, lowering
from py_ort.schema.scalar_functions import FUNCTIONS


def _infer_quantized(node: ir.Node) -> None:
    """States of float32; all steps, and the last ones."""
    x, w = dims(node.inputs[0]), dims(node.inputs[1])
    hidden = attribute(node, "hidden_size")
    for output, whole in zip(node.outputs, (True, False, False), strict=False):
        output.type = ir.TensorType(ir.DataType.FLOAT)
        if x is not None and w is not None and hidden is not None:
            output.shape = ir.Shape([*x[:whole], w[0], x[1], hidden])


OPERATORS = [
    *(Operator(name, heavy=True, optional_outputs=True) for name in ("RNN", "GRU", "LSTM")),
    Operator("DynamicQuantizeLSTM", domain=MICROSOFT, infer=_infer_quantized, heavy=True, optional_outputs=True),
]


_GATES = {row.name.lower(): row for row in FUNCTIONS.values() if row.gate}
#: Their numbers are zeros in native onnxruntime where attributes have none; other functions have ONNX's.
_OF_ZEROS = ("affine", "scaledtanh", "thresholdedrelu")


def activations_of(node: ir.Node) -> list[tuple[str, list[float]]]:
    """Return the functions of a recurrent layer with their numbers; none where a node names none."""
    given = [list(attribute(node, name) or []) for name in ("activation_alpha", "activation_beta")]
    found = []
    for name in attribute(node, "activations") or []:
        row = _GATES.get(name.lower())
        numbers = [0.0] * 2 if name.lower() in _OF_ZEROS else list(row.parameters.values()) if row else []
        own = zip(given, numbers[: len(row.parameters) if row else 0], strict=False)
        found.append((name, [rest.pop(0) if rest else number for rest, number in own]))
    return found


def as_attributes(activations: list[tuple[str, list[float]]]) -> dict[str, Any]:
    """Return the attributes for these activations."""
    alphas, betas = ([numbers[i] for _, numbers in activations if len(numbers) > i] for i in (0, 1))
    names = [name for name, _ in activations]
    return {"activations": names or None, "activation_alpha": alphas or None, "activation_beta": betas or None}


@lowering("DynamicQuantizeLSTM", domain=MICROSOFT)
def numbers(node: ir.Node, build: Builder) -> None:
    """Spell out the numbers of activations."""
    set_attributes(node, **as_attributes(activations_of(node)))


@lowering("RNN", "GRU", "LSTM")
def recurrent(node: ir.Node, build: Builder) -> None:
    """The first opset had a flag for its first output, and a default with a spelling mistake."""
    set_attributes(node, output_sequence=None)
    directions = 2 if attribute(node, "direction") == "bidirectional" else 1
    activations = list(attribute(node, "activations") or [])
    if node.op_type == "RNN" and len(activations) > directions:  # the default is that of two directions
        set_attributes(node, activations=activations[:directions])
    numbers(node, build)
    if attribute(node, "direction") == "foward":
        set_attributes(node, direction="forward")


@in_parts(
    "DynamicQuantizeLSTM",
    *("DynamicQuantizeLinear", "DequantizeLinear", "LSTM", "Cast", "Unsqueeze", "Sub", "Mul", "Transpose"),
)
def dynamic_quantize_lstm(node: ir.Node, build: Builder) -> Any:
    """An LSTM of what X, the weights and the old states are once quantized.

    Products of such numbers are onnxruntime's products of integers, scaled.
    """
    given: list[Any] = [*node.inputs, *[None] * (12 - len(node.inputs))]
    x, w, r, bias, lengths, initial_h, initial_c, peepholes, w_scale, w_zero, r_scale, r_zero = given
    if lengths is not None:
        x = _without_padding(build, x, lengths)
    steps, step, shift = build.op("DynamicQuantizeLinear", x, outputs=3)
    x = build.op("DequantizeLinear", steps, step, shift)
    weights = [_dequantized(build, *given) for given in ((w, w_scale, w_zero), (r, r_scale, r_zero))]
    return build.op(
        "LSTM",
        *(x, *weights, bias, lengths, initial_h, initial_c, peepholes),
        outputs=len(node.outputs),
        **attributes_of(node),
        quantized_state=1,
    )


def _without_padding(build: Builder, x: Any, lengths: ir.Value) -> Any:
    """Zero what is behind the longest sequence: it has no part in the range of X."""
    last = build.op("Cast", build.op("ReduceMax", lengths, [0], keepdims=1), to=int(ir.DataType.INT64))
    steps = build.op("Squeeze", build.op("Shape", x, start=0, end=1), [0])
    times = build.op("Range", np.array(0), steps, np.array(1))
    inside = build.op("Unsqueeze", build.op("Less", times, last), [1, 2])
    return build.op("Where", inside, x, np.array(0, np.float32))


def _dequantized(build: Builder, weights: Any, scale: Any, zero: Any) -> Any:
    """LSTM's weights, of [directions, inputs, columns] with a scale for each direction, or for each column of it."""
    each_column = rank(scale) == 2
    axes = [1] if each_column else [1, 2]
    wide = build.op("Cast", weights, to=int(ir.DataType.FLOAT))
    if zero is not None:
        shift = build.op("Unsqueeze", build.op("Cast", zero, to=int(ir.DataType.FLOAT)), axes)
        wide = build.op("Sub", wide, shift)
    return build.op("Transpose", build.op("Mul", wide, build.op("Unsqueeze", scale, axes)), perm=[0, 2, 1])
