"""Operators that cut and join along axes."""

import numpy as np
from case import Case, i64, r

LARGE, SMALL = np.iinfo(np.int64).max, np.iinfo(np.int64).min

SLICES = [
    Case("Slice", [r(*shape), i64(*starts), i64(*ends), i64(*axes), i64(*steps)], tolerance="exact")
    for shape, starts, ends, axes, steps in [
        ((5, 6), [1], [4], [0], [1]),
        ((5, 6), [-1], [SMALL], [1], [-1]),
        ((5, 8), [4], [8], [1], [1]),
        ((4, 8, 12), [0, 4], [LARGE, 12], [0, 2], [2, 1]),
        ((4, 8), [10], [20], [0], [1]),
        ((6, 7), [5, 6], [0, -8], [0, 1], [-2, -3]),
        ((0, 4), [1], [3], [1], [1]),
        ((5, 6), [0], [5], [0], [1]),
        ((4, 16), [3, 8], [-5, 16], [0, 1], [-1, 1]),
    ]
]
PADS = [
    Case("Pad", [r(*shape), i64(*pads), *extra], {"mode": mode}, tolerance="exact")
    for mode in ("constant", "edge", "reflect", "wrap")
    for shape, pads, extra in [
        ((3, 4), (0, 1, 0, 2), [np.array(1.5, np.float32)]),
        ((2, 3, 4), (1, 0, 1, 0, 2, 0), []),
        ((1, 2, 5, 8), (0, 0, 1, 1, 0, 0, 1, 1), []),
        ((1, 5, 8, 8), (0, 1, 1, 0, 0, 1, 1, 0), []),
        ((6,), (2, 3), []),
        ((4, 8), (0, 4, 0, 4), []),
        ((2, 2, 2), (0, 0, 0, 0, 0, 0), []),
        ((5, 6), (-1, 2, -2, -3), []),
        ((5, 6), (-1, -1, 0, -2), []),
    ]
    if mode == "constant" or min(pads) >= 0
]
# Negative pads cut, and the rest is repeated.
PADS += [
    Case("Pad", [r(*shape), i64(*pads)], {"mode": mode}, tolerance="exact")
    for mode in ("edge", "reflect", "wrap")
    for shape, pads in [
        ((6,), (-2, 3)),
        ((6,), (2, -2)),
        ((5,), (-1, -1)),
        ((4, 6), (1, -1, -1, 2)),
        ((5, 3, 8), (-2, 0, 4, 1, 0, -2)),
    ]
]
CASES = [
    *SLICES,
    Case("Slice", [r(5, 6), i64(1), i64(3)], tolerance="exact"),
    *PADS,
    Case("Pad", [r(0, 3), i64(1, 0, 1, 0)], tolerance="exact"),
    Case("Pad", [r(2, 3, 4), i64(1, 2), None, i64(-1)], tolerance="exact"),
    *(
        Case("Pad", [r(3, 4, dtype=dtype), i64(1, 0, 1, 2), np.array(-3, dtype)], host=host, tolerance="exact")
        for dtype in ("float32", "int64")
        for host in ([1, 3], [1, 2, 3])
    ),
    Case("Split", [r(6, 4), i64(2, 4)], outputs=2),
    Case("Split", [r(2, 7)], {"axis": 1, "num_outputs": 3}, outputs=3),
    Case("Split", [r(2, 8, 3), i64(0, 8)], {"axis": 1}, outputs=2),
    Case("Split", [r(2, 8, 4)], {"axis": -1, "num_outputs": 2}, outputs=2),
    *(
        Case("Concat", [r(*shape) for shape in shapes], {"axis": axis})
        for shapes, axis in [
            ([(2, 3), (2, 4)], 1),
            ([(4, 8), (2, 8)], 0),
            ([(2, 4, 8), (2, 4, 12), (2, 4, 4)], 2),
            ([(1, k) for k in range(1, 20)], 1),
            ([(2, 0), (2, 3)], 1),
            ([(2, 0), (2, 0)], 1),
            ([(3,)], 0),
            ([(2, 3, 4), (2, 1, 4)], -2),
        ]
    ),
    # An input without elements need not fit, if it contributes nothing; models cannot declare that.
    Case("Concat", [r(0, 4, 0, 8), r(1, 4, 2, 8)], {"axis": 2}, expected=lambda _, x: x),
    Case("Concat", [r(2, 4), r(3, 4), r(0, 9)], {"axis": 0}, expected=lambda x, y, _: np.concatenate([x, y])),
    Case("Concat", [r(2, 0), r(3, 4), r(3, 4)], {"axis": -1}, expected=lambda _, x, y: np.concatenate([x, y], 1)),
    Case("Concat", [r(0, 4), r(3, 0)], {"axis": 1}, expected=lambda x, _: x),
    Case("ReverseSequence", [r(4, 3, 2), i64(4, 1, 3)], {"time_axis": 0, "batch_axis": 1}),
    Case("ReverseSequence", [r(3, 4, 2), i64(4, 1, 3)], {"time_axis": 1, "batch_axis": 0}),
]
