"""Numbers as text: onnxruntime writes eight digits, whatever the type is."""

import numpy as np
from case import Case
from onnx import TensorProto

_WHOLE = [0, -0.0, 1, -2, 2.5, 1e5, 123456, 1e6, 1234567, 12345678, 123456789, 1e10, 1e15, 1e16, 1e17, 1e21, 3.4e38]
_SMALL = [0.1, 1 / 3, 0.30000001, 1e-4, 1e-5, 1.5e-5, 0.99999999, 0.999999999, 9.5367431640625e-07]
_SPECIAL = [np.inf, -np.inf, np.nan]
_RANDOM = [*np.random.default_rng(1).standard_normal(100), *10.0 ** np.random.default_rng(2).uniform(-30, 30, 100)]

CASES = [
    Case("Cast", [np.array([*_WHOLE, *_SMALL, *_SPECIAL, *_RANDOM]).astype(dtype)], {"to": TensorProto.STRING})
    for dtype in ("float32", "float64")
]
CASES += [
    Case(
        "Cast",
        [np.array([*_WHOLE[:5], *_SMALL, *_SPECIAL, *_RANDOM[:100]]).astype(np.float16)],
        {"to": TensorProto.STRING},
    ),
    Case("Cast", [np.array([0, -1, 2**31 - 1, -(2**31)], np.int32)], {"to": TensorProto.STRING}),
    Case("Cast", [np.array([0, 2**63 - 1, -(2**63)], np.int64)], {"to": TensorProto.STRING}),
    Case("Cast", [np.array([True, False])], {"to": TensorProto.STRING}),
]
