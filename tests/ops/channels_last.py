"""Operators on channels-last images, in the layout pass's form."""

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, r

NHWC = "com.ms.internal.nhwc"


def moved(op: str, **attributes: Any) -> Callable[..., np.ndarray]:
    """ONNX's operator between two transposes."""

    def expected(x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        second = np.moveaxis(x, -1, 1)
        (y,) = Case(op, [second, *rest], attributes).expectation([second, *rest])
        return np.moveaxis(y, 1, -1)

    return expected


def case(op: str, *inputs: Any, **attributes: Any) -> Case:
    return Case(op, inputs, attributes, moved(op, **attributes), domain=NHWC, tolerance="normal")


CASES = [
    *(case("BatchNormalization", r(2, 3, 5, c), r(c), r(c), r(c), r(c, low=0.5, high=2), epsilon=0.01) for c in (3, 8)),
    *(case("InstanceNormalization", r(2, 9, 5, c), r(c), r(c), epsilon=0.01) for c in (3, 8)),
    *(
        case(f"{kind}Normalization", r(2, 4, 5, 1), r(1), r(1), **groups)
        for kind, groups in (("Instance", {}), ("Group", {"num_groups": 1}))
    ),
    *(
        case("GroupNormalization", r(2, 9, 5, c), r(c), r(c), num_groups=g)
        for c, g in ((6, 2), (24, 3), (8, 1), (8, 8))
    ),
    *(case("LRN", r(2, 3, 4, c), size=size, alpha=0.2, bias=1.5) for c, size in ((7, 3), (8, 5))),
    *(case("DepthToSpace", r(2, 3, 4, 24), blocksize=2, mode=mode) for mode in ("DCR", "CRD")),
    case("SpaceToDepth", r(2, 6, 9, 5), blocksize=3),
    *(
        case("GridSample", r(2, 5, 6, 3), r(2, 4, 3, 2, low=-1.5, high=1.5), mode=mode, padding_mode=padding)
        for mode, padding in (("linear", "zeros"), ("cubic", "reflection"), ("nearest", "border"))
    ),
    *(
        case("ConvTranspose", r(1, 5, 4, 4), r(4, 6 // g, 3, 2), r(6), group=g, strides=[2, 1], dilations=[2, 3])
        for g in (1, 2)
    ),
]
