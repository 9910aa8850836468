"""NaN, infinities, and attributes of unusual signs: numbers that shaders may lose, or that series do not cover."""

from collections.abc import Callable
from typing import Any

import activations
import numpy as np
from case import Case, i64, r
from epilogues import epilogue

NAN, INF = np.nan, np.inf
F = np.float32
SPECIAL = np.array([NAN, INF, -INF, 0, -0.0, 1e-3, 0.3, -0.3, 1, -1, 2.5, -2.5, 88, -88, 1e10, -1e10, -NAN], F)
ROWS = np.array(
    [
        [1, 2, 3, NAN, 5, 6, 7, 8],
        [NAN] * 8,
        [1, INF, 2, 3, 4, 5, 6, 7],
        [-INF] * 8,
        [INF, -INF] * 4,
        [-INF, -INF, 1, 2, 3, 4, 5, 6],
        [NAN, 1, 2, 3, 4, 5, 6, -NAN],
        [3e38] * 8,
        [9000, 9001, 9002, 9003, 9004, 9005, 9006, 9007],
    ],
    F,
)
IMAGE = np.where(np.indices((1, 4, 6, 6)).sum(0) % 11 == 3, NAN, np.indices((1, 4, 6, 6)).sum(0)).astype(F)


def _exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *x: function(*(each.astype(np.float64) for each in x)).astype(F)


def _pairs(left: list[float], right: list[float]) -> list[np.ndarray]:
    return [np.repeat(np.array(left, F), len(right)), np.tile(np.array(right, F), len(left))]


def _scalar(value: float) -> np.ndarray:
    return np.array(value, F)


#: Operators that give a NaN for a NaN.
KEEPING = (
    *("Abs", "Acosh", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid"),
    *("HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Relu", "Selu", "Sigmoid", "Sign", "Sinh", "Softplus"),
    *("Softsign", "Sqrt", "Tanh"),
)
ODD: list[tuple[str, dict[str, float]]] = [
    *((op, {"alpha": alpha}) for op in ("Celu", "Elu", "LeakyRelu", "ThresholdedRelu") for alpha in (-0.7, 3.0)),
    *(("Selu", {"alpha": alpha, "gamma": gamma}) for alpha, gamma in ((-0.5, 1.05), (0.3, -2.0))),
    *(("HardSigmoid", {"alpha": alpha, "beta": beta}) for alpha, beta in ((-0.3, 0.2), (0.0, 0.4), (0.5, 2.0))),
    *(("Shrink", {"bias": bias, "lambd": lambd}) for bias, lambd in ((-0.3, 0.5), (0.2, -0.5))),
]


def _ended(host: str, activation: str) -> Case:
    """An activation after a product or a convolution with NaN in some of its rows."""
    params, function = activations.ACTIVATIONS[activation]
    extra = epilogue(activation, params)
    rows = np.array([1, -NAN, 0.5, -2, NAN, INF, -0.25, 3], F)
    if activation in ("Mish", "GeluTanh", "Softplus"):  # their float64 functions have no limit here
        rows[5] = 2.5
    if host == "MatMul":
        expected = _exactly(lambda x, w: function(x * w))
        return Case(
            "MatMul", [rows.reshape(8, 1), np.ones((1, 12), F)], extra, expected, tolerance="normal", name="nan"
        )
    expected = _exactly(lambda x, w: function(np.broadcast_to(x, (1, 2, 4, 12))))
    attributes = {"kernel_shape": [1, 1], "dilations": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0], "group": 1}
    return Case(
        "Conv",
        [rows.reshape(1, 2, 4, 1), np.ones((1, 1, 1, 12), F)],
        {**attributes, "weight_layout": "HWIO", **extra},
        expected,
        tolerance="normal",
        domain=activations.NHWC,
        name="nan",
    )


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = scores + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).astype(F)


def _divided_by_neighbors(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
    return (x / (1 + 1e-4 / 3 * (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:])) ** 0.75).astype(F)


def _heads(seed: int, place: tuple[int, ...] | None = None, rows: int = 5) -> np.ndarray:
    made = np.random.default_rng(seed).standard_normal((1, 2, rows, 8)).astype(F)
    if place is not None:
        made[place] = NAN
    return made


#: A query that is NaN, keys of which one is NaN, values.
POISONED = [[_heads(1, (0, 0, 2, 3)), _heads(2), _heads(3)], [_heads(1), _heads(2, (0, 1, 2, 3)), _heads(3)]]
FAR = np.where(np.arange(40) < 35, 0, -INF).astype(F).reshape(1, 1, 1, 40)

