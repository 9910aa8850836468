"""Products and convolutions of 8-bit integers."""

import numpy as np
from case import MICROSOFT, Case, Input, r

from py_ort.ir.operators import INTERNAL


def u8(*shape: int) -> Input:
    return r(*shape, dtype="uint8", low=0, high=256)


def i8(*shape: int) -> Input:
    return r(*shape, dtype="int8", low=-128, high=128)


def _scales(n: int) -> Input:
    return r(n, low=0.001, high=0.02)


def _number(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def _conv(x: tuple[int, ...], w: tuple[int, ...], group: int, stride: int, pad: int, per_channel: bool) -> Case:
    attributes = {"kernel_shape": list(w[2:]), "strides": [stride] * 2, "pads": [pad] * 4, "group": group}
    scale = _scales(w[0]) if per_channel else _number(0.01)
    zero = np.zeros(w[0] if per_channel else (), np.int8)
    bias = r(w[0], dtype="int32", low=-500, high=500)
    inputs = [
        u8(*x),
        _number(0.02),
        _number(117, "uint8"),
        i8(*w),
        scale,
        zero,
        _number(0.5),
        _number(100, "uint8"),
        bias,
    ]
    return Case("QLinearConv", inputs, attributes, tolerance="exact")


A_SCALE, A_ZERO, Y_SCALE, Y_ZERO = _number(0.02), _number(100, "uint8"), _number(0.1), _number(128, "uint8")
ODD = (_number(0.5), _number(7, "uint8"))
#: By channels_last.
WINDOWS = ({"channels_last": 0, "count_include_pad": 1}, {"channels_last": 1, "count_include_pad": 0})

CASES = [
    *(
        Case("MatMulInteger", [u8(*a), i8(*b), *more], tolerance="exact")
        for a, b in (((3, 5), (5, 7)), ((2, 3, 5), (5, 16)), ((4, 33), (33, 17)), ((2, 1, 64), (2, 64, 9)))
        for more in ([], [_number(7, "uint8")], [_number(7, "uint8"), _number(-3, "int8")])
    ),
    Case("MatMulInteger", [u8(4, 6), u8(6, 11), _number(7, "uint8"), u8(11)], tolerance="exact"),
    Case(
        "QLinearMatMul",
        [u8(9, 16), A_SCALE, A_ZERO, i8(16, 12), _scales(12), np.zeros(12, np.int8), Y_SCALE, Y_ZERO],
        tolerance="exact",
    ),
    Case(
        "MatMulIntegerToFloat",
        [u8(5, 16), i8(16, 9), A_SCALE, _scales(9), A_ZERO, i8(9), r(9)],
        domain=MICROSOFT,
        tolerance="loose",
    ),
    Case(
        "ConvInteger",
        [u8(1, 4, 9, 8), u8(6, 2, 3, 3), _number(13, "uint8")],
        {"group": 2, "pads": [1, 1, 1, 1]},
        tolerance="exact",
    ),
    *(
        Case(
            "QGemm",
            [u8(5, 16), A_SCALE, A_ZERO, i8(16, 9), _scales(9), np.zeros(9, np.int8), bias, *result],
            domain=MICROSOFT,
            tolerance=tolerance,
        )
        for bias in (None, r(9, dtype="int32", low=-500, high=500))
        for result, tolerance in (([Y_SCALE, Y_ZERO], "exact"), ([], "tight"))
    ),
    # Means, sums and products halfway between two steps, with odd zero points.
    *(
        Case(f"QLinear{op}", [u8(3, 40), *ODD, u8(3, 40), *ODD, *ODD], domain=MICROSOFT, tolerance="exact")
        for op in ("Add", "Mul")
    ),
    *(
        Case(
            "ByteTable",
            [make(n), np.random.default_rng(5).integers(low, low + 256, 256).astype(dtype)],
            {},
            lambda x, table: table[x.view(np.uint8)],
            domain=INTERNAL,
            tolerance="exact",
            name=f"{dtype}",
        )
        for make in (u8, i8)
        for dtype, low in (("uint8", 0), ("int8", -128))
        for n in (0, 1, 3001)
    ),
    *(
        Case(op, [make(n), _number(0.05), zero, _number(0.03), zero], attributes, domain=MICROSOFT, tolerance="exact")
        for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}))
        for make, zero in ((u8, _number(120, "uint8")), (i8, _number(-5, "int8")))
        for n in (1, 255, 513, 3001)
    ),
    Case(
        "QLinearAveragePool",
        [u8(2, 4, 8, 6), *ODD, *ODD],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        domain=MICROSOFT,
        tolerance="exact",
    ),
    # Sixteen channels, fewer and more, in windows that padding cuts.
    *(
        Case(
            "QLinearAveragePool",
            [make(2, *((7, 5, n) if last else (n, 7, 5))), _number(0.5), zero, _number(0.25), zero],
            {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 2, 0], **WINDOWS[last]},
            domain=MICROSOFT,
            tolerance="exact",
        )
        for make, zero in ((u8, _number(7, "uint8")), (i8, _number(-5, "int8")))
        for last in (0, 1)
        for n in (1, 3, 16, 35)
    ),
    *(
        Case(
            "QLinearGlobalAveragePool",
            [make(2, *((7, 5, n) if last else (n, 7, 5))), _number(0.5), zero, _number(0.3), zero],
            {"channels_last": last},
            domain=MICROSOFT,
            tolerance="exact",
        )
        for make, zero in ((u8, _number(7, "uint8")), (i8, _number(-5, "int8")))
        for last in (0, 1)
        for n in (1, 17)
    ),
    *(
        Case(
            "QLinearAveragePool",
            [u8(2, 5, 8, 7), *ODD, *ODD],
            {"kernel_shape": [3, 3], "strides": [3, 2], "pads": [pad] * 4, "ceil_mode": 1, "count_include_pad": 1},
            domain=MICROSOFT,
            tolerance="exact",
        )
        for pad in (0, 1)
    ),
    Case(
        "QLinearSoftmax",
        [u8(6, 11), _number(0.05), Y_ZERO, _number(1 / 255), _number(0, "uint8")],
        {"axis": -1, "opset": 13},
        domain=MICROSOFT,
        tolerance="exact",
    ),
    *(
        Case("QLinearSoftmax", [x, *ends], {"axis": axis, "opset": 13}, domain=MICROSOFT, tolerance="exact")
        for x in (u8(6, 16, 5), u8(2, 33, 128), np.full((2, 3, 17), 255, np.uint8))
        for ends in (
            [_number(0.07), Y_ZERO, _number(1 / 256), Y_ZERO],
            [_number(2.5), None, _number(0.01), _number(0, "uint8")],
        )
        for axis in (-1, 1)
    ),
    *(
        Case(
            "QLinearSoftmax",
            [i8(*shape), _number(0.04), _number(-3, "int8"), _number(1 / 256), _number(-128, "int8")],
            {"axis": 1, "opset": 13},
            domain=MICROSOFT,
            tolerance="exact",
        )
        for shape in ((4, 37), (2, 20, 3))
    ),
    _conv((2, 3, 7, 6), (8, 3, 1, 1), 1, 1, 0, False),
    _conv((2, 4, 7, 6), (6, 2, 3, 3), 2, 2, 1, True),
    _conv((1, 4, 9, 8), (4, 1, 3, 3), 4, 1, 1, True),
    _conv((1, 7, 9, 8), (17, 7, 3, 3), 1, 1, 1, False),
]
