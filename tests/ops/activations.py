"""Activations that end a product or a convolution, with other numbers than their defaults."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from case import Case, r
from epilogues import epilogue

NHWC = "com.ms.internal.nhwc"
Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[[Array], Array]


def _sigmoid(v: Array) -> Array:
    return 1 / (1 + np.exp(-v))


def _softplus(v: Array) -> Array:
    return np.log1p(np.exp(v))


def _gelu_tanh(v: Array) -> Array:
    return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


# name: (its first parameters, the function of float64)
ACTIVATIONS: dict[str, tuple[list[float], Function]] = {
    "Relu": ([], lambda v: np.maximum(v, 0)),
    "Clip": ([-0.5, 0.7], lambda v: np.clip(v, -0.5, 0.7)),
    "LeakyRelu": ([0.2], lambda v: np.where(v < 0, 0.2 * v, v)),
    "HardSigmoid": ([0.3, 0.4], lambda v: np.clip(0.3 * v + 0.4, 0, 1)),
    "HardSwish": ([], lambda v: v * np.clip(v / 6 + 0.5, 0, 1)),
    "Elu": ([1.5], lambda v: np.where(v < 0, 1.5 * np.expm1(v), v)),
    "Selu": ([1.5, 0.8], lambda v: 0.8 * np.where(v < 0, 1.5 * np.expm1(v), v)),
    "Celu": ([0.6], lambda v: np.maximum(v, 0) + np.minimum(0.6 * np.expm1(v / 0.6), 0)),
    "ThresholdedRelu": ([0.4], lambda v: np.where(v > 0.4, v, 0)),
    "Shrink": ([0.2, 0.3], lambda v: np.where(v < -0.3, v + 0.2, np.where(v > 0.3, v - 0.2, 0))),
    "Sigmoid": ([], _sigmoid),
    "Tanh": ([], np.tanh),
    "Softplus": ([], _softplus),
    "Softsign": ([], lambda v: v / (1 + np.abs(v))),
    "Mish": ([], lambda v: v * np.tanh(_softplus(v))),
    "Swish": ([1.3], lambda v: v * _sigmoid(1.3 * v)),
    "Gelu": ([], lambda v: 0.5 * v * (1 + np.vectorize(math.erf)(v * math.sqrt(0.5)))),
    "GeluTanh": ([], _gelu_tanh),
    "Exp": ([], np.exp),
    "Abs": ([], np.abs),
}
_PLAIN: dict[str, Any] = {"strides": [1, 1], "pads": [0, 0, 0, 0], "group": 1, "weight_layout": "HWIO"}


def _twice(x: Array, w: Array, bias: Array) -> Array:
    """Each pixel times each of the 2x2 weights, side by side: kernel and strides are equal."""
    pieces = np.einsum("nyxc,klcm->nykxlm", x, w)
    n, h, kh, width, kw, m = pieces.shape
    return pieces.reshape(n, h * kh, width * kw, m) + bias


# operator: (inputs, attributes, the sum); for one element at a time (11 columns) and for four
_HOSTS: dict[str, tuple[list[Any], dict[str, Any], Callable[..., Array]]] = {
    "MatMul": ([r(2, 7, 5), r(5, 11), r(11)], {}, lambda a, b, bias: a @ b + bias),
    "Gemm": ([r(7, 8), r(12, 8), r(12)], {"transB": 1}, lambda a, b, bias: a @ b.T + bias),
    "Conv": (
        [r(1, 5, 6, 8), r(1, 1, 8, 12), r(12)],
        {"kernel_shape": [1, 1], "dilations": [1, 1], **_PLAIN},
        lambda x, w, bias: x @ w[0, 0] + bias,
    ),
    "ConvTranspose": (
        [r(1, 3, 4, 8), r(2, 2, 8, 12), r(12)],
        {"kernel_shape": [2, 2], **_PLAIN, "strides": [2, 2]},
        _twice,
    ),
}


def _ended(op: str, activation: str) -> Case:
    inputs, attributes, sums = _HOSTS[op]
    params, function = ACTIVATIONS[activation]

    def expected(*arrays: Array) -> Array:
        return function(sums(*(x.astype(np.float64) for x in arrays))).astype(np.float32)

    extra = epilogue(activation, params)
    domain = NHWC if op.startswith("Conv") else ""
    return Case(op, inputs, {**attributes, **extra}, expected, tolerance="normal", domain=domain)


# Every function one element at a time and four at a time; a few show that all hosts read their numbers alike.
_ALL = ("MatMul", "Conv")
_FEW = ("Clip", "Selu", "Celu", "ThresholdedRelu", "Shrink")

CASES = [_ended(op, activation) for op in _HOSTS for activation in (ACTIVATIONS if op in _ALL else _FEW)]
