"""Pools, channels second and channels last, and pools of regions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from case import Case, i64, r

NHWC = "com.ms.internal.nhwc"
WINDOWS: list[Mapping[str, Any]] = [
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 0, 1, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
]

#: Windows that are larger than the image.
WIDE: list[tuple[tuple[int, ...], Mapping[str, Any]]] = [
    ((1, 8, 5, 1), {"kernel_shape": [1, 2], "strides": [2, 3], "ceil_mode": 1}),
    ((1, 5, 2, 4), {"kernel_shape": [3, 2], "strides": [4, 2], "ceil_mode": 1}),
    ((1, 5, 1, 4), {"kernel_shape": [2, 2], "strides": [3, 1]}),
    ((1, 4, 1, 5), {"kernel_shape": [3, 3], "strides": [2, 1], "auto_pad": "VALID"}),
    ((1, 4, 1, 3), {"kernel_shape": [3, 1], "pads": [1, 0, 0, 0]}),
]
#: Most elements of these windows are outside of the image.
VAST: Mapping[str, Any] = {"kernel_shape": [200, 160], "pads": [100, 80, 100, 80], "strides": [3, 2]}


def _both(op: str, x: tuple[int, ...] | np.ndarray, attributes: Mapping[str, Any]) -> list[Case]:
    """For random numbers of this shape, or for given ones; for infinite ones onnxruntime's results vary."""
    given = isinstance(x, np.ndarray)
    plain = Case(op, [x if given else r(*x)], attributes, "onnx" if given else None, tolerance="normal")

    def expected(x: np.ndarray) -> np.ndarray:
        y = plain.expectation([np.ascontiguousarray(np.moveaxis(x, -1, 1))])[0]
        return np.ascontiguousarray(np.moveaxis(y, 1, -1))

    last = np.moveaxis(x, 1, -1).copy() if given else r(x[0], *x[2:], x[1])
    return [plain, Case(op, [last], attributes, expected, tolerance="normal", domain=NHWC, name="last")]


#: Whole channels, and whole windows of others.
HIDDEN = np.where(np.indices((1, 8, 4, 6))[1] < 3, -np.inf, np.where(np.indices((1, 8, 4, 6))[3] < 4, -np.inf, 1))


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


UNPOOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
REGIONS = np.array([[0, 0, 4, 5], [1, 1, 7, 6], [2.5, 0.5, 6, 8]], np.float32)
CASES = [
    *(
        case
        for channels in (5, 8)
        for op in ("MaxPool", "AveragePool", "LpPool")
        for window in WINDOWS
        for case in _both(op, (2, channels, 11, 10), window)
    ),
    *_both("MaxPool", (1, 8, 11, 10), {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [1, 1, 1, 1]}),
    *_both("MaxPool", (1, 31, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    *_both("AveragePool", (1, 17, 7, 6), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    *_both("AveragePool", (1, 8, 11, 10), {**WINDOWS[0], "count_include_pad": 1}),
    *_both("AveragePool", (1, 8, 11, 10), {**WINDOWS[1], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    *(
        case
        for op in ("MaxPool", "AveragePool", "LpPool")
        for shape, window in WIDE
        for case in _both(op, shape, window)
    ),
    *_both("LpPool", (1, 4, 6, 7), {"kernel_shape": [3, 3], "p": 3}),
    *(case for op in ("MaxPool", "AveragePool", "LpPool") for case in _both(op, (1, 4, 8, 7), VAST)),
    *_both("AveragePool", (1, 8, 9, 8), {**WINDOWS[1], "dilations": [2, 3], "pads": [2, 1, 1, 2]}),
    *_both(
        "AveragePool",
        (1, 4, 9, 8),
        {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [2, 1, 1, 1], "count_include_pad": 1},
    ),
    *(
        case
        for shape in ((2, 5, 11, 10), (1, 8, 7, 7), (1, 32, 20, 20))
        for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
        for case in _both(op, shape, {})
    ),
    Case("MaxPool", [r(1, 3, 9, 8)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, outputs=2),
    Case("MaxPool", [r(1, 3, 9, 8)], {"kernel_shape": [3, 3], "storage_order": 1}, outputs=2),
    *_both("MaxPool", HIDDEN.astype(np.float32), {"kernel_shape": [2, 2]}),
    *_both("GlobalMaxPool", HIDDEN.astype(np.float32), {}),
    Case("MaxPool", [r(1, 3, 9)], {"kernel_shape": [3], "strides": [2]}),
    *(
        Case(
            "MaxPool",
            [r(1, channels, 9, 8, dtype=dtype, low=low, high=high)],
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
            tolerance="exact",
        )
        for channels in (1, 16, 35)
        for dtype, low, high in (("int8", -128, 128), ("int8", -128, -90), ("uint8", 0, 256), ("uint8", 0, 9))
    ),
    Case(
        "AveragePool",
        [r(1, 3, 5, 6, 7)],
        {"kernel_shape": [3, 2, 2], "strides": [2, 1, 2], "pads": [1, 0, 0, 1, 1, 1]},
        tolerance="normal",
    ),
    Case("MaxUnpool", [r(1, 2, 2, 3), unpool_indices()], UNPOOL, host=(2,)),
    Case("MaxUnpool", [r(1, 2, 2, 3), unpool_indices(), i64(1, 2, 5, 7)], UNPOOL, "onnx", host=(2,)),
    *(
        Case(
            "RoiAlign",
            [r(2, 3, 9, 9), REGIONS, i64(0, 1, 0)],
            {
                "mode": mode,
                "coordinate_transformation_mode": coordinates,
                "sampling_ratio": samples,
                "output_height": 3,
                "output_width": 2,
                "spatial_scale": 0.8,
            },
            tolerance="normal",
        )
        for mode in ("avg", "max")
        for coordinates in ("half_pixel", "output_half_pixel")
        for samples in (0, 2)
    ),
    *(Case("RoiAlign", [r(2, 3, *empty), REGIONS, i64(0, 1, 0)], {"sampling_ratio": 2}) for empty in ((0, 9), (9, 0))),
    *(
        Case(
            "MaxRoiPool",
            [
                r(2, 3, 9, 11),
                np.array([[0, 1, 1, 6, 7], [1, 0, 2, 10, 8], [1, 4, 4, 4, 4], [0, 9, 7, 30, 30]], np.float32),
            ],
            {"pooled_shape": pooled, "spatial_scale": scale},
            tolerance="exact",
        )
        for pooled, scale in [([2, 3], 1.0), ([4, 4], 0.55)]
    ),
]
