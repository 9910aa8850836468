"""Reductions, indices of extremes, cumulative sums and products."""

import numpy as np
from case import Case, i64, r

SHAPES = [
    ((3, 4), [0]),
    ((3, 4), [1]),
    ((3, 4), None),
    ((2, 3, 4, 5), [1, 3]),
    ((2, 8, 12), [1]),
    ((2, 8, 12), [2]),
    ((2, 8, 12), [-1, 0]),
    ((2, 4, 5, 8), [1, 2]),
    ((), None),
    ((3, 1, 4), [1]),
    ((2, 3, 5, 7), [2, 3]),
    ((2, 2, 2, 2, 2, 2, 2, 2), [1, 3, 5, 7]),
    ((3, 0), [0]),
    ((1, 1003), [1]),
    ((1, 2048), [1]),
    ((1, 2000, 4), [1]),
]
RANGES = {"Prod": (0.97, 1.03), "LogSum": (0.1, 2.0)}


def _cases(kind: str) -> list[Case]:
    low, high = RANGES.get(kind, (None, None))
    return [
        Case(
            f"Reduce{kind}",
            [r(*shape, low=low, high=high), *([i64(*axes)] if axes else [])],
            {"keepdims": keepdims},
            tolerance="normal",
        )
        for shape, axes in SHAPES
        for keepdims in ((0, 1) if len(shape) in (0, 4) else (1,))
    ]


KINDS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
LONG = [
    Case("ReduceSum", [r(500, 1000), i64(0, 1)], tolerance="loose"),
    Case("ReduceMax", [r(100_000), i64(0)]),
    Case("ReduceMean", [r(1, 3000, 8), i64(1)], tolerance="normal"),
    Case("ReduceMean", [r(3000, 7), i64(0)], tolerance="normal"),
    Case("ReduceLogSumExp", [r(1, 5000, low=99, high=103), i64(1)], tolerance="normal"),
    Case("ReduceL2", [r(4, 40_000), i64(1)], tolerance="normal"),
]
EDGES = [
    *(
        Case(f"Reduce{op}", [r(3, 4, low=-1 if "Log" not in op else 0.1, high=2), i64()], {"noop_with_empty_axes": 1})
        for op in ("Sum", "Mean", "Max", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    ),
    Case("ReduceSum", [r(0, 3), i64(0)]),
    Case("ReduceMax", [r(0, 3), i64(0)], expected=lambda *_: np.full((1, 3), -np.inf, np.float32)),
    Case("ReduceMin", [r(0, 3), i64(0)], expected=lambda *_: np.full((1, 3), np.inf, np.float32)),
    Case(
        "ReduceMax",
        [np.array([[1, np.nan], [-np.inf, -np.inf]], np.float32), i64(1)],
        expected=lambda x, _: np.max(x, 1, keepdims=True),
    ),
    *(
        Case(f"Reduce{kind}", [r(3, 8, 5, dtype="int32", low=-9, high=9), i64(1)])
        for kind in ("Sum", "Max", "Prod", "L1")
    ),
    Case("ReduceMean", [r(3, 8, 5, dtype="int32"), i64(1)]),
    Case("ReduceSum", [r(3, 8, 5, dtype="int64"), i64(1)]),
    Case("ReduceMin", [r(3, 8, dtype="int8"), i64(1)]),
    Case("ReduceMax", [r(3, 8, dtype="uint8"), i64(1)]),
    Case("ReduceMax", [r(3, 2, dtype="bool"), i64(1)], expected=lambda x, _: np.max(x, 1, keepdims=True)),
]
ARGS = [
    Case(op, [r(*shape, dtype="int32", low=0, high=4)], {"axis": axis, "keepdims": keepdims, "select_last_index": last})
    for op in ("ArgMax", "ArgMin")
    for shape, axis in [((3, 4), 0), ((3, 4), 1), ((2, 3, 4, 5), 2), ((7,), 0), ((2, 100), -1), ((2, 0, 3), 0)]
    for keepdims in (0, 1)
    for last in (0, 1)
]

CASES = [
    *(case for kind in KINDS for case in _cases(kind)),
    *LONG,
    *EDGES,
    *ARGS,
    Case("ArgMax", [r(1, 5000)], {"axis": 1}),
    *(
        Case(
            op,
            [r(*shape), np.array(axis, np.int64)],
            {"exclusive": exclusive, "reverse": reverse},
            expected=by,
            host=[1],
        )
        for op, by in (("CumSum", None), ("CumProd", "onnx"))
        for shape, axis in [((5,), 0), ((3, 4), 1), ((2, 3, 4), -2)]
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
]
