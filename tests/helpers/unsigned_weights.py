"""Makes native onnxruntime compute exact sums of quantized products, on every processor.

On x86 without VNNI its kernels for uint8 by int8 add pairs of products in 16 bits, which saturate. Those for uint8 by
uint8 do not: weights and their zero points are moved by 128, which changes no result.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import numpy_helper

#: For each operator: the quantized rows and their zero point (-1: rows quantized by the operator itself, to uint8), and
#: weights with their zero points.
_PRODUCTS = {
    "MatMulInteger": (0, 2, ((1, 3),)),
    "MatMulIntegerToFloat": (0, 4, ((1, 5),)),
    "QLinearMatMul": (0, 2, ((3, 5),)),
    "QLinearConv": (0, 2, ((3, 5),)),
    "QGemm": (0, 2, ((3, 5),)),
    "DynamicQuantizeMatMul": (-1, -1, ((1, 3),)),
    "DynamicQuantizeLSTM": (-1, -1, ((1, 9), (2, 11))),
    "QAttention": (0, 6, ((1, 7),)),
}


def unsigned_weights(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model with int8 weights, constant or fed, as constant uint8 if uint8 is multiplied by them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer} | dict(feeds)
    dynamic = {node.output[0] for node in graph.node if node.op_type == "DynamicQuantizeLinear"}

    def constant(name: str, array: np.ndarray) -> str:
        if name not in known:
            known[name] = array
            graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def unsigned(name: str) -> str:
        return constant(f"{name}_unsigned", (known[name].astype(np.int16) + 128).astype(np.uint8))

    for node in graph.node:
        rows, zero, weights = _PRODUCTS.get(node.op_type, (0, 0, ()))
        inputs = [*node.input, *[""] * 16]
        types = {known[name].dtype for name in (inputs[rows], inputs[zero]) if name in known}
        if not weights or (rows >= 0 and inputs[rows] not in dynamic and np.dtype(np.uint8) not in types):
            continue
        for weight, point in weights:
            if inputs[weight] not in known or known[inputs[weight]].dtype != np.int8:
                continue
            inputs[weight] = unsigned(inputs[weight])
            inputs[point] = unsigned(inputs[point]) if inputs[point] else constant("middle", np.array(128, np.uint8))
        while not inputs[-1]:
            inputs.pop()
        node.input[:] = inputs
    return made
