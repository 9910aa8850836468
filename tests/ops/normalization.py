"""Normalizations."""

import numpy as np
from case import MICROSOFT, Case, r


def _positive(*shape: int):  # type: ignore[no-untyped-def]
    return r(*shape, low=0.1, high=2.0)


def _rms(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale).astype(np.float32)


def _far(*shape: int) -> np.ndarray:
    """Around 10,000, by about one."""
    return (10000 + np.random.default_rng(5).standard_normal(shape)).astype(np.float32)


def _exact(axes: tuple[int, ...], last: bool = False):  # type: ignore[no-untyped-def]
    """Normalized in float64; scale and bias are for the last axis or for axis 1."""

    def expected(x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
        wide = x.astype(np.float64)
        y = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
        shape = scale.shape if last else (-1, *[1] * (x.ndim - 2))
        return (y * scale.reshape(shape) + bias.reshape(shape)).astype(np.float32)

    return expected


NHWC = "com.ms.internal.nhwc"
#: Means that a float's sum cannot hold.
FAR = [
    *(
        Case("LayerNormalization", [_far(2, n), r(n), r(n)], {}, _exact((1,), True), tolerance="loose", name=f"far {n}")
        for n in (384, 1003, 65536)
    ),
    *(
        Case(
            "InstanceNormalization",
            [_far(1, 4, h, w), r(4), r(4)],
            {},
            _exact((2, 3)),
            tolerance="loose",
            name=f"far {w}",
        )
        for h, w in ((128, 128), (65, 67))
    ),
    Case(
        "InstanceNormalization",
        [_far(1, 128, 128, 4), r(4), r(4)],
        {},
        _exact((1, 2), True),
        tolerance="loose",
        domain=NHWC,
        name="far, last",
    ),
]

CASES = [
    *FAR,
    *(
        case
        for n in (7, 32, 384)
        for case in (
            Case("LayerNormalization", [r(2, 5, n), r(n), r(n)], outputs=3, tolerance="loose"),
            Case("LayerNormalization", [r(2, 5, n), r(n)], {"epsilon": 0.01}, tolerance="normal"),
            Case("RMSNormalization", [r(2, 5, n), r(n)], expected=_rms, tolerance="normal"),
            Case("SimplifiedLayerNormalization", [r(2, 5, n), r(n)], tolerance="normal"),
            Case(
                "SkipLayerNormalization",
                [r(2, 5, n), r(2, 5, n), r(n), r(n), r(n)],
                {"epsilon": 1e-5},
                tolerance="normal",
                domain=MICROSOFT,
            ),
            Case(
                "SkipSimplifiedLayerNormalization",
                [r(2, 5, n), r(2, 5, n), r(n)],
                {"epsilon": 1e-5},
                tolerance="normal",
                domain=MICROSOFT,
            ),
        )
    ),
    # Their statistics are float32.
    *(
        Case(op, inputs, outputs=4, tolerance="loose", domain=MICROSOFT)
        for half in [r(2, 5, 16, dtype="float16")]
        for op, inputs in (
            ("SkipLayerNormalization", [half, half, r(16, dtype="float16"), r(16, dtype="float16")]),
            ("SkipSimplifiedLayerNormalization", [half, half, r(16, dtype="float16")]),
        )
    ),
    Case("LayerNormalization", [r(2, 4, 3, 5), r(3, 5), r(3, 5)], {"axis": 2}, tolerance="normal"),
    *(
        case
        for height, width in ((5, 7), (4, 8))
        for case in (
            Case("InstanceNormalization", [r(2, 6, height, width), r(6), r(6)], tolerance="normal"),
            Case("GroupNormalization", [r(2, 6, height, width), r(6), r(6)], {"num_groups": 3}, tolerance="normal"),
            Case("BatchNormalization", [r(2, 6, height, width), r(6), r(6), r(6), _positive(6)], tolerance="normal"),
            Case(
                "LRN", [r(2, 6, height, width)], {"size": 3, "alpha": 0.5, "beta": 0.6, "bias": 2.0}, tolerance="normal"
            ),
            *(
                Case("LpNormalization", [r(2, 6, height, width)], {"axis": axis, "p": p}, tolerance="normal")
                for p in (1, 2)
                for axis in (1, -1)
            ),
        )
    ),
    Case("BatchNormalization", [r(3, 6), r(6), r(6), r(6), _positive(6)], tolerance="normal"),
]
