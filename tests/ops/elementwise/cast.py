"""Changes of type."""

import numpy as np
from case import Case, i64, r
from onnx import TensorProto, helper

DTYPES = {
    "float32": TensorProto.FLOAT,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "uint32": TensorProto.UINT32,
    "bool": TensorProto.BOOL,
}
SIGNED = np.array([0, 1.5, -1.5, 3.99, 100, -3, 0.25], np.float32)

#: float32 near the limits of float16: ties, subnormals, the largest number and beyond.
HALVES = np.array(
    [
        *(1 / 3, -0.0, 1 + 2**-11, 1 + 3 * 2**-11, 2**-14 - 2**-26, 2**-24, 2**-25, 3 * 2**-26, 1e-30, 65504),
        *(np.inf, -np.inf, np.nan, 65519.9, 65520, -1e30),
    ],
    np.float32,
)


#: Numbers beyond integers of 8, 16, 32 and 64 bits, and the nearest ones within.
BEYOND = [
    *(0.5, -0.5, -1.5, 127, 128, 200.7, 256, 300, -129, -200, 32768, 40000, -32769, 65535, 65536, 1e5, -1e5),
    *(2**31 - 128, 2**31, 3e9, 2**32 - 256, 2**32, 5e9, -(2**31), -(2**31) - 256, -3e9, -5e9, 9.2e18, -9.2e18),
    *(9.3e18, -9.3e18, 1.8e19, 1.9e19, 1e30, -1e30, np.nan, np.inf, -np.inf),
]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def beyond(source: str, target: str) -> Case:
    """Single numbers: among several, native's result beyond uint32 depends on their place."""
    with np.errstate(all="ignore"):
        numbers = np.array(BEYOND).astype(source)
    to = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))}
    return Case(
        "Cast",
        [numbers],
        to,
        lambda x: np.concatenate([Case("Cast", [x[:1]], to).expectation([x[i : i + 1]])[0] for i in range(x.size)]),
        tolerance="exact",
    )


def _source(name: str, target: str) -> np.ndarray:
    unsigned = name.startswith("u") or target.startswith("u")
    return (np.abs(SIGNED) if unsigned else SIGNED).astype(name)


CASES = [
    *(Case("Cast", [_source(a, b)], {"to": to}, tolerance="exact") for a in DTYPES for b, to in DTYPES.items()),
    Case("Cast", [np.array([0, np.nan, -0.0, 1e-30], np.float32)], {"to": TensorProto.BOOL}),
    Case("Cast", [HALVES], {"to": TensorProto.FLOAT16}, expected=lambda x: x.astype(np.float16), tolerance="exact"),
    Case("Cast", [np.array([2049, 2051, -65520, 7], np.int32)], {"to": TensorProto.FLOAT16}, tolerance="exact"),
    Case("Cast", [HALVES[:-2].astype(np.float16)], {"to": TensorProto.FLOAT}, tolerance="exact"),
    Case("Cast", [np.array([300, -1, 255], np.int32)], {"to": TensorProto.UINT8}),
    Case("CastLike", [SIGNED, i64(1)]),
    Case("BitCast", [r(5)], {"to": TensorProto.INT32}, expected=lambda x: x.view(np.int32), tolerance="exact"),
    Case(
        "BitCast",
        [np.array([200, 3], np.uint8)],
        {"to": TensorProto.INT8},
        expected=lambda x: x.view(np.int8),
        tolerance="exact",
    ),
    *(beyond(source, target) for source in ("float32", "float16") for target in INTEGERS if "64" not in target),
]
