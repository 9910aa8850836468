"""Short-time Fourier transforms, and convolutions and pools that go where tensors say."""

import numpy as np
from case import Case, i64, r


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def unpool_indices() -> np.ndarray:
    """Places in [1, 2, 4, 6] for [1, 2, 2, 3] elements: one in each window."""
    rng = np.random.default_rng(3)
    places = [
        (c * 4 + 2 * y + rng.integers(2)) * 6 + 2 * x + rng.integers(2)
        for c in range(2)
        for y in range(2)
        for x in range(3)
    ]
    return np.array(places, np.int64).reshape(1, 2, 2, 3)


POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
CASES = [
    Case("STFT", [r(2, 40, 1), scalar(4), r(16), scalar(16)], {}, "onnx", tolerance="loose", host=(1, 3)),
    Case("STFT", [r(2, 40, 1), scalar(5), None, scalar(9)], {"onesided": 0}, "onnx", tolerance="loose", host=(1, 3)),
    Case("STFT", [r(1, 30, 2), scalar(3), r(8)], {"onesided": 0}, "onnx", tolerance="loose", host=(1, 3)),
    Case("MaxUnpool", [r(1, 2, 2, 3), unpool_indices()], POOL, host=(2,)),
    Case("MaxUnpool", [r(1, 2, 2, 3), unpool_indices(), i64(1, 2, 5, 7)], POOL, "onnx", host=(2,)),
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
]
