"""An exported detector like YOLOv8n, with random weights: C2f and SPPF, a neck that goes up and down again.

For images of one size, or of any size: the places and steps of the boxes are then computed from shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

_BINS = 16


class _Detector:
    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.channels: dict[str, int] = {}
        self._rng = np.random.default_rng(seed)
        self._count = 0

    def op(self, op_type: str, *inputs: str, channels: int = 0, outputs: int = 1, **attributes: Any) -> Any:
        self._count += 1
        names = [f"{op_type.lower()}_{self._count}_{i}" for i in range(outputs)]
        self.nodes.append(
            helper.make_node(op_type, list(inputs), names, name=f"/{op_type}_{self._count}", **attributes)
        )
        self.channels |= dict.fromkeys(names, channels)
        return names[0] if outputs == 1 else names

    def constant(self, contents: np.ndarray) -> str:
        self._count += 1
        name = f"const_{self._count}"
        self.constants.append(onnx.numpy_helper.from_array(contents, name))
        return name

    def plain_conv(self, x: str, outputs: int, size: int = 1, stride: int = 1) -> str:
        inputs = self.channels[x]
        weights = self._rng.standard_normal((outputs, inputs, size, size)) * np.sqrt(2 / (inputs * size * size))
        bias = self._rng.standard_normal(outputs) * 0.1
        parameters = (self.constant(item.astype(np.float32)) for item in (weights, bias))
        pads, strides = [size // 2] * 4, [stride] * 2
        return self.op("Conv", x, *parameters, channels=outputs, kernel_shape=[size] * 2, pads=pads, strides=strides)

    def conv(self, x: str, outputs: int, size: int = 1, stride: int = 1) -> str:
        made = self.plain_conv(x, outputs, size, stride)
        return self.op("Mul", made, self.op("Sigmoid", made), channels=outputs)

    def concat(self, *parts: str) -> str:
        return self.op("Concat", *parts, channels=sum(self.channels[part] for part in parts), axis=1)

    def c2f(self, x: str, outputs: int, count: int, shortcut: bool) -> str:
        half = outputs // 2
        sizes = self.constant(np.array([half, half], np.int64))
        parts = self.op("Split", self.conv(x, outputs), sizes, channels=half, outputs=2, axis=1)
        for _ in range(count):
            made = self.conv(self.conv(parts[-1], half, 3), half, 3)
            parts.append(self.op("Add", parts[-1], made, channels=half) if shortcut else made)
        return self.conv(self.concat(*parts), outputs)

    def sppf(self, x: str, outputs: int) -> str:
        half = self.channels[x] // 2
        parts = [self.conv(x, half)]
        for _ in range(3):
            parts.append(
                self.op("MaxPool", parts[-1], channels=half, kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1])
            )
        return self.conv(self.concat(*parts), outputs)

    def enlarged(self, x: str) -> str:
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        how = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
        return self.op("Resize", x, "", scales, channels=self.channels[x], **how)

    def centers(self, level: str) -> str:
        """Centers of a level's pixels, in exporters' form: [pixels, 2]."""
        height, width = self.height_and_width(level)
        zero, half, one = (self.constant(np.float32(n)) for n in (0, 0.5, 1))
        steps = (self.op("Cast", size, to=onnx.TensorProto.FLOAT) for size in (height, width))
        y, x = (self.op("Add", self.op("Range", zero, size, one), half) for size in steps)
        grid = self.op("Concat", self.op("Shape", y), self.op("Shape", x), axis=0)
        column, row, last = (self.constant(np.array(shape, np.int64)) for shape in ([-1, 1], [1, -1], [-1]))
        places = [self.op("Expand", self.op("Reshape", *pair), grid) for pair in ((x, row), (y, column))]
        pairs = self.op("Concat", *(self.op("Unsqueeze", place, last) for place in places), axis=-1)
        return self.op("Reshape", pairs, self.constant(np.array([-1, 2], np.int64)))

    def steps(self, level: str, stride: int) -> str:
        """The same number for each of a level's pixels: [pixels, 1]."""
        pixels = self.op("Mul", *self.height_and_width(level))
        zero, one = (self.constant(np.array([n], np.int64)) for n in (0, 1))
        shape = self.op("Concat", self.op("Unsqueeze", pixels, zero), one, axis=0)
        filled = self.op("ConstantOfShape", shape, value=onnx.numpy_helper.from_array(np.float32([0])))
        return self.op("Add", filled, self.constant(np.float32(stride)))

    def height_and_width(self, x: str) -> tuple[str, str]:
        shape = self.op("Shape", x)
        height, width = (self.op("Gather", shape, self.constant(np.array(axis, np.int64)), axis=0) for axis in (2, 3))
        return height, width


