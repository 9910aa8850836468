"""TopK."""

from case import Case, i64, r

CASES = [
    Case("TopK", [r(*shape, **numbers), i64(k)], {"axis": axis, "largest": largest}, outputs=2, tolerance="exact")
    for shape, k, axis, numbers in [
        ((3, 10), 4, 1, {"dtype": "int32", "low": 0, "high": 5}),
        ((10, 3), 4, 0, {}),
        ((2, 7, 3), 7, 1, {"dtype": "int64", "low": -3, "high": 3}),
        ((20_000,), 5, 0, {}),
        ((2, 9000), 300, 1, {}),
        ((1, 5000), 1000, 1, {}),
        ((4,), 0, 0, {}),
    ]
    for largest in (0, 1)
]
