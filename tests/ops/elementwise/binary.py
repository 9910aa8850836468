"""Functions of two or more elements, broadcast against each other."""

import numpy as np
from case import Case, i64, r

SHAPES = [
    ((5,), (5,)),
    ((4, 8), (8,)),
    ((4, 8), ()),
    ((2, 3, 4, 8), (1, 1, 1, 8)),
    ((2, 3, 4, 8), (2, 1, 1, 8)),
    ((2, 3, 4, 8), (1, 3, 1, 1)),
    ((2, 3, 5, 7), (2, 1, 5, 1)),
    ((3, 1, 5), (1, 4, 1)),
    ((1,), (2, 3)),
    ((0, 3), (3,)),
    ((2, 1, 0), (2, 4, 1)),
    ((1, 2, 1, 3, 1, 4, 1, 2), (2, 2, 1, 1, 2, 4, 3, 1)),
    ((), ()),
    ((3, 5), (5,)),
    ((2, 3, 4), (2, 3, 1)),
]
SIGNS = ([-7, 7, -7, 7, 5, 0], [3, -3, -3, 3, 5, 2])


def _f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


BROADCAST = [
    case
    for a, b in SHAPES
    for case in (
        *(Case(op, [r(*a), r(*b)]) for op in ("Add", "Sub", "Mul", "Div", "Max", "Less", "Equal")),
        Case("And", [r(*a, dtype="bool"), r(*b, dtype="bool")]),
        Case("Where", [r(*a, dtype="bool"), r(*a), r(*b)]),
    )
]
INTEGERS = [
    *(
        Case(op, [r(3, 8, dtype=dtype, low=0), r(8, dtype=dtype, low=1)])
        for dtype in ("int32", "int64", "uint32")
        for op in ("Add", "Sub", "Mul", "Div")
    ),
    # Narrow integers wrap around; onnxruntime does not support them.
    *(
        Case(op, [r(3, 8, dtype=dtype, low=0), r(8, dtype=dtype, low=1)], expected=function)
        for dtype in ("int8", "uint8", "int16", "uint16")
        for op, function in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply))
    ),
    *(
        Case("Mod", [np.array(SIGNS[0], dtype), np.array(SIGNS[1], dtype)], {"fmod": fmod})
        for dtype in (np.int64, np.int32, np.int8)
        for fmod in (0, 1)
    ),
    Case("BitShift", [np.array([16, 4, 1], np.uint8), np.array([1, 2, 9], np.uint8)], {"direction": "RIGHT"}),
    Case("BitShift", [np.array([16, 4, 255], np.uint8), np.array([1, 2, 3], np.uint8)], {"direction": "LEFT"}),
    Case(
        "BitShift",
        [np.array([-8, -1, 64], np.int8), np.array([1, 40, 2], np.int8)],
        {"direction": "RIGHT"},
        expected=lambda a, b: np.array([-4, -1, 16], np.int8),
    ),
    *(Case(op, [r(9, dtype="int32"), r(9, dtype="int32")]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
]
POWERS = [
    Case("Pow", [r(21, low=0.1, high=9), r(21)], tolerance="normal"),
    Case("Pow", [r(3, 8), _f32(2).reshape(())]),
    Case("Pow", [r(3, 8), np.array(3, np.int32)]),
    Case("Pow", [_f32(2, 3, -2, 0, 0, 1), _f32(-3, 0.5, 0.5, -1, 0, np.nan)]),
    Case(
        "Pow",
        [np.array([2, -3, 0, -1, 1, 2, 0, -7], np.int32), np.array([5, 3, 0, -3, -2, -1, -1, -2], np.int32)],
    ),
    Case("Pow", [np.array([2, 3, 9], np.int32), _f32(2, 3, 0.5)]),
]
VARIADIC = [
    *(Case(op, [r(3, 4)] * 19, tolerance="normal") for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, [r(3, 4), r(4), r(3, 1)]) for op in ("Sum", "Mean", "Max", "Min")),
    *(Case(op, [r(3)]) for op in ("Sum", "Mean", "Max", "Min")),
    Case("Max", [_f32(np.nan, 1), _f32(2, np.nan)]),
    Case("Min", [r(2, 3, dtype="int64"), r(3, dtype="int64")]),
]
CLIPS = [
    Case("Clip", [r(9), _f32(-0.5).reshape(()), _f32(0.5).reshape(())]),
    Case("Clip", [r(9), _f32(-0.5).reshape(()), _f32(0.5).reshape(())], host=[]),
    Case("Clip", [r(9), _f32(0.5).reshape(()), _f32(-0.5).reshape(())], expected=lambda x, *_: np.full_like(x, -0.5)),
    Case("Clip", [r(9), None, _f32(0.5).reshape(())]),
    Case("Clip", [r(9)]),
    Case("Clip", [i64(1, 200, -5, 3), None, np.array(50, np.int64)]),
    Case("Clip", [i64(1, 200, -5, 3), np.array(-(2**62), np.int64), np.array(50, np.int64)]),
]

CASES = [
    *BROADCAST,
    Case("Add", [r(70000, 3), r(3)]),
    *INTEGERS,
    *POWERS,
    *VARIADIC,
    *CLIPS,
    Case("Mod", [r(4, 9, low=-30, high=30), r(4, 9)], {"fmod": 1}, tolerance="loose"),
    Case("PRelu", [r(2, 3, 4), r(3, 1)]),
    *(Case("PRelu", [r(*shape), r(4, 2, 3)]) for shape in [(2, 3), (3,), (1, 2, 1)]),
    *(Case(op, [r(2, 8), r(8)]) for op in ("Greater", "GreaterOrEqual", "LessOrEqual")),
    *(Case(op, [r(5, dtype="bool"), r(5, dtype="bool")]) for op in ("Or", "Xor", "Equal")),
    Case("Where", [r(3, 1, dtype="bool"), r(4, dtype="int64"), r(1, dtype="int64")]),
]
