"""Random graphs for the layout pass, the fusions and the folding, valid by construction.

A `random.Random` makes all decisions: one with a seed, or one of hypothesis, which finds small graphs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import onnx
from onnx import helper

Shape = tuple[int, ...]

_REDUCTIONS = ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL2", "ReduceSumSquare")
_UNARY = ("Relu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Abs", "Neg", "Sin")


class RandomGraph:
    """Grows a graph node by node; every value's shape is known here, and may be hidden from the compiler."""

    def __init__(self, decide: random.Random, kinds: Collection[str] = ()) -> None:
        """Start from one image as input; `kinds` names the kinds of nodes to make, if not all."""
        found = [name for name in dir(self) if name.startswith("_make_")]
        self.makers = [getattr(self, name) for name in found if not kinds or name.removeprefix("_make_") in kinds]
        self.decide = decide
        self.numbers = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inner: set[str] = set()
        n, c, h, w = (self.integer(low, high) for low, high in ((1, 3), (1, 5), (4, 9), (4, 9)))
        self.shapes: dict[str, Shape] = {"x": (n, c, h, w)}
        self.input_shape = (n, c, h, w)

    def integer(self, low: int, high: int) -> int:
        """Return a decision: a number from `low`, below `high`."""
        return self.decide.randrange(low, high)

    def pick(self, *items: Any) -> Any:
        return items[self.integer(0, len(items))]

    def chance(self, likely: float = 0.5) -> bool:
        return self.integer(0, 100) < 100 * likely

    def constant(self, contents: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(contents), name))
        return name

    def floats(self, *shape: int) -> str:
        return self.constant((self.numbers.standard_normal(shape) * 0.5).astype(np.float32))

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *items: int) -> str:
        return self.constant(np.array(items, np.int64))

    def add(self, op_type: str, inputs: list[str], shapes: list[Shape], **attributes: Any) -> list[str]:
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(len(shapes))]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=f"n{len(self.nodes)}", **attributes))
        self.shapes.update(zip(outputs, shapes, strict=True))
        return outputs

    def op(self, op_type: str, inputs: list[str], shape: Shape, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.add(op_type, inputs, [shape], **attributes)[0]

    def grow(self) -> None:
        """Add one random node, on a recent value."""
        names = [name for name in self.shapes if name not in self.inner]
        value = names[max(0, len(names) - 1 - self.pick(0, 0, 0, 0, 1, 1, 2, 3))]
        self.pick(*self.makers)(value, self.shapes[value])

    def write(self, make: Callable[[RandomGraph, str, Shape], str], value: str) -> str:
        """Let `make` add nodes on a value; return its result. No other nodes read the values in between."""
        known = set(self.shapes)
        made = make(self, value, self.shapes[value])
        self.inner |= set(self.shapes) - known - {made}
        return made

    def _axis(self, shape: Shape) -> int:
        return self.integer(0, len(shape))

    def _make_unary(self, x: str, shape: Shape) -> None:
        self.add(self.pick(*_UNARY), [x], [shape])

    def _make_clip(self, x: str, shape: Shape) -> None:
        self.add("Clip", [x, self.constant(np.float32(-0.4)), self.constant(np.float32(0.7))], [shape])

    def _make_binary(self, x: str, shape: Shape) -> None:
        others = [
            name for name, other in self.shapes.items() if name not in (x, *self.inner) and _broadcasts(other, shape)
        ]
        op_type = self.pick("Add", "Mul", "Sub")
        if others and self.chance(0.6):
            pair = [x, self.pick(*others)]
        else:
            kept = [d if self.chance() else 1 for d in shape][self.integer(0, len(shape) + 1) :]
            pair = [x, self.floats(*kept)]
        self.add(op_type, pair if self.chance() else pair[::-1], [shape])

    def _make_conv(self, x: str, shape: Shape) -> None:
        if len(shape) not in (3, 4):
            return
        spatial = len(shape) - 2
        depthwise = self.chance(0.3)
        out = shape[1] if depthwise else self.integer(1, 6)
        k, s = self.pick(1, 3), self.pick(1, 1, 2)
        pad = k // 2 if self.chance(0.7) else 0
        sizes = [(d + 2 * pad - k) // s + 1 for d in shape[2:]]
        if any(d + 2 * pad < k for d in shape[2:]):
            return
        inputs = [x, self.floats(out, 1 if depthwise else shape[1], *[k] * spatial)]
        if self.chance():
            inputs.append(self.floats(out))
        self.add(
            "Conv",
            inputs,
            [(shape[0], out, *sizes)],
            pads=[pad] * 2 * spatial,
            strides=[s] * spatial,
            group=shape[1] if depthwise else 1,
        )

    def _make_pool(self, x: str, shape: Shape) -> None:
        if len(shape) != 4 or min(shape[2:]) < 2:
            return
        sizes = tuple((d - 2) // 2 + 1 for d in shape[2:])
        self.add(
            self.pick("MaxPool", "AveragePool"),
            [x],
            [(*shape[:2], *sizes)],
            kernel_shape=[2, 2],
            strides=[2, 2],
        )

    def _make_global_pool(self, x: str, shape: Shape) -> None:
        if len(shape) == 4:
            self.add("GlobalAveragePool", [x], [(*shape[:2], 1, 1)])

    def _make_batch_normalization(self, x: str, shape: Shape) -> None:
        if len(shape) < 3:
            return
        positive = self.constant((np.abs(self.numbers.standard_normal(shape[1])) + 0.5).astype(np.float32))
        self.add(
            "BatchNormalization",
            [x, self.floats(shape[1]), self.floats(shape[1]), self.floats(shape[1]), positive],
            [shape],
        )

    def _make_transpose(self, x: str, shape: Shape) -> None:
        perm = self.decide.sample(range(len(shape)), len(shape))
        if len(shape) == 4 and self.chance(0.6):
            perm = self.pick([0, 2, 3, 1], [0, 3, 1, 2])
        self.add("Transpose", [x], [tuple(shape[a] for a in perm)], perm=perm)

    def _make_reshape(self, x: str, shape: Shape) -> None:
        if len(shape) >= 3 and self.chance():  # two axes become one
            at = self.integer(0, len(shape) - 1)
            new = (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
        else:  # one becomes two
            at = self._axis(shape)
            divisors = [d for d in range(1, shape[at] + 1) if shape[at] % d == 0]
            first = self.pick(*divisors)
            new = (*shape[:at], first, shape[at] // first, *shape[at + 1 :])
        if len(new) > 5:
            return
        target = list(new)
        if self.chance() and target.count(1) < len(target):
            target[self.integer(0, len(target))] = -1
        self.add("Reshape", [x, self.ints(*target)], [new])

    def _make_reduce(self, x: str, shape: Shape) -> None:
        if len(shape) < 2:
            return
        axis, keep = self._axis(shape), self.integer(0, 2)
        new = tuple(1 if i == axis else d for i, d in enumerate(shape) if keep or i != axis)
        self.add(self.pick(*_REDUCTIONS), [x, self.ints(axis)], [new], keepdims=keep)

    def _make_squeeze(self, x: str, shape: Shape) -> None:
        ones = [i for i, d in enumerate(shape) if d == 1]
        if ones and len(shape) > 1:
            axis = self.pick(*ones)
            self.add("Squeeze", [x, self.ints(axis)], [(*shape[:axis], *shape[axis + 1 :])])

    def _make_unsqueeze(self, x: str, shape: Shape) -> None:
        if len(shape) < 5:
            axis = self.integer(0, len(shape) + 1)
            self.add("Unsqueeze", [x, self.ints(axis)], [(*shape[:axis], 1, *shape[axis:])])

    def _make_slice(self, x: str, shape: Shape) -> None:
        axis = self._axis(shape)
        if shape[axis] > 1:
            new = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
            self.add("Slice", [x, self.ints(1), self.ints(2**31), self.ints(axis - len(shape))], [new])

    def _make_pad(self, x: str, shape: Shape) -> None:
        before, after = ([self.integer(0, 2) for _ in shape] for _ in range(2))
        self.add(
            "Pad",
            [x, self.ints(*before, *after)],
            [tuple(d + a + b for d, a, b in zip(shape, before, after, strict=True))],
        )

    def _make_concat(self, x: str, shape: Shape) -> None:
        axis = self._axis(shape)
        fitting = [
            n
            for n, o in self.shapes.items()
            if n not in self.inner
            and len(o) == len(shape)
            and all(a == b or i == axis for i, (a, b) in enumerate(zip(o, shape, strict=True)))
        ]
        other = self.pick(*fitting)
        new = (*shape[:axis], shape[axis] + self.shapes[other][axis], *shape[axis + 1 :])
        self.add("Concat", [x, other], [new], axis=axis)

    def _make_split(self, x: str, shape: Shape) -> None:
        axis = self._axis(shape)
        if shape[axis] > 1:
            parts = (1, shape[axis] - 1)
            shapes = [(*shape[:axis], part, *shape[axis + 1 :]) for part in parts]
            self.add("Split", [x, self.ints(*parts)], shapes, axis=axis)

    def _make_softmax(self, x: str, shape: Shape) -> None:
        self.add("Softmax", [x], [shape], axis=self._axis(shape))

    def _make_resize(self, x: str, shape: Shape) -> None:
        if len(shape) == 4 and shape[2] * shape[3] < 200:
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            new = (*shape[:2], shape[2] * 2, shape[3] * 2)
            attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            self.add("Resize", [x, "", scales], [new], **attributes)

    def _make_gather(self, x: str, shape: Shape) -> None:
        axis = self._axis(shape)
        if len(shape) > 1 and self.chance():
            self.add("Gather", [x, self.constant(np.int64(0))], [(*shape[:axis], *shape[axis + 1 :])], axis=axis)
        else:
            self.add("Gather", [x, self.ints(shape[axis] - 1, 0)], [(*shape[:axis], 2, *shape[axis + 1 :])], axis=axis)

    def _make_matmul(self, x: str, shape: Shape) -> None:
        if len(shape) >= 2:
            columns = self.integer(1, 5)
            self.add("MatMul", [x, self.floats(shape[-1], columns)], [(*shape[:-1], columns)])

    def model(self, *, symbolic: bool) -> onnx.ModelProto:
        """Return the model; every unread value is an output. `symbolic` hides batch, height and width."""
        read = {name for node in self.nodes for name in node.input}
        ends = [name for name in self.shapes if name not in read and name != "x"]
        n, c, h, w = self.input_shape
        dims: list[int | str] = ["n", c, "h", "w"] if symbolic else [n, c, h, w]
        x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)
        outputs = [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None] * len(self.shapes[name]))
            for name in ends
        ]
        graph = helper.make_graph(self.nodes, "random", [x], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)


def _broadcasts(other: Shape, shape: Shape) -> bool:
    return len(other) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(other), reversed(shape), strict=False))


def random_graph(seed: int | random.Random, nodes: int = 14, kinds: Collection[str] = ()) -> RandomGraph:
    """Return a graph with at least one node; `kinds`: only these."""
    graph = RandomGraph(random.Random(seed) if isinstance(seed, int) else seed, kinds)
    while len(graph.nodes) < nodes:
        graph.grow()
    return graph
