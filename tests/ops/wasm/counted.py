"""Operators whose result's shape depends on data: on the CPU one node, on a GPU two (tests/page/test_counted.py)."""

import numpy as np
from case import Case, r

BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [5, 5, 6, 6]], np.float32)[None]
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5], np.float32)[None, None]
REPEATED = np.array([[2, 1, 2, 3], [2, 1, 2, 3], [0, 5, 0, 3]], np.float32)

CASES = [
    *(Case("NonZero", [r(3, 5, dtype=dtype, low=0, high=2)]) for dtype in ("bool", "int32", "int64")),
    Case("NonZero", [np.zeros((2, 3), np.float32)]),
    *(
        Case("Compress", [r(4, 3), np.array(chosen)], attributes)
        for chosen, attributes in (
            ([True, False, True], {"axis": 0}),
            ([False, True, True], {"axis": -1}),
            ([False, True, True, False, True], {}),
            ([False], {"axis": 1}),
        )
    ),
    *(
        Case("Unique", [REPEATED], {"sorted": ordered, **attributes}, outputs=4)
        for ordered in (0, 1)
        for attributes in ({}, {"axis": 0}, {"axis": 1})
    ),
    *(
        Case(
            "NonMaxSuppression",
            [BOXES, SCORES, np.array([most]), np.array([overlap], np.float32), np.array([least], np.float32)],
        )
        for most, overlap, least in ((5, 0.5, 0.0), (2, 0.5, 0.0), (5, 0.99, 0.0), (5, 0.5, 0.7), (0, 0.5, 0.0))
    ),
]
