"""Operators that cut and join along axes: Concat, Split, Slice, Pad."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, set_attributes
from py_ort.ir.operators import Operator, lowering
from py_ort.ir.symbolic_dims import refine_concat, refine_slice

OPERATORS = [
    Operator("Concat", refine=refine_concat, layout="concat"),
    Operator("Split", host=(1,), layout="axis", moves=True),
    Operator("Slice", refine=refine_slice, host=(1, 2, 3, 4), layout="slice", moves=True),
    Operator("Pad", host=(1, 3), host_if_constant=(2,), layout="pad", grows=True),
    Operator("CenterCropPad", host=(1,)),
    Operator("ReverseSequence", moves=True, indices=(1,)),
]


@lowering("Slice", before=10)
def slice_attributes(node: ir.Node, build: Builder) -> None:
    """Starts, ends and axes were attributes."""
    parts = [attribute(node, name) for name in ("starts", "ends", "axes")]
    set_attributes(node, starts=None, ends=None, axes=None)
    if parts[2] is None:
        parts[2] = range(len(parts[0]))
    node.resize_inputs(4)
    for index, part in enumerate(parts, start=1):
        node.replace_input_with(index, build.constant(np.array(list(part), np.int64)))


_AXES = 256  # of tensors are less


@lowering("Slice")
def slice_axes(node: ir.Node, build: Builder) -> None:
    """Without axes the first ones are meant."""
    starts = dims(node.inputs[1])
    count = 1 if starts == [] else starts and starts[0]  # one start may be a scalar
    if (len(node.inputs) < 4 or node.inputs[3] is None) and isinstance(count, int) and 0 <= count < _AXES:
        node.resize_inputs(max(4, len(node.inputs)))
        node.replace_input_with(3, build.constant(np.arange(count, dtype=np.int64)))


@lowering("Concat", before=4)
def concat_axis(node: ir.Node, build: Builder) -> None:
    """The axis had a default, which ONNX's schemas do not say."""
    set_attributes(node, axis=attribute(node, "axis", 1))


@lowering("Split", before=13)
def split_attribute(node: ir.Node, build: Builder) -> None:
    """The sizes were an attribute (in opset 1, an input too)."""
    sizes = attribute(node, "split")
    set_attributes(node, split=None)
    if sizes:
        node.resize_inputs(2)
        node.replace_input_with(1, build.constant(np.array(list(sizes), np.int64)))


@lowering("Split")
def split_sizes(node: ir.Node, build: Builder) -> None:
    """Equal parts: their sizes where the axis' size is known, else how many."""
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        set_attributes(node, num_outputs=None)
        return
    count = len(node.outputs)
    set_attributes(node, num_outputs=count)
    known = dims(node.inputs[0])
    axis = attribute(node, "axis", 0)
    size = known[axis] if known is not None and -len(known) <= axis < len(known) else None
    if isinstance(size, int):
        each = -(-size // count)
        sizes = [each] * (count - 1) + [size - each * (count - 1)]
        if sizes[-1] >= 0:
            node.resize_inputs(2)
            node.replace_input_with(1, build.constant(np.array(sizes, np.int64)))
            set_attributes(node, num_outputs=None)


@lowering("Pad", before=11)
def pad_attributes(node: ir.Node, build: Builder) -> None:
    """Pads (first called paddings) and the value were attributes."""
    pads = attribute(node, "pads") or attribute(node, "paddings") or ()
    value = attribute(node, "value", 0.0)
    set_attributes(node, pads=None, paddings=None, value=None)
    dtype = ((node.inputs[0].dtype if node.inputs[0] is not None else None) or ir.DataType.FLOAT).numpy()
    node.resize_inputs(3)
    node.replace_input_with(1, build.constant(np.array(list(pads), np.int64)))
    node.replace_input_with(2, build.constant(np.array(value, dtype)))
