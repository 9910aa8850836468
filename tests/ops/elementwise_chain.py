"""Chains of elementwise operators, and reductions at their ends."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from case import Case, r

Array = np.ndarray[Any, np.dtype[Any]]
_erf = np.vectorize(math.erf)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _celu(x: Array) -> Array:
    return np.where(x > 0, x, 0.7 * np.expm1(x / 0.7))


def _thresholded(x: Array) -> Array:
    """Reduced by 0.1 beyond 0.3, and zero up to 0.5."""
    shrunk = np.where(x > 0.3, x - 0.1, np.where(x < -0.3, x + 0.1, 0))
    return np.where(shrunk > 0.5, shrunk, 0)


def _fast_gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _chain(program: str, inputs: Sequence[Any], expected: Callable[..., Any], tolerance: Any = "tight") -> Case:
    attributes = {"program": program}

    def single(*arrays: Array) -> Array:
        return np.asarray(expected(*arrays), np.float32)

    return Case("ElementwiseChain", inputs, attributes, single, domain="com.ms.internal", tolerance=tolerance)


def _reduced(
    program: str,
    inputs: Sequence[Any],
    reduction: str,
    axes: Sequence[int],
    expected: Callable[..., Any],
    keep: int = 1,
    finish: str = "",
    ending: Callable[[Array], Array] = lambda x: x,
) -> Case:
    """`expected` returns the values to reduce, `ending` the result from the reduced ones."""
    attributes: dict[str, Any] = {"program": program, "reduction": reduction, "axes": list(axes), "keepdims": keep}
    attributes |= {"finish": finish} if finish else {}
    kind: Callable[..., Any] = {
        "ReduceSum": np.sum,
        "ReduceMean": np.mean,
        "ReduceMax": np.max,
        "ReduceMin": np.min,
        "ReduceProd": np.prod,
        "ReduceL1": lambda x, **how: np.sum(np.abs(x), **how),
        "ReduceL2": lambda x, **how: np.sqrt(np.sum(x * x, **how)),
        "ReduceSumSquare": lambda x, **how: np.sum(x * x, **how),
        "ReduceLogSum": lambda x, **how: np.log(np.sum(x, **how)),
    }[reduction]

    def compute(*arrays: Array) -> Array:
        made = np.asarray(expected(*arrays), np.float64)
        return np.asarray(ending(kind(made, axis=tuple(axes), keepdims=bool(keep))), np.float32)

    return Case("ElementwiseChain", inputs, attributes, compute, domain="com.ms.internal", tolerance="normal")


_VALUES = np.array([np.nan, np.inf, -np.inf, 1, -2, 0.5], np.float32)
_ENDS = [_VALUES.reshape(6, 1, 1), _VALUES.reshape(6, 1), _VALUES]

CASES = [
    _chain("Mul 0 1;Add 2 0", [r(2, 5, 7, 24), r(2, 1, 1, 24)], lambda x, g: x * g + x),
    _chain("Mul 0 1;Add 2 0", [r(2, 5, 7), r(5, 1)], lambda x, g: x * g + x),
    _chain("Sigmoid 0;Mul 0 1;LeakyRelu 2 #0.3", [r(700)], lambda x: np.maximum(x, 0.3 * x) * _sigmoid(x)),
    _chain(
        "Number #1.0;Cast 0;Sub 1 2;Number #-10000.0;Mul 3 4",
        [r(2, 1, 1, 24, dtype="int64", low=0, high=2)],
        lambda m: (1 - m) * np.float32(-10000),
    ),
    _chain(
        "Where 0 1 2;Mul 3 1",
        [r(1, 5, 1, 1, dtype="bool"), r(2, 5, 7, 8), r(2, 5, 1, 1)],
        lambda c, x, z: np.where(c, x, z) * x,
    ),
    _chain(
        "Less 0 1;Not 2;GreaterOrEqual 0 1;And 3 4;Or 5 2;Where 5 0 1;Clip 7 #-0.5 #0.5;Erf 8",
        [r(3, 300), r(3, 1)],
        lambda x, z: _erf(np.clip(np.where(x >= z, x, z), -0.5, 0.5)),
    ),
    _chain("Max 0 1;Min 2 3;Neg 4", _ENDS, lambda x, z, w: -np.minimum(np.maximum(x, z), w)),
    _chain(
        "IsNaN 0;IsInf 1 #1.0 #0.0;Xor 3 4;IsInf 0 #0.0 #1.0;Or 5 6;Where 7 2 0",
        _ENDS,
        lambda x, z, w: np.where(np.isnan(x) ^ (z == np.inf) | (x == -np.inf), w, x),
    ),
    _chain(
        "Mul 0 1;Round 2;Sign 0;Mod 3 4;Add 3 5;PRelu 6 1",
        [(np.arange(-20, 20) / 2).astype(np.float32).reshape(2, 20), np.array([[1], [3]], np.float32)],
        lambda x, z: (lambda y: np.where(y < 0, y * z, y))(np.round(x * z) + np.fmod(np.round(x * z), np.sign(x))),
        tolerance="normal",
    ),
    _chain(
        "Abs 0;Pow 1 #-0.5;Pow 2 #1.7;Clip 3 #3.0 #2.0;Mul 3 4", [r(300)], lambda x: 2 * np.abs(x) ** -0.85, "normal"
    ),
    _chain("Pow 0 #3.0;Pow 1 #0.0;Pow 0 #1.0;Sub 3 2", [r(77)], lambda x: x - 1),
    _chain(
        "Selu 0 #1.5 #1.1;Celu 1 #0.7;Shrink 2 #0.1 #0.3;ThresholdedRelu 3 #0.5;GeluTanh 4",
        [r(500)],
        lambda x: _fast_gelu(_thresholded(_celu(1.1 * np.where(x > 0, x, 1.5 * np.expm1(x))))),
        "normal",
    ),
    _chain("Sinh 0;Asinh 1;Tan 2;Atan 3;Cosh 4;Acosh 5", [r(200, low=0.1, high=1.2)], lambda x: x, "normal"),
    _chain("Tanh 0;Atanh 1;Sin 2;Asin 3;Cos 4;Acos 5", [r(200, low=0.1, high=1.2)], lambda x: x, "normal"),
    _chain("Neg 0;Exp 1;Div 2 1", [r(255)], lambda x: np.exp(-x) / -x),
    _chain("Add 0 1;Neg 2", [r(), r(3)], lambda x, z: -(x + z)),
    _chain("Add 0 1;Neg 2", [r(0, 4), r(4)], lambda x, z: -(x + z)),
    _reduced("Sub 0 1;Mul 2 2", [r(3, 5, 32), r(32)], "ReduceMean", [2], lambda x, m: (x - m) ** 2),
    _reduced("Sub 0 1;Mul 2 2", [r(3, 5, 33), r(3, 5, 1)], "ReduceMean", [-1], lambda x, m: (x - m) ** 2, keep=0),
    _reduced("Mul 0 1", [r(2, 7, 24), r(2, 1, 24)], "ReduceSum", [1], lambda x, g: x * g, keep=0),
    _reduced("Mul 0 1", [r(6, 1, 40), r(5, 40)], "ReduceSum", [2], lambda x, w: x * w),
    _reduced("Mul 0 1", [r(6, 40, 1), r(1, 40, 20)], "ReduceMax", [1], lambda x, w: x * w, keep=0),
    _reduced("Exp 0;Add 1 2", [r(4, 3, 5, 8), r(3, 1, 1)], "ReduceMin", [1, 3], lambda x, z: np.exp(x) + z),
    _reduced("Abs 0", [r(2, 3, 4, 5)], "ReduceProd", [0, 2], np.abs, keep=0),
    _reduced("Mul 0 1", [r(70, 90), r(90)], "ReduceL2", [0, 1], lambda x, g: x * g, keep=0),
    _reduced("Sub 0 1", [r(20011), r()], "ReduceL1", [0], lambda x, z: x - z),
    _reduced("Sigmoid 0", [r(3, 2048, 8)], "ReduceLogSum", [1], _sigmoid),
    _reduced("Cast 0;Mul 1 2", [r(4, 9, 1, dtype="bool"), r(4, 9, 16)], "ReduceSum", [1], lambda m, x: m * x),
    _reduced("Neg 0", [r(8, 1, 12)], "ReduceSumSquare", [1], lambda x: -x),
    *(
        _reduced(
            "Mul 0 0",
            [r(*shape)],
            "ReduceMean",
            axes,
            lambda x: x * x,
            finish="Number #0.25;Add 0 1;Sqrt 2;LeakyRelu 3 #0.1",
            ending=lambda x: np.sqrt(x + 0.25),
        )
        for shape, axes in (
            ((3, 5, 33), [2]),
            ((3, 5, 32), [2]),
            ((900, 8), [0]),
            ((2, 16, 20), [1]),
            ((1, 30000), [1]),
        )
    ),
    _reduced("Neg 0", [r(3, 0, 4)], "ReduceSum", [1], lambda x: -x),
    _reduced("Neg 0", [r(0, 3, 4)], "ReduceMean", [1], lambda x: -x),
]
