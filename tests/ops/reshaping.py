"""Operators that change a tensor's shape."""

import numpy as np
from case import Case, i64, r

TRANSPOSES = [
    Case("Transpose", [r(*shape, dtype=dtype)], {} if perm is None else {"perm": perm}, tolerance="exact")
    for shape, perm in [
        ((3, 4), None),
        ((2, 3, 4), (0, 2, 1)),
        ((2, 8, 16), (0, 2, 1)),
        ((2, 8, 4, 12), (0, 2, 3, 1)),
        ((2, 4, 12, 8), (0, 3, 1, 2)),
        ((1, 3, 5, 7), (0, 2, 3, 1)),
        ((2, 3, 4, 5, 6), (4, 2, 0, 3, 1)),
        ((8, 4, 4, 8), (2, 3, 0, 1)),
        ((2, 1, 3), (1, 0, 2)),
        ((0, 3), (1, 0)),
        ((2, 2, 2, 2, 2, 2, 2, 2), (7, 0, 6, 1, 5, 2, 4, 3)),
        ((4, 8, 12, 16), (3, 1, 2, 0)),
    ]
    for dtype in ("float32", "int64", "bool")
]
RESHAPES = [
    Case("Reshape", [r(2, 3, 4), i64(4, -1)]),
    Case("Reshape", [r(2, 3, 4), i64(0, -1)]),
    Case("Reshape", [r(0, 3), i64(3, 0)], {"allowzero": 1}),
    # Merging two reshapes makes such ones: onnxruntime refuses them in a model.
    Case("Reshape", [r(0, 3, 4), i64(0, -1)], expected=lambda x, shape: x.reshape(0, 12)),
    Case("Reshape", [r(2, 0, 4), i64(-1, 0)], expected=lambda x, shape: x.reshape(8, 0)),
    Case("Reshape", [r(1), i64()]),
    *(Case("Flatten", [r(2, 3, 4, 5)], {"axis": axis}) for axis in (0, 1, 2, 4, -1)),
    Case("Squeeze", [r(1, 3, 1, 5), i64(0, -2)]),
    Case("Squeeze", [r(1, 3, 1, 5)]),
    Case("Squeeze", [r(1, 3, 1, 5), i64()]),
    Case("Unsqueeze", [r(3, 4), i64(0, -1)]),
    Case("Identity", [r(3, 4)]),
]

CASES = [
    *TRANSPOSES,
    *RESHAPES,
    *(Case("DepthToSpace", [r(2, 12, 3, 4)], {"blocksize": 2, "mode": mode}) for mode in ("DCR", "CRD")),
    Case("SpaceToDepth", [r(2, 3, 4, 6)], {"blocksize": 2}),
    *(
        Case("Expand", [r(*shape), i64(*to)])
        for shape, to in [
            ((3, 1), (2, 3, 4)),
            ((1,), (5,)),
            ((3, 4), (3, 4)),
            ((2, 1, 4), (2, 3, 1)),
            ((1, 1), (0, 3)),
            ((), (3,)),
        ]
    ),
    *(
        Case("Tile", [r(*shape), i64(*repeats)])
        for shape, repeats in [
            ((2, 3), (2, 2)),
            ((4,), (3,)),
            ((1, 2, 4), (3, 1, 2)),
            ((2, 3), (1, 0)),
            ((2, 3), (1, 1)),
        ]
    ),
    *(Case("Trilu", [r(2, 4, 5)], {"upper": upper}) for upper in (0, 1)),
    *(
        Case("Trilu", [r(2, 4, 5), np.array(k, np.int64)], {"upper": upper})
        for upper in (0, 1)
        for k in (0, 1, -2, 5, -9)
    ),
]
