"""Softmax, LogSoftmax and Hardmax."""

from case import Case, r

SOFTMAXES = [
    ((3, 7), -1),
    ((2, 8, 16), -1),
    ((2, 5, 3, 8), 1),
    ((2, 5, 3, 3), 1),
    ((1, 1000), 1),
    ((6, 1025), 1),
    ((4,), 0),
]

CASES = [
    *(
        Case(op, [r(*shape, low=-8, high=8)], {"axis": axis}, tolerance="normal" if op != "Hardmax" else "exact")
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for shape, axis in SOFTMAXES
    ),
]
