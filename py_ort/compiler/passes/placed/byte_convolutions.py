"""Marks convolutions whose pixels and weights, now floats, are dequantized 8-bit integers.

A kernel with the feature "bytes" may then multiply the integers themselves, if the device can. Pixels are whole steps
of `a_scale`, and 0 is step `a_zero` of 256. Input 4 has the scales of the weights, one for each output channel; their
zero points are 0. Runs after placement, when each rounding is at the place where it is computed.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.placed.kernel_pass import KernelPass
from py_ort.compiler.passes.quantization import byte_steps_of
from py_ort.ir.graph import add_constant, all_nodes, array, attribute, set_attributes
from py_ort.ir.operators import NHWC
from py_ort.schema.dialect import A_SCALE, A_ZERO, CONV_SCALES, W_SCALE

_BYTE = np.iinfo(np.int8)


class ByteConvolutions(KernelPass):
    """Convolutions that may be of integers."""

    after = ("quantized_ends",)
    before = ("columns",)

    def call(self, model: ir.Model) -> int:
        """Take each convolution whose weights were integers."""
        return sum(self._tell(node) for node in list(all_nodes(model.graph)) if W_SCALE in node.attributes)

    def _tell(self, node: ir.Node) -> bool:
        scales = np.array(attribute(node, W_SCALE), np.float32)
        del node.attributes[W_SCALE]
        steps = byte_steps_of(node.inputs[0])
        if node.domain != NHWC or not self._takes(node) or steps is None or attribute(node, "group", 1) != 1:
            return True
        weights = array(node.inputs[1])
        if weights is None or scales.size not in (1, len(weights)):
            return True
        outputs = len(weights)
        scales = np.broadcast_to(scales, (outputs,)).copy()
        each = scales.reshape(outputs, *[1] * (weights.ndim - 1))
        # Passes may have changed the weights since.
        with np.errstate(all="ignore"):
            integers = np.rint(weights / each)
        inside = (integers >= _BYTE.min) & (integers <= _BYTE.max)
        if not inside.all() or not np.allclose(integers * each, weights, rtol=1e-6, atol=0):
            return True
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        node.resize_inputs(CONV_SCALES + 1)
        node.replace_input_with(CONV_SCALES, add_constant(graph, ir.tensor(scales), f"{node.outputs[0].name}_scales"))
        set_attributes(node, **{A_SCALE: steps.step, A_ZERO: steps.zero})
        return True
