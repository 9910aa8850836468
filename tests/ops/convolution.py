"""Convolutions and transposed ones, channels second and channels last; DeformConv and Col2Im."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from case import MICROSOFT, Case, i64, r
from epilogues import epilogue

NHWC = "com.ms.internal.nhwc"
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "": lambda v: v,
    "Relu": lambda v: np.maximum(v, 0),
    "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "HardSwish": lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
}


#: For com.microsoft's FusedConv, with other numbers than the functions' defaults.
FUSED: dict[str, dict[str, list[float]]] = {
    **{name: {} for name in ("Relu", "Sigmoid", "Tanh")},
    "LeakyRelu": {"activation_params": [0.3]},
    "Clip": {"activation_params": [-0.5, 0.75]},
    "HardSigmoid": {"activation_params": [0.3, 0.6]},
}


def _last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _second(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


def _both(
    op: str,
    x: Sequence[int],
    w: Sequence[int],
    attributes: Mapping[str, Any],
    activation: str = "",
    residual: bool = False,
) -> list[Case]:
    """The unchanged node, and channels last with its weights unchanged and packed.

    `x`, `w`: shapes as in ONNX. Packed weights are [kh, kw, channels, outputs] for both operators.
    """
    group = attributes.get("group", 1)
    outputs = w[0] if op == "Conv" else w[1] * group
    perm = (2, 3, 1, 0) if op == "Conv" else (2, 3, 0, 1)
    plain = Case(op, [r(*x), r(*w), r(outputs)], attributes, tolerance="loose")
    extra = epilogue(activation, residual="first" if residual else None)
    shape = plain.expectation(plain.arrays())[0].shape if residual else ()

    def first() -> Case:
        if not residual or op != "Conv":
            return plain

        def expected(*given: np.ndarray) -> np.ndarray:
            return ACTIVATIONS[activation](plain.expectation(given[:3])[0] + given[3]).astype(np.float32)

        return Case(op, [*plain.inputs, r(*shape)], {**attributes, **extra}, expected, tolerance="loose")

    def make(packed: bool) -> Case:
        def expected(*given: np.ndarray) -> np.ndarray:
            weights = np.ascontiguousarray(np.transpose(given[1], np.argsort(perm))) if packed else given[1]
            y = plain.expectation([_second(given[0]), weights, given[2]])[0]
            y = _last(y) + (given[3] if residual else 0)
            return ACTIVATIONS[activation](y).astype(np.float32)

        weights = [w[axis] for axis in perm] if packed else w
        inputs = [r(x[0], *x[2:], x[1]), r(*weights), r(outputs)]
        if residual:
            inputs.append(r(shape[0], *shape[2:], shape[1]))
        layout = {"weight_layout": "HWIO"} if packed else {}
        name = "packed" if packed else "unpacked"
        return Case(op, inputs, {**attributes, **extra, **layout}, expected, tolerance="loose", domain=NHWC, name=name)

    return [first(), *([make(False), make(True)] if len(x) == 4 else [])]


K3 = {"kernel_shape": [3, 3]}
K2 = {"kernel_shape": [2, 2]}
CASES = [
    *_both("Conv", (1, 16, 9, 10), (32, 16, 1, 1), {"kernel_shape": [1, 1]}, "HardSwish"),
    *_both("Conv", (2, 16, 9, 11), (24, 16, 3, 3), {**K3, "pads": [1, 1, 1, 1]}, "Relu"),
    *_both("Conv", (1, 3, 17, 19), (16, 3, 3, 3), {**K3, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    *_both(
        "Conv",
        (1, 5, 9, 9),
        (7, 5, 3, 2),
        {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 2, 1], "dilations": [1, 2]},
    ),
    *_both("Conv", (1, 18, 6, 7), (42, 18, 1, 1), {"kernel_shape": [1, 1]}, residual=True),
    *_both("Conv", (1, 8, 7, 7), (8, 8, 3, 3), {**K3, "pads": [1, 1, 1, 1]}, "Sigmoid", residual=True),
    *_both("Conv", (1, 4, 3, 4, 5), (6, 4, 3, 3, 3), {"kernel_shape": [3] * 3, "pads": [1] * 6}, "Relu", residual=True),
    *_both("Conv", (1, 16, 9, 10), (16, 1, 3, 3), {**K3, "group": 16, "pads": [1, 1, 1, 1]}, "Relu"),
    *_both("Conv", (2, 12, 2, 9), (12, 1, 5, 5), {"kernel_shape": [5, 5], "group": 12, "pads": [2] * 4}, residual=True),
    *_both("Conv", (1, 9, 3, 7), (9, 1, 7, 3), {"kernel_shape": [7, 3], "group": 9, "pads": [5, 1, 4, 1]}),
    *_both(
        "Conv",
        (1, 7, 9, 10),
        (7, 1, 5, 5),
        {"kernel_shape": [5, 5], "group": 7, "strides": [2, 1], "pads": [2, 2, 2, 2]},
        residual=True,
    ),
    *_both("Conv", (1, 8, 19, 10), (8, 1, 3, 3), {**K3, "group": 8, "dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    *_both("Conv", (1, 8, 9, 10), (16, 1, 3, 3), {**K3, "group": 8}),
    *_both("Conv", (1, 16, 9, 10), (24, 8, 3, 3), {**K3, "group": 2, "pads": [1, 1, 1, 1]}),
    *_both("Conv", (1, 6, 9, 10), (9, 2, 3, 3), {**K3, "group": 3}),
    *_both("Conv", (1, 4, 8, 7), (5, 4, 4, 3), {"kernel_shape": [4, 3], "strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    *_both("Conv", (1, 16, 1, 1), (64, 16, 1, 1), {"kernel_shape": [1, 1]}),
    *_both("Conv", (1, 256, 5, 5), (32, 256, 3, 3), {**K3, "pads": [1, 1, 1, 1]}, "Relu"),
    Case(
        "Conv",
        [r(2, 4, 11), r(6, 2, 3), r(6)],
        {"kernel_shape": [3], "group": 2, "strides": [2], "pads": [1, 1]},
        tolerance="loose",
    ),
    Case(
        "Conv",
        [r(1, 2, 5, 6, 4), r(3, 2, 2, 3, 2), r(3)],
        {"kernel_shape": [2, 3, 2], "strides": [1, 2, 1], "pads": [1, 0, 1, 0, 1, 0]},
        tolerance="loose",
    ),
    *_both("ConvTranspose", (1, 24, 5, 6), (24, 24, 2, 2), {**K2, "strides": [2, 2]}, "Relu"),
    *_both("ConvTranspose", (1, 24, 5, 6), (24, 8, 2, 2), {**K2, "strides": [2, 2]}, "Relu", residual=True),
    *_both("ConvTranspose", (2, 8, 5, 6), (8, 3, 3, 3), {**K3, "strides": [2, 2], "group": 2}, residual=True),
    *_both("ConvTranspose", (1, 24, 5, 6), (24, 1, 2, 2), {**K2, "strides": [2, 2]}, "Sigmoid"),
    *_both(
        "ConvTranspose",
        (2, 5, 7, 6),
        (5, 6, 3, 3),
        {**K3, "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    # With the size of tiling windows, but shifted.
    *_both(
        "ConvTranspose",
        (1, 4, 3, 4),
        (4, 4, 3, 3),
        {**K3, "strides": [3, 3], "pads": [1, 1, 1, 1], "output_padding": [2, 2]},
    ),
    *_both(
        "ConvTranspose", (1, 8, 7, 6), (8, 4, 4, 4), {"kernel_shape": [4, 4], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    ),
    *_both(
        "ConvTranspose",
        (1, 8, 7, 6),
        (8, 4, 3, 2),
        {"kernel_shape": [3, 2], "strides": [1, 3], "pads": [1, 0, 0, 1], "group": 2},
    ),
    *_both("ConvTranspose", (1, 4, 7, 6), (4, 4, 3, 3), {**K3, "strides": [2, 2], "output_shape": [15, 13]}),
    # Pads with an odd sum, which output_shape splits.
    *(
        case
        for auto in ("NOTSET", "SAME_UPPER", "SAME_LOWER")
        for case in (
            Case(
                "ConvTranspose",
                [r(1, 4, 7), r(4, 2, 3), r(2)],
                {"kernel_shape": [3], "strides": [2], "output_shape": [12], "auto_pad": auto},
                tolerance="loose",
            ),
            *_both(
                "ConvTranspose",
                (1, 4, 7, 6),
                (4, 4, 3, 3),
                {**K3, "strides": [2, 2], "output_shape": [14, 12], "auto_pad": auto},
            ),
            Case(
                "ConvTranspose",
                [r(1, 4, 4, 5, 3), r(4, 3, 3, 2, 3), r(3)],
                {"kernel_shape": [3, 2, 3], "strides": [2, 1, 2], "output_shape": [8, 5, 4], "auto_pad": auto},
                tolerance="loose",
            ),
        )
    ),
    Case(
        "ConvTranspose",
        [r(1, 4, 7, 6), r(4, 4, 3, 3)],
        {**K3, "strides": [2, 2], "dilations": [2, 2]},
        tolerance="loose",
    ),
    Case("ConvTranspose", [r(1, 4, 7), r(4, 2, 3), r(2)], {"kernel_shape": [3], "strides": [2]}, tolerance="loose"),
    Case(
        "ConvTranspose",
        [r(1, 4, 4, 5, 3), r(4, 3, 3, 2, 3), r(6)],
        {"kernel_shape": [3, 2, 3], "strides": [2, 1, 2], "group": 2},
        tolerance="loose",
    ),
    *(
        Case(
            "DeformConv",
            [r(2, 4, 6, 7), r(6, 4 // group, 3, 2), r(2, 2 * offsets * 6, 5, 6), bias, mask],
            {"group": group, "offset_group": offsets, "pads": [1, 0, 0, 0]},
            "onnx",
            tolerance="normal",
        )
        for group, offsets, bias, mask in (
            (1, 1, None, None),
            (2, 2, r(6), r(2, 2 * 6, 5, 6)),
            (1, 2, r(6), r(2, 2 * 6, 5, 6)),
        )
    ),
    *(
        Case(
            "FusedConv",
            [r(2, 4, 6, 5), r(6, 4, 3, 3), r(6), *residual],
            {**K3, "pads": [1, 1, 1, 1], "activation": activation, **numbers},
            tolerance="loose",
            domain=MICROSOFT,
        )
        for activation, numbers in FUSED.items()
        for residual in ([], [r(2, 6, 6, 5)])
    ),
    Case("Col2Im", [r(1, 12, 20), i64(5, 6), i64(2, 2)], {}, "onnx", tolerance="normal", host=(1, 2)),
    Case(
        "Col2Im",
        [r(2, 6, 12), i64(5, 5), i64(1, 3)],
        {"strides": [2, 1], "pads": [0, 1, 1, 0]},
        "onnx",
        tolerance="normal",
        host=(1, 2),
    ),
]
