"""Numbers as text, and functions of the largest and the smallest floats, and of tensors of any length."""

import numpy as np
from case import Case, r
from elementwise.cast import INTEGERS, beyond
from onnx import TensorProto

from py_ort.schema.scalar_functions import FUNCTIONS

# As text: onnxruntime writes eight digits for all types.

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

#: The largest floats, the smallest normal ones, denormals, and non-finite ones; on GPUs denormals may be 0.
_EDGES = [np.finfo(np.float32).max, 1e30, 1.5, np.finfo(np.float32).tiny, 5.9e-39, 1e-42, 1.4e-45, 0.0, np.inf]
EDGES = np.array([*_EDGES, *(-x for x in _EDGES), np.nan], np.float32)

CASES += [
    Case(row.name, [EDGES], tolerance="normal")
    for row in FUNCTIONS.values()
    if "" in row.domains and row.name != "Swish"  # native lacks these
]
# Whole vectors and their rest, whole blocks of the micro-kernel and their rest.
CASES += [Case(op, [r(n)]) for op in ("Tanh", "LeakyRelu") for n in (1, 2, 3, 4, 5, 7, 1023, 1024, 1025, 4099)]

# Vectors of floats within integers of 32 bits, beyond them, and both.
_WIDE = np.array([1.9, -1.9, 2147483520, -2147483648, 3e9, -3e9, 1e15, 7.5, 0.5, -3e9, 2.5, 9e18, 255.9], np.float32)
CASES += [Case("Cast", [_WIDE], {"to": to}) for to in (TensorProto.INT32, TensorProto.UINT8, TensorProto.INT16)]
CASES += [
    beyond(source, target)
    for source in ("float32", "float64", "float16")
    for target in INTEGERS
    if "64" in source + target
]
