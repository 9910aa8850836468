"""Operators that sample images, and the Fourier transform."""

import numpy as np
from case import Case, i64, r

REGIONS = np.array([[0, 0, 4, 5], [1, 1, 7, 6], [2.5, 0.5, 6, 8]], np.float32)

CASES = [
    *(
        Case(
            "GridSample",
            [r(2, 3, 5, 6), r(2, 4, 3, 2, low=-1.5, high=1.5)],
            {"mode": mode, "padding_mode": padding, "align_corners": align},
            tolerance="loose",
        )
        for mode in ("linear", "nearest", "cubic")
        for padding in ("zeros", "border", "reflection")
        for align in (0, 1)
    ),
    Case("GridSample", [r(1, 2, 3, 4, 5), r(1, 2, 3, 2, 3, low=-1.2, high=1.2)], {"mode": "linear"}, tolerance="loose"),
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
    Case("Col2Im", [r(1, 12, 20), i64(5, 6), i64(2, 2)], {}, "onnx", tolerance="normal", host=(1, 2)),
    Case(
        "Col2Im",
        [r(2, 6, 12), i64(5, 5), i64(1, 3)],
        {"strides": [2, 1], "pads": [0, 1, 1, 0]},
        "onnx",
        tolerance="normal",
        host=(1, 2),
    ),
    Case("DFT", [r(2, 12, 5, 1), None, i64(1).reshape(())], {}, "onnx", tolerance="loose", host=(1, 2)),
    Case("DFT", [r(2, 12, 5, 2), None, i64(1).reshape(())], {"inverse": 1}, "onnx", tolerance="loose", host=(1, 2)),
    Case(
        "DFT",
        [r(2, 12, 1), i64(9).reshape(()), i64(1).reshape(())],
        {"onesided": 1},
        "onnx",
        tolerance="loose",
        host=(1, 2),
    ),
    *(
        Case(
            "AffineGrid",
            [r(2, axes, axes + 1), i64(2, 3, *size)],
            {"align_corners": aligned},
            host=[1],
            tolerance="normal",
        )
        for axes, size in [(2, (5, 6)), (2, (2, 70)), (3, (2, 3, 4))]
        for aligned in (0, 1)
    ),
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