#: Functions that are 0 at 0: for -0 some return 0, and some -0.
ODD_FUNCTIONS = (
    *("Abs", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Ceil", "Elu", "Erf", "Floor", "Gelu", "HardSwish", "LeakyRelu"),
    *("Mish", "Neg", "Relu", "Round", "Selu", "Sign", "Sin", "Sinh", "Softsign", "Sqrt", "Tan", "Tanh"),
    *("ThresholdedRelu", "Shrink"),
)
ZEROS = np.array([-0.0, 0, 0.25, -0.25, -0.0], F)


ZERO_ROWS = np.array([[-0.0, -0.0], [0, -0.0], [-0.0, 0], [0, 0]], F)
#: Rows whose squares overflow, and whose sum does.
HUGE = np.array([1, -2, 3, -1, 2, -3, 1.5, 0.5, 3], F) * np.array([[1e24], [1e37]], F)
LARGEST = np.array([[3.1e38, 3.2e38, 3.3e38]], F)


def _mean(x: np.ndarray, *_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.isfinite(x).all(-1, keepdims=True), 0 * x, NAN)
    return y, x.mean(-1, keepdims=True)


CASES = [
    *(Case(op, [SPECIAL], tolerance="normal") for op in KEEPING),
    *(
        Case(op, [ZEROS.astype(dtype)], tolerance="loose", signs=True)
        for op in ODD_FUNCTIONS
        for dtype in ("float32", "float16")
        if (op, dtype) != ("Celu", "float16")  # native computes these in parts
    ),
    # Default bounds are the largest numbers of the type.
    *(
        Case("Clip", [np.array([INF, -INF, NAN, 0, 3, -3], dtype), *bounds])
        for dtype in ("float32", "float16")
        for one in [np.array(1, dtype)]
        for bounds in ([], [one], [None, one])
    ),
    *(
        Case(op, [np.tile(rows, (1, n)), i64(1)], {"keepdims": 0}, signs=True)
        for op in ("ReduceSum", "ReduceMean")
        for n in (1, 9)
        for rows in (ZERO_ROWS, ZERO_ROWS.astype(np.float16))
    ),
    Case("ReduceSum", [np.zeros((3, 0), F), i64(1)], signs=True),
    *(
        Case("CumSum", [ZERO_ROWS, np.array(1)], {"exclusive": exclusive, "reverse": reverse}, signs=True)
        for exclusive in (0, 1)
        for reverse in (0, 1)
    ),
    *(
        Case("LayerNormalization", [x, np.ones(9, F), np.ones(9, F)], {}, lambda x, *_: x * 0 + 1, name=name)
        for x, name in ((HUGE, "huge"), (-HUGE, "-huge"))
    ),
    # Distances from the mean that overflow when they are added, and sums that overflow both ways at once.
    *(
        Case("LayerNormalization", [x, np.ones(16, F), np.ones(16, F)], {}, lambda x, *_: x * 0 + 1, name=name)
        for x, name in (
            (np.tile([1e38, 1e38, 0, -1e38], (2, 4)).astype(F), "distances"),
            (np.tile([3e38, -3e38, 0, 0, 0, 0, 0, 0], (2, 2)).astype(F), "both ways"),
        )
    ),
    Case("InstanceNormalization", [HUGE[None], np.ones(2, F), np.ones(2, F)], {}, lambda x, *_: x * 0 + 1, name="huge"),
    *(
        Case("LayerNormalization", [np.full((2, n), value, F), np.ones(n, F)], {}, _mean, outputs=2, name=f"{value}")
        for n in (3, 8, 40)
        for value in (INF, -INF)
    ),
    *(
        Case(op, [SPECIAL[np.isnan(SPECIAL) | (np.abs(SPECIAL) != 1e10)]], tolerance="normal")
        for op in ("Cos", "Sin", "Tan")
    ),
    *(Case(op, [SPECIAL], attributes, tolerance="normal") for op, attributes in ODD),
    Case("PRelu", [SPECIAL, r(17)]),
    *(Case("PRelu", [SPECIAL, _scalar(slope)]) for slope in (-0.5, 3, -INF)),
    *(
        Case("Clip", [SPECIAL, _scalar(low), _scalar(high)], host=host)
        for low, high in ((-1, 1), (-INF, INF), (0, INF), (-INF, 6))
        for host in (None, [])
    ),
    Case("Mod", _pairs([1e10, -1e10, 3e38, 123456789, 7.25, INF, NAN], [3, 0.1, -1e-3, 1e5, INF, 0]), {"fmod": 1}),
    Case("Pow", _pairs([NAN, INF, -INF, 0, -1, 1, 2, -2], [NAN, INF, -INF, 0, 2.5, -2.5, 3, -3])),
    *(Case(op, [SPECIAL, SPECIAL[::-1].copy()], tolerance="normal") for op in ("Max", "Min", "Sum", "Div", "Greater")),
    *(
        Case(op, [ROWS if axis else ROWS.T.copy()], {"axis": axis}, tolerance="normal")
        for op in ("Softmax", "LogSoftmax")
        for axis in (0, 1)
    ),
    *(
        Case(op, [np.where(np.arange(1003) == place, value, 0.5).astype(F).reshape(1, -1)], name=f"{value} at {place}")
        for op in ("Softmax", "LogSoftmax")
        for place, value in ((700, NAN), (3, INF))
    ),
    Case("Hardmax", [ROWS[[2, 3, 5, 7]]]),
    *(
        Case(f"Reduce{kind}", [ROWS[[0, 1, 2, 6, 8]], i64(1)], tolerance="normal")
        for kind in ("Sum", "LogSum", "LogSumExp", "L2", "Prod")
    ),
    Case("ReduceMax", [ROWS[[0, 1, 6, 8]], i64(1)], {}, lambda x, axes: x.max(1, keepdims=True)),
    Case("ReduceMin", [ROWS[[0, 1, 6, 8]], i64(1)], {}, lambda x, axes: x.min(1, keepdims=True)),
    *(
        Case(
            "LpPool", [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4, "p": p}, tolerance="normal"
        )
        for p in (1, 2, 3)
    ),
    *(Case("GlobalLpPool", [IMAGE], {"p": p}, tolerance="normal") for p in (2, 3)),
    Case("AveragePool", [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0] * 4}, tolerance="normal"),
    Case("GlobalAveragePool", [IMAGE], tolerance="normal"),
    Case("LRN", [IMAGE], {"size": 3}, _divided_by_neighbors, tolerance="normal"),
    *(Case(op, [ROWS[[0, 1, 6, 8]], r(8), r(8)], tolerance="loose") for op in ("LayerNormalization",)),
    *(Case("LpNormalization", [ROWS[[0, 1, 6, 8]]], {"p": p}, tolerance="normal") for p in (1, 2)),
    *(
        _ended(host, name)
        for host in ("MatMul", "Conv")
        for name in activations.ACTIVATIONS
        if name not in ("ThresholdedRelu", "Shrink")
    ),
    *(
        Case("Attention", heads, {}, _attention, tolerance="normal", name=f"nan {i}")
        for i, heads in enumerate(POISONED)
    ),
    Case("Attention", [*POISONED[0], r(5, 5)], {}, _attention, tolerance="normal", name="nan, mask"),
    Case(
        "Attention",
        [_heads(1), _heads(2), _heads(3), np.where(np.eye(5) > 0, NAN, 0).astype(F)],
        {},
        _attention,
        tolerance="normal",
        name="mask nan",
    ),
    Case(
        "Attention",
        [_heads(1, (0, 0, 2, 3)), _heads(2, rows=40), _heads(3, rows=40), FAR],
        {},
        _attention,
        tolerance="normal",
        name="nan, far",
    ),
    *(
        Case(
            "ElementwiseChain",
            [SPECIAL],
            {"program": program},
            _exactly(function),
            tolerance="normal",
            domain="com.ms.internal",
        )
        for program, function in (
            ("Neg 0;Clip 1 #-1 #Infinity", lambda x: np.clip(-x, -1, INF)),
            ("Abs 0;Relu 1;Sigmoid 2", lambda x: 1 / (1 + np.exp(-np.abs(x)))),
            ("Number #NaN;Mul 0 1;Relu 2", lambda x: x * NAN),
            ("Number #-Infinity;Max 0 1;Exp 2", np.exp),
            ("Add 0 0;Sign 1;Neg 2", lambda x: -np.sign(x)),
        )
    ),
    # From its second step on.
    *(
        Case(
            op,
            [np.where(np.arange(3) == 1, NAN, 0.5).astype(F).reshape(3, 1, 1), r(1, 8 * gates, 1), r(1, 8 * gates, 8)],
            {"hidden_size": 8},
            "onnx",
            outputs=2,
            tolerance="normal",
            name="nan",
        )
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
    ),
]