def yolo(size: int | None = 320, classes: int = 18, seed: int = 0) -> onnx.ModelProto:
    """Return the model: images [1, 3, size, size] (None: any size) → [1, 4 + classes, places]: boxes, scores."""
    d = _Detector(seed)
    d.channels["images"] = 3
    x = d.c2f(d.conv(d.conv("images", 16, 3, 2), 32, 3, 2), 32, 1, True)
    fine = d.c2f(d.conv(x, 64, 3, 2), 64, 2, True)
    middle = d.c2f(d.conv(fine, 128, 3, 2), 128, 2, True)
    coarse = d.sppf(d.c2f(d.conv(middle, 256, 3, 2), 256, 1, True), 256)
    up = d.c2f(d.concat(d.enlarged(coarse), middle), 128, 1, False)
    fine = d.c2f(d.concat(d.enlarged(up), fine), 64, 1, False)
    middle = d.c2f(d.concat(d.conv(fine, 64, 3, 2), up), 128, 1, False)
    coarse = d.c2f(d.concat(d.conv(middle, 128, 3, 2), coarse), 256, 1, False)
    rows, places, steps = [], [], []
    for level, stride in ((fine, 8), (middle, 16), (coarse, 32)):
        boxes = d.plain_conv(d.conv(d.conv(level, 64, 3), 64, 3), 4 * _BINS)
        scores = d.plain_conv(d.conv(d.conv(level, 64, 3), 64, 3), classes)
        shape = d.constant(np.array([0, 4 * _BINS + classes, -1], np.int64))
        both = d.concat(boxes, scores)
        rows.append(d.op("Reshape", both, shape))
        if size is None:
            places.append(d.centers(both))
            steps.append(d.steps(both, stride))
            continue
        grid = np.arange(size // stride) + 0.5
        places.append(d.constant(np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2).astype(np.float32)))
        steps.append(d.constant(np.full((len(grid) ** 2, 1), stride, np.float32)))
    found = d.op("Concat", *rows, axis=2)
    boxes, scores = d.op("Split", found, d.constant(np.array([4 * _BINS, classes], np.int64)), outputs=2, axis=1)
    bins = d.op("Reshape", boxes, d.constant(np.array([0, 4, _BINS, -1], np.int64)))
    shares = d.op("Softmax", d.op("Transpose", bins, perm=[0, 2, 1, 3], channels=_BINS), axis=1, channels=_BINS)
    weights = d.constant(np.arange(_BINS, dtype=np.float32).reshape(1, _BINS, 1, 1))
    sides = d.op("Reshape", d.op("Conv", shares, weights), d.constant(np.array([0, 4, -1], np.int64)))
    zero, two, four, one = (d.constant(np.array([n], np.int64)) for n in (0, 2, 4, 1))
    centers = d.op("Unsqueeze", d.op("Transpose", d.op("Concat", *places, axis=0), perm=[1, 0]), zero)
    low = d.op("Sub", centers, d.op("Slice", sides, zero, two, one))
    high = d.op("Add", centers, d.op("Slice", sides, two, four, one))
    middle = d.op("Div", d.op("Add", low, high), d.constant(np.float32(2)))
    boxes = d.op("Concat", middle, d.op("Sub", high, low), axis=1)
    scaled = d.op("Mul", boxes, d.op("Transpose", d.op("Concat", *steps, axis=0), perm=[1, 0]))
    d.op("Concat", scaled, d.op("Sigmoid", scores), axis=1)
    d.nodes[-1].output[0] = "output0"
    sizes: list[int | str] = ["batch", 3, "height", "width"] if size is None else [1, 3, size, size]
    count = "places" if size is None else sum((size // stride) ** 2 for stride in (8, 16, 32))
    image = helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, sizes)
    output = helper.make_tensor_value_info("output0", onnx.TensorProto.FLOAT, [sizes[0], 4 + classes, count])
    graph = helper.make_graph(d.nodes, "detector", [image], [output], d.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
