"""Products and convolutions of 8-bit integers on both providers."""

from typing import Any

import numpy as np
from case import Case, r


def _quantized(*shape: int, dtype: str = "uint8") -> Any:
    return r(*shape, dtype=dtype)


K3 = {"kernel_shape": [3, 3]}
CASES = [
    Case(
        "MatMulInteger",
        [r(3, 5, 7, dtype="uint8"), r(7, 4, dtype="int8"), np.array([3], np.uint8), r(4, dtype="int8")],
        tolerance="exact",
    ),
    Case("MatMulInteger", [r(2, 3, 6, 8, dtype="int8"), r(3, 8, 12, dtype="int8")], tolerance="exact"),
    Case("MatMulInteger", [r(1, 5, dtype="uint8"), r(5, 8, dtype="uint8"), np.array(9, np.uint8)], tolerance="exact"),
    Case(
        "QLinearMatMul",
        [
            r(9, 8, dtype="uint8"),
            np.array(0.02, np.float32),
            np.array(7, np.uint8),
            r(8, 12, dtype="uint8"),
            np.array(0.05, np.float32),
            np.array(120, np.uint8),
            np.array(0.3, np.float32),
            np.array(99, np.uint8),
        ],
        tolerance="exact",
    ),
    Case(
        "ConvInteger",
        [_quantized(1, 2, 5, 6), _quantized(3, 2, 3, 3), np.array(7, np.uint8)],
        {**K3, "pads": [1, 1, 1, 1]},
        tolerance="exact",
    ),
    Case(
        "QLinearConv",
        [
            _quantized(1, 4, 6, 7),
            np.array(0.02, np.float32),
            np.array(90, np.uint8),
            _quantized(6, 2, 3, 3, dtype="int8"),
            r(6, low=0.01, high=0.1),
            np.zeros(6, np.int8),
            np.array(0.5, np.float32),
            np.array(100, np.uint8),
            r(6, dtype="int32"),
        ],
        {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]},
        tolerance="exact",
    ),
    # Outputs in fours of a channel, channels in fours of a group; and a single axis.
    Case(
        "QLinearConv",
        [
            _quantized(2, 6, 8, 6),
            np.array(0.02, np.float32),
            np.array(90, np.uint8),
            _quantized(8, 3, 3, 3, dtype="int8"),
            np.array(0.03, np.float32),
            np.array(2, np.int8),
            np.array(0.5, np.float32),
            np.array(100, np.uint8),
        ],
        {"group": 2, "pads": [1, 1, 1, 1]},
        tolerance="exact",
    ),
    Case(
        "ConvInteger",
        [_quantized(2, 3, 9), _quantized(4, 3, 2)],
        {"dilations": [2], "kernel_shape": [2]},
        tolerance="exact",
    ),
]
