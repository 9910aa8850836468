"""Functions of one element."""

import math

import numpy as np
from case import MICROSOFT, Case, r

EDGES = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2.5, 1.5, 30, -30, 88, -87, np.inf, -np.inf], np.float32)


def _values(scale: float, edges: np.ndarray = EDGES) -> np.ndarray:
    """Small, usual and large numbers of both signs, and `edges`; their number is not a multiple of four."""
    rng = np.random.default_rng(7)
    parts = [rng.standard_normal(37) * scale, rng.standard_normal(20) * 1e-3, rng.standard_normal(10) * 20, edges]
    return np.concatenate(parts).astype(np.float32)


def _bias_split_gelu(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    left, right = np.split(x + bias, 2, axis=-1)
    erf = np.array([math.erf(value / math.sqrt(2)) for value in right.ravel()], np.float32).reshape(right.shape)
    return left * np.float32(0.5) * right * (1 + erf)


def _fast_gelu_flat(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    z = x + np.resize(bias, x.shape)
    return np.float32(0.5) * z * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (z + np.float32(0.044715) * z**3)))


FINITE = EDGES[np.isfinite(EDGES)]
FLAT_BIASES = [((2, 4), 3), ((4, 4), 8), ((3, 5), 7), ((2, 3), 9), ((9, 7), 4)]
EVERYWHERE = [
    "Abs",
    "Atan",
    "Asinh",
    "Ceil",
    "Celu",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
]

CASES = [
    *(Case(op, [_values(3)]) for op in EVERYWHERE),
    *(Case(op, [_values(3, FINITE)]) for op in ("Cos", "Cosh", "Sin", "Sinh", "Tan")),
    *(
        Case(op, [np.array([0.9999, -0.9999, 0.3, -0.5, 0.5, 1e-4, 0, 1, -1, 2], np.float32)])
        for op in ("Acos", "Asin", "Atanh")
    ),
    *(Case(op, [r(61, low=-1, high=1)]) for op in ("Acos", "Asin", "Atanh")),
    Case("Acosh", [np.array([1, 1.0001, 1.5, 2, 10, 1e9, 0.5], np.float32)]),
    *(
        Case(op, [np.array([0, 1, 1.0001, 0.9999, 0.5, 2, 1e9, 1e-9, np.inf, -1], np.float32)])
        for op in ("Log", "Sqrt")
    ),
    Case("Log", [r(61, low=0, high=10)]),
    Case("Gelu", [r(41)], {"approximate": "tanh"}),
    *(Case(op, [r(41)], domain=MICROSOFT, name="microsoft") for op in ("Gelu", "QuickGelu")),
    Case("Elu", [r(9)], {"alpha": 2.5}),
    Case("HardSigmoid", [r(9)], {"alpha": 0.3, "beta": 0.4}),
    Case("LeakyRelu", [r(9)], {"alpha": 0.2}),
    Case("ThresholdedRelu", [r(9)], {"alpha": 0.4}),
    Case("IsInf", [EDGES], {"detect_positive": 0}),
    Case("IsInf", [EDGES], {"detect_negative": 0}),
    Case("IsNaN", [np.array([np.nan, 1, np.inf, -np.nan], np.float32)]),
    *(Case("Abs", [np.array([-3, 4, -127, 127, 0], dtype)]) for dtype in (np.int64, np.int32, np.int8)),
    *(Case("Neg", [np.array([-3, 4, -127, 127, 0], dtype)]) for dtype in (np.int64, np.int32, np.int8)),
    *(Case("Sign", [np.array([3, 4, 0, 127, 9], dtype)]) for dtype in (np.int64, np.uint8)),
    Case("Not", [r(7, dtype="bool")]),
    *(Case("BitwiseNot", [np.array([1, 0, 100], dtype)]) for dtype in (np.uint8, np.int8, np.int32, np.int64)),
    Case("Relu", [r(2, 0, 3)]),
    Case("Relu", [r()]),
    Case("Sigmoid", [r(70001)]),
    # com.microsoft's activations with a bias.
    Case("FastGelu", [r(3, 8), r(8)], domain=MICROSOFT),
    Case("FastGelu", [r(3, 8)], domain=MICROSOFT),
    # onnxruntime-web reads that bias flat: shorter and longer than a row, and than all of X.
    *(Case("FastGelu", [r(*x), r(n)], domain=MICROSOFT, expected=_fast_gelu_flat) for x, n in FLAT_BIASES),
    Case("BiasGelu", [r(3, 8), r(8)], domain=MICROSOFT),
    *(Case("BiasSplitGelu", [r(3, n), r(n)], domain=MICROSOFT, expected=_bias_split_gelu) for n in (6, 16)),
    Case(
        "SwiGLU", [r(3, 8), r(3, 8)], {"alpha": 0.7}, expected=lambda a, b: a / (1 + np.exp(np.float32(-0.7) * a)) * b
    ),
]
