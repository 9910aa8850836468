"""Tensors made from a few numbers."""

import numpy as np
from case import Case, i64, r

CASES = [
    *(
        Case(
            "OneHot",
            [np.array([[1, -1, 7], [0, 2, 3]]), np.array(5, np.int64), np.array([0, 2], np.float32)],
            {"axis": axis},
        )
        for axis in (-1, 0, 1)
    ),
    *(Case("Range", [np.array(x, np.float32) for x in limits]) for limits in [(0, 5, 0.5), (10, 0, -3)]),
    Case("Range", [np.array(x, np.int64) for x in (10, -3, -4)]),
    Case("Range", [np.array(x, np.int32) for x in (3, 3, 1)]),
    Case("ConstantOfShape", [i64(2, 3)]),
    Case("EyeLike", [r(3, 4)], {"k": 1}),
    Case("EyeLike", [r(3, 4)], {"dtype": 7}),
]
