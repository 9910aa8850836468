"""Fourier transforms."""

import numpy as np
from case import Case, i64, r


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


CASES = [
    Case("STFT", [r(2, 40, 1), scalar(4), r(16), scalar(16)], {}, "onnx", tolerance="loose", host=(1, 3)),
    Case("STFT", [r(2, 40, 1), scalar(5), None, scalar(9)], {"onesided": 0}, "onnx", tolerance="loose", host=(1, 3)),
    Case("STFT", [r(1, 30, 2), scalar(3), r(8)], {"onesided": 0}, "onnx", tolerance="loose", host=(1, 3)),
    Case("DFT", [r(2, 12, 5, 1), None, i64(1).reshape(())], {}, "onnx", tolerance="loose", host=(1, 2)),
    Case("DFT", [r(2, 12, 5, 2), None, i64(1).reshape(())], {"inverse": 1}, "onnx", tolerance="loose", host=(1, 2)),
    Case(
        "DFT",
        [r(2, 12, 1), i64(9).reshape(()), i64(1).reshape(())],
        {"onesided": 1},
        "onnx",
        tolerance="loose",
        host=(1, 2),
    ),
]
