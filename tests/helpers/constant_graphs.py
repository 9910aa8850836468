"""Random graphs of initializers: values that are computed before a run, and values that only kernels compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from growing_graphs import GrowingGraph
from onnx import numpy_helper

_UNARY = (
    *("Abs", "Neg", "Sign", "Relu", "Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid"),
    *("Not", "Erf", "Reciprocal", "Softplus", "Elu", "HardSigmoid", "IsNaN", "IsInf", "BitwiseNot", "Identity"),
    *("Gelu", "Mish"),
)
_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow", "Equal", "Less", "Greater", "And", "Or"),
    *("BitwiseAnd", "BitwiseXor"),
)
_TYPES = ("FLOAT", "INT64", "INT32", "UINT8", "INT8", "BOOL", "FLOAT16", "DOUBLE")


class ConstantGraph(GrowingGraph):
    """Consists of the operators that are folded, and of some others."""

    def _make_unary(self, x: str) -> None:
        self.add(self.pick(*_UNARY), [x])

    def _make_binary(self, x: str) -> None:
        pair = [x, self.partner(x)]
        op_type = self.pick(*_BINARY)
        fmod = {"fmod": 1} if op_type == "Mod" and (self.known[x].dtype.kind == "f" or self.chance(0.3)) else {}
        if op_type in ("Div", "Mod") and self.known[x].dtype.kind in "iu":
            divisor = np.maximum(np.abs(self.values((), self.known[x].dtype).astype(np.int64) % 7), 1)
            pair = [x, self.constant(divisor.astype(self.known[x].dtype))]
        self.add(op_type, pair, **fmod)

    def _make_where(self, x: str) -> None:
        known = self.known[x]
        condition = self.constant(self.values(tuple(self.pick(1, d) for d in known.shape), np.bool_))
        self.add("Where", [condition, x, self.partner(x)])

    def _make_cast(self, x: str) -> None:
        kinds = [onnx.TensorProto.DataType.Value(name) for name in _TYPES]
        self.add("Cast", [x], to=self.pick(*kinds, kinds[0], kinds[1]))

    def _make_shape(self, x: str) -> None:
        self.add(*self.pick(("Shape", [x]), ("Size", [x])))

    def _make_reshape(self, x: str) -> None:
        size = self.known[x].size
        divisors = [d for d in range(1, size + 1) if size % d == 0][:6] or [1]
        first = self.pick(*divisors)
        self.add("Reshape", [x, self.ints(*self.pick((-1,), (first, -1), (-1, 1, first), (1, -1)))])

    def _make_transpose(self, x: str) -> None:
        rank = self.known[x].ndim
        if rank:
            self.add("Transpose", [x], perm=[int(a) for a in self.rng.permutation(rank)])

    def _make_axes(self, x: str) -> None:
        rank = self.known[x].ndim
        ones = [i for i, d in enumerate(self.known[x].shape) if d == 1]
        if ones and self.chance():
            self.add("Squeeze", [x, self.ints(self.pick(*ones))])
        else:
            self.add("Unsqueeze", [x, self.ints(self.between(0, rank))])

    def _make_slice(self, x: str) -> None:
        rank = self.known[x].ndim
        if not rank:
            return
        axes = self.axes(rank)
        bounds = [[self.pick(self.between(-8, 8), -(2**63), 2**31) for _ in axes] for _ in range(2)]
        steps = [self.pick(1, 1, 2, -1, -2, -(2**63)) for _ in axes]
        self.add("Slice", [x, *(self.ints(*items) for items in (*bounds, axes, steps))])

    def _make_concat(self, x: str) -> None:
        if self.known[x].ndim:
            same = [
                n for n, y in self.known.items() if y.dtype == self.known[x].dtype and y.shape == self.known[x].shape
            ]
            self.add("Concat", [x, self.pick(*same)], axis=self.axis(self.known[x].ndim))

    def _make_split(self, x: str) -> None:
        shape = self.known[x].shape
        if shape:
            axis = self.axis(len(shape))
            first = self.between(0, shape[axis])
            self.add("Split", [x, self.ints(first, shape[axis] - first)], 2, axis=axis)

    def _make_gather(self, x: str) -> None:
        shape = self.known[x].shape
        if shape and min(shape):
            axis = self.axis(len(shape))
            kind = self.pick(np.int64, np.int32)
            indices = self.rng.integers(-shape[axis], shape[axis], self.shape(0, 2)).astype(kind)
            self.add("Gather", [x, self.constant(indices)], axis=axis)

    def _make_gather_nd(self, x: str) -> None:
        shape = self.known[x].shape
        if shape and min(shape):
            count = self.between(1, len(shape))
            points = np.stack([self.rng.integers(-d, d, 3) for d in shape[:count]], -1)
            if self.chance():
                self.add("GatherND", [x, self.constant(points)])
            else:
                updates = self.values((3, *shape[count:]), self.known[x].dtype)
                reduction = self.pick("none", "add", "max")
                self.add("ScatterND", [x, self.constant(points), self.constant(updates)], reduction=reduction)

    def _make_elements(self, x: str) -> None:
        shape = self.known[x].shape
        if shape and min(shape):
            axis = self.axis(len(shape))
            indices = self.constant(self.rng.integers(-shape[axis], shape[axis], shape))
            if self.chance():
                self.add("GatherElements", [x, indices], axis=axis)
            else:
                updates = self.constant(self.values(shape, self.known[x].dtype))
                self.add("ScatterElements", [x, indices, updates], axis=axis, reduction=self.pick("none", "add"))

    def _make_expand(self, x: str) -> None:
        shape = [d if d != 1 or self.chance() else self.between(1, 3) for d in self.known[x].shape]
        if self.chance(0.3):
            self.add("Tile", [x, self.ints(*(self.pick(1, 1, 2, 0) for _ in shape))])
        else:
            self.add("Expand", [x, self.ints(*([2] if self.chance(0.3) else []), *shape)])

    def _make_pad(self, x: str) -> None:
        rank = self.known[x].ndim
        pads = [self.pick(0, 0, 1, 2, -1) for _ in range(2 * rank)]
        self.add("Pad", [x, self.ints(*pads)], mode=self.pick("constant", "constant", "edge", "reflect", "wrap"))

    def _make_reduce(self, x: str) -> None:
        rank = self.known[x].ndim
        name = self.pick(*["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"])
        axes = [self.ints(*self.axes(rank))] if rank and self.chance(0.8) else []
        self.add(f"Reduce{name}", [x, *axes], keepdims=self.between(0, 1), noop_with_empty_axes=int(self.chance(0.2)))

    def _make_along(self, x: str) -> None:
        rank = self.known[x].ndim
        if not rank:
            return
        axis = self.axis(rank)
        choice = self.pick("Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "CumSum", "LpNormalization", "TopK")
        if choice == "CumSum":
            self.add(
                "CumSum", [x, self.constant(np.int64(axis))], exclusive=self.between(0, 1), reverse=self.between(0, 1)
            )
        elif choice == "TopK":
            size = self.known[x].shape[axis]
            self.add("TopK", [x, self.ints(self.between(0, size))], 2, axis=axis, largest=self.between(0, 1))
        elif choice == "LpNormalization":
            self.add(choice, [x], axis=axis, p=self.between(1, 2))
        elif choice.startswith("Arg"):
            self.add(choice, [x], axis=axis, keepdims=self.between(0, 1), select_last_index=self.between(0, 1))
        else:
            self.add(choice, [x], axis=axis)

    def _make_find(self, x: str) -> None:
        rank = self.known[x].ndim
        if self.chance() or not rank:
            self.add("NonZero", [x])
        else:
            condition = self.values((self.known[x].shape[0],), np.bool_)
            self.add("Compress", [x, self.constant(condition)], axis=0)

    def _make_triangle(self, x: str) -> None:
        self.add("Trilu", [x, self.constant(np.int64(self.between(-3, 3)))], upper=self.between(0, 1))

    def _make_clip(self, x: str) -> None:
        bounds = [self.constant(self.values((), self.known[x].dtype)) if self.chance(0.7) else "" for _ in range(2)]
        self.add("Clip", [x, *bounds])

    def _make_range(self, x: str) -> None:
        kind = self.pick(np.int64, np.int32, np.float32)
        numbers = [self.between(-5, 5), self.between(-5, 12), self.pick(1, 2, -1, -3)]
        self.add("Range", [self.constant(np.array(n, kind)) for n in numbers])

    def _make_one_hot(self, x: str) -> None:
        self.add("OneHot", [x, self.ints(self.between(1, 6)), self.constant(np.array([0, 3], np.int32))], axis=-1)

    def _make_eye(self, x: str) -> None:
        self.add("EyeLike", [x], k=self.between(-1, 1), dtype=self.pick(1, 6, 7))

    def _make_constant_of_shape(self, x: str) -> None:
        value = numpy_helper.from_array(self.values((1,)))
        self.add("ConstantOfShape", [self.ints(*self.shape())], value=value)

    def _make_product(self, x: str) -> None:
        known = self.known[x]
        if known.ndim and known.size:
            width = known.shape[-1]
            shape = self.pick((width,), (width, 3), (*known.shape[:-2], width, 2))
            self.add("MatMul", [x, self.constant(self.values(shape, known.dtype))])

    def _make_gemm(self, x: str) -> None:
        if self.known[x].ndim == 2 and self.known[x].size:
            weights = self.constant(self.values((4, self.known[x].shape[1]), self.known[x].dtype))
            bias = self.constant(self.values(self.pick((4,), (), (1, 4)), self.known[x].dtype))
            self.add("Gemm", [x, weights, bias], transB=1, alpha=self.pick(1.0, 0.5), beta=self.pick(1.0, 2.0))

    def _make_pool(self, x: str) -> None:
        image = self.image(x)
        rank = self.known[image].ndim - 2 if image else 0
        if not image:
            return
        kind = self.pick("MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "MaxPoolIndices")
        if kind.startswith("Global"):
            self.add(kind, [image])
            return
        pads = [self.between(0, 1) for _ in range(2 * rank)]
        attributes: dict[str, Any] = {
            "kernel_shape": [self.between(2, 3)] * rank,
            "strides": [self.between(1, 2)] * rank,
            "ceil_mode": self.between(0, 1),
            "pads": pads,
            "dilations": [self.between(1, 2)] * rank,
        }
        if kind == "AveragePool":
            attributes["count_include_pad"] = self.between(0, 1)
        self.add(kind.removesuffix("Indices"), [image], 2 if kind.endswith("Indices") else 1, **attributes)

    def _make_conv(self, x: str) -> None:
        image = self.image(x)
        if not image:
            return
        known = self.known[image]
        rank, channels = known.ndim - 2, known.shape[1]
        if self.chance(0.7):
            weights = self.constant(self.values((3, channels, *[self.between(1, 3)] * rank), np.float32))
            self.add("Conv", [image, weights], auto_pad=self.pick("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
        else:
            weights = self.constant(self.values((channels, 2, *[2] * rank), np.float32))
            self.add("ConvTranspose", [image, weights], strides=[self.between(1, 2)] * rank)

    def _make_norm(self, x: str) -> None:
        image = self.image(x)
        if not image:
            return
        channels = self.known[image].shape[1]
        scale, bias, mean = (self.constant(self.values((channels,), np.float32)) for _ in range(3))
        kind = self.pick("BatchNormalization", "InstanceNormalization", "LayerNormalization", "LRN")
        if kind == "BatchNormalization":
            variance = self.constant(np.abs(self.values((channels,), np.float32)) + np.float32(0.5))
            self.add(kind, [image, scale, bias, mean, variance])
        elif kind == "InstanceNormalization":
            self.add(kind, [image, scale, bias])
        elif kind == "LRN":
            self.add(kind, [image], size=3)
        else:
            width = self.known[image].shape[-1]
            self.add(kind, [image, *(self.constant(self.values((width,), np.float32)) for _ in range(2))])

    def _make_resize(self, x: str) -> None:
        image = self.image(x)
        if not image:
            return
        rank = self.known[image].ndim
        scales = self.constant(np.array([self.pick(1, 1, 0.5, 2, 1.5) for _ in range(rank)], np.float32))
        self.add(
            "Resize",
            [image, "", scales],
            mode="nearest",
            coordinate_transformation_mode=self.pick("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"),
            nearest_mode=self.pick("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"),
        )

    def _make_recurrent(self, x: str) -> None:
        kind, gates = self.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
        direction = self.pick("forward", "reverse", "bidirectional")
        directions = 2 if direction == "bidirectional" else 1
        steps, batch = self.between(1, 4), self.between(1, 3)
        shapes = ((steps, batch, 2), (directions, gates * 2, 2), (directions, gates * 2, 2))
        parts = [self.constant(self.values(shape, np.float32)) for shape in shapes]
        lengths = self.constant(self.rng.integers(1, steps, batch, endpoint=True).astype(np.int32))
        self.add(kind, [*parts, "", lengths], self.between(1, 2), hidden_size=2, direction=direction)

    def _make_quantized(self, x: str) -> None:
        if self.known[x].dtype != np.float32:
            return
        scale = self.constant(np.float32(self.pick(0.05, 0.1, 0.25)))
        zero = self.constant(np.array(self.between(0, 9), self.pick(np.uint8, np.int8)))
        self.add("QuantizeLinear", [x, scale, zero])

    def _make_dequantized(self, x: str) -> None:
        if self.known[x].dtype in (np.uint8, np.int8):
            zero = self.constant(np.array(self.between(0, 9), self.known[x].dtype))
            self.add("DequantizeLinear", [x, self.constant(np.float32(0.1)), zero])

    def _make_quantized_product(self, x: str) -> None:
        a = self.constant(self.rng.integers(0, 256, (3, 5)).astype(np.uint8))
        b = self.constant(self.rng.integers(0, 256, (5, 4)).astype(np.uint8))
        zero = self.constant(np.uint8(self.between(90, 150)))
        scales = [self.constant(np.float32(self.rng.uniform(0.005, 0.02))) for _ in range(3)]
        self.add("QLinearMatMul", [a, scales[0], zero, b, scales[1], zero, scales[2], zero])

    def _make_blocks(self, x: str) -> None:
        image = self.image(x, 4)
        if image:
            self.add("SpaceToDepth", [image], blocksize=self.between(1, 2))

    def _make_einsum(self, x: str) -> None:
        if self.known[x].ndim == 1:
            other = self.constant(self.values((3,), self.known[x].dtype))
            self.add("Einsum", [x, other], equation="i,j->ij")
