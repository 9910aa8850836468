"""Resize, and images sampled on grids."""

from typing import Any

import numpy as np
from case import Case, Input, i64, r

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def _resize(
    x: Input,
    *,
    scales: list[float] | None = None,
    sizes: list[int] | None = None,
    roi: list[float] | None = None,
    **attributes: Any,
) -> Case:
    inputs: list[Input] = [
        x,
        None if roi is None else np.array(roi, np.float32),
        None if scales is None else np.array(scales, np.float32),
    ]
    if sizes is not None:
        inputs.append(i64(*sizes))
    # If a scale does not yield a whole size, onnxruntime fails ONNX's own tests of interpolation with align_corners.
    fractional = any((scale * size) % 1 for scale, size in zip(scales or (), x.shape, strict=False))
    aligned = attributes["mode"] != "nearest" and attributes.get("coordinate_transformation_mode") == "align_corners"
    return Case("Resize", inputs, attributes, "onnx" if fractional and aligned else None, tolerance="loose")


X = r(1, 3, 6, 5)
CASES = [
    *(
        case
        for mode in ("nearest", "linear", "cubic")
        for coordinates in COORDINATES
        for case in (
            _resize(X, scales=[1, 1, 2, 2], mode=mode, coordinate_transformation_mode=coordinates),
            _resize(X, sizes=[1, 3, 4, 9], mode=mode, coordinate_transformation_mode=coordinates),
            _resize(X, scales=[1, 1, 0.6, 1.7], mode=mode, coordinate_transformation_mode=coordinates),
        )
    ),
    *(
        _resize(X, sizes=[1, 3, 7, 9], mode="nearest", nearest_mode=nearest, coordinate_transformation_mode=coordinates)
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for coordinates in ("half_pixel", "asymmetric", "align_corners")
    ),
    _resize(r(1, 6, 5, 8), scales=[1, 2, 2, 1], mode="linear"),
    _resize(
        r(1, 6, 5, 8),
        scales=[1, 2, 2, 1],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    _resize(
        X,
        sizes=[1, 3, 4, 4],
        roi=[0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=10.0,
    ),
    _resize(X, scales=[1, 1, 0.8, 1.7], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    _resize(r(2, 3, 4, 5, 4), scales=[1, 1, 2, 1.5, 0.5], mode="linear"),
    _resize(X, scales=[1, 1, 0.6, 0.4], mode="linear", antialias=1),
    *(
        _resize(
            X, sizes=sizes, mode=mode, antialias=1, exclude_outside=exclude, coordinate_transformation_mode=coordinates
        )
        for mode in ("linear", "cubic")
        for exclude in (0, 1)
        for coordinates in ("half_pixel", "align_corners", "asymmetric")
        for sizes in ([1, 3, 4, 3], [1, 3, 1, 7])
    ),
    _resize(X, sizes=[7, 8], mode="nearest", axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
    _resize(X, sizes=[7, 8], mode="linear", axes=[3, 2], keep_aspect_ratio_policy="not_smaller"),
    _resize(r(1, 1, 5, 5, dtype="uint8"), scales=[1, 1, 2, 2], mode="nearest"),
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
    # Half way between two elements, within and far outside of the image.
    *(
        Case(
            "GridSample",
            [r(1, 2, *size), np.arange(-23.0, 25.0).astype(np.float32).reshape(1, 4, 6, 2) / 8],
            {"mode": "nearest", "padding_mode": padding, "align_corners": align},
            tolerance="exact",
        )
        for padding in ("zeros", "border", "reflection")
        for align, size in ((0, (4, 8)), (1, (5, 9)))
    ),
    Case(
        "GridSample",
        [r(1, 2, 3, 4), np.array([1e10, 0, -1e10, 0.4, 3e12, -3e12], np.float32).reshape(1, 1, 3, 2)],
        {"mode": "nearest", "padding_mode": "border"},
        tolerance="exact",
    ),
    Case("GridSample", [r(1, 2, 3, 4, 5), r(1, 2, 3, 2, 3, low=-1.2, high=1.2)], {"mode": "linear"}, tolerance="loose"),
    *(
        Case(
            "AffineGrid",
            [r(2, axes, axes + 1), i64(2, 3, *size)],
            {"align_corners": aligned},
            host=[1],
            tolerance="normal",
        )
        for axes, size in [(2, (5, 6)), (2, (2, 70)), (2, (1, 3)), (3, (2, 3, 4)), (3, (1, 2, 1))]
        for aligned in (0, 1)
    ),
]
