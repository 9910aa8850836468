"""Networks drawn at random: encoder-decoders with skips, sums of branches, concatenations; transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Drawn:
    """One network, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[TensorProto] = []

    def _op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def _weight(self, *shape: int) -> str:
        values = (self._random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        self._weights.append(numpy_helper.from_array(values, f"w{len(self._weights)}"))
        return self._weights[-1].name

    def _conv(self, x: str, channels: int, outputs: int, kernel: int = 3, stride: int = 1) -> str:
        pads = [kernel // 2] * 4
        y = self._op(
            "Conv",
            x,
            self._weight(outputs, channels, kernel, kernel),
            kernel_shape=[kernel] * 2,
            pads=pads,
            strides=[stride] * 2,
        )
        return (
            y
            if self._random.random() < 0.3
            else self._op(str(self._random.choice(["Relu", "Sigmoid", "HardSwish", "Softplus"])), y)
        )

    def _block(self, x: str, channels: int) -> str:
        """Keeps the number of channels."""
        kind = self._random.integers(4)
        if kind == 0:
            narrow = self._conv(x, channels, channels // 4, 1)
            return self._op(
                "Relu",
                self._op(
                    "Add", self._conv(self._conv(narrow, channels // 4, channels // 4), channels // 4, channels, 1), x
                ),
            )
        if kind == 1:
            branches = [
                self._conv(x, channels, channels // 2, int(kernel)) for kernel in self._random.choice([1, 3, 5], 2)
            ]
            return self._op("Concat", *branches, axis=1)
        if kind == 2:
            gate = self._op("Sigmoid", self._conv(self._op("GlobalAveragePool", x), channels, channels, 1))
            return self._op("Mul", x, gate)
        return self._conv(self._conv(x, channels, 2 * channels, 1), 2 * channels, channels)

    def convolutional(self) -> onnx.ModelProto:
        size, channels = 64, 4 * int(self._random.integers(2, 7))
        x = self._conv("x", 3, channels)
        skips = []
        for _ in range(3):
            for _ in range(self._random.integers(1, 4)):
                x = self._block(x, channels)
            skips.append((x, channels))
            x, channels = self._conv(x, channels, 2 * channels, 3, 2), 2 * channels
        for skip, wanted in reversed(skips):
            up = self._op("ConvTranspose", x, self._weight(channels, wanted, 2, 2), kernel_shape=[2, 2], strides=[2, 2])
            x, channels = self._conv(self._op("Concat", up, skip, axis=1), 2 * wanted, wanted), wanted
        return self._model(self._conv(x, channels, 1), (1, 3, size, size))

    def transformer(self) -> onnx.ModelProto:
        rows, heads = int(self._random.integers(8, 96)), int(self._random.integers(2, 5))
        width = 32 * heads
        self._weights += [
            numpy_helper.from_array(np.array([1, rows, heads, 32]), "apart"),
            numpy_helper.from_array(np.array([1, rows, width]), "joined"),
        ]
        x = "x"
        for _ in range(self._random.integers(2, 5)):
            q, k, v = (
                self._op(
                    "Transpose",
                    self._op("Reshape", self._op("MatMul", x, self._weight(width, width)), "apart"),
                    perm=[0, 2, 1, 3],
                )
                for _ in range(3)
            )
            scores = self._op("Softmax", self._op("MatMul", q, self._op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
            context = self._op(
                "Reshape", self._op("Transpose", self._op("MatMul", scores, v), perm=[0, 2, 1, 3]), "joined"
            )
            x = self._norm(self._op("Add", self._op("MatMul", context, self._weight(width, width)), x), width)
            hidden = self._op("Gelu", self._op("MatMul", x, self._weight(width, 4 * width)))
            x = self._norm(self._op("Add", x, self._op("MatMul", hidden, self._weight(4 * width, width))), width)
        return self._model(x, (1, rows, width))

    def _norm(self, x: str, width: int) -> str:
        return self._op("LayerNormalization", x, self._weight(width), self._weight(width))

    def _model(self, y: str, shape: tuple[int, ...]) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        out = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, "drawn", [x], [out], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def drawn(name: str) -> onnx.ModelProto:
    """Return the network "convolutional SEED" or "transformer SEED"."""
    kind, seed = name.split()
    return getattr(Drawn(int(seed)), kind)()
