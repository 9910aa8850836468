"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear; DynamicFakeQuantize."""

import numpy as np
from case import Case, r

ONE, FOUR = np.array(0.1, np.float32), np.array([0.1, 0.2, 0.3, 0.4], np.float32)


def _cases(dtype: str) -> list[Case]:
    x, q = r(3, 4, 5, low=-20, high=20), r(3, 4, 6, dtype=dtype, low=0)
    zero, zeros = np.array(3, dtype), np.array([3, 4, 5, 6], dtype)
    return [
        Case("QuantizeLinear", [x, ONE, zero], tolerance="exact"),
        Case("QuantizeLinear", [x, FOUR, zeros], {"axis": 1}, tolerance="exact"),
        Case("DequantizeLinear", [q, ONE, zero]),
        Case("DequantizeLinear", [q, FOUR, zeros], {"axis": 1}),
        Case("DequantizeLinear", [q, r(3, 4, 2), r(3, 4, 2, dtype=dtype, low=0, high=9)], {"axis": 2, "block_size": 3}),
        *(
            case
            for length in (8, 7)  # the last block whole, and short
            for blocks in [{"axis": 0, "block_size": 4}]
            for case in (
                Case("QuantizeLinear", [r(length, low=-20, high=20), FOUR[:2], zeros[:2]], blocks, tolerance="exact"),
                Case("DequantizeLinear", [r(length, dtype=dtype, low=0), FOUR[:2], zeros[:2]], blocks),
            )
        ),
    ]


def _and_back(x: np.ndarray) -> np.ndarray:
    """Return the floats for which onnxruntime's integers stand."""
    integers, scale, zero = Case("DynamicQuantizeLinear", [x], outputs=3).expectation([x])
    return (integers.astype(np.float32) - zero.astype(np.float32)) * scale


CASES = [
    *_cases("uint8"),
    *_cases("int8"),
    Case("QuantizeLinear", [r(3, 4), ONE]),
    Case("DequantizeLinear", [r(7, dtype="int32"), ONE]),
    *(
        Case("DynamicQuantizeLinear", [x], outputs=3)
        for x in (r(7), r(3, 4, low=1, high=5), np.zeros(3, np.float32), r(5000, low=-3, high=0))
    ),
    # Zero in the middle: the zero point's quotient is 127.5, or the float below it.
    *(
        Case("DynamicQuantizeLinear", [np.array([-most, 0.3, most], np.float32)], outputs=3, tolerance="exact")
        for most in (3.3320353, 8.366424, 0.7044746, 6.7315784, 1.0639797, 4.4226546, 250.0)
    ),
    *(
        Case("DynamicQuantizeLinear", [np.array(values, np.float32)], outputs=3)
        for values in (
            *((1, -np.inf, 2), (1, np.inf, 2), (-np.inf, np.inf), (-np.inf, -1)),
            *((np.nan, 1, -2), (1, -2, np.nan), (np.nan, np.nan), (np.nan, np.inf, -1), (np.nan, -np.inf, 1)),
        )
    ),
    # A scale for which a multiplication by 1/255 is off by a bit.
    Case("DynamicQuantizeLinear", [np.array([-4.4226546, 2.3367743], np.float32)], outputs=3, tolerance="exact"),
    *(
        Case("DynamicFakeQuantize", [x], expected=_and_back, domain="com.ms.internal")
        for x in (
            *(r(7), r(3, 4, low=1, high=5), np.zeros(3, np.float32), r(5000, low=-3, high=0), r(2, 64, 33)),
            np.array([-3.3320353, 0.3, 3.3320353], np.float32),
        )
    ),
]
