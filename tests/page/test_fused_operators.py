"""com.microsoft's operators with a bias or a function inside, in sessions: their results, on both providers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from contributed_cases import PROVIDERS, Case, Draws, NewSession, check

pytestmark = pytest.mark.browser

_DRAWS = Draws(9)
f32 = _DRAWS.f32
#: Activations of onnxruntime's FusedConv, and numbers other than their defaults.
ACTIVATIONS: dict[str, list[float]] = {
    "": [],
    "Relu": [],
    "Sigmoid": [],
    "Tanh": [],
    "LeakyRelu": [0.3],
    "Clip": [-0.5, 0.75],
    "HardSigmoid": [0.3, 0.6],
}
KERNEL = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


def _conv(activation: str, *more: np.ndarray | None, fed: int = 1, **attributes: Any) -> Case:
    numbers = {"activation_params": ACTIVATIONS[activation]} if ACTIVATIONS[activation] else {}
    given = {"activation": activation, **numbers} if activation else {}
    weights = f32(4, 1, 3, 3) if "group" in attributes else f32(6, 4, 3, 3)
    name = " ".join([activation or "none", *attributes, f"{len(more) + 2} inputs, {fed} fed"])
    return Case(name, "FusedConv", [f32(2, 4, 6, 5), weights, *more], KERNEL | given | attributes, fed=fed)


def _gemm(activation: str) -> Case:
    numbers = dict(zip(("activation_alpha", "activation_beta"), ACTIVATIONS[activation], strict=False))
    given = {"activation": activation, "alpha": 0.5, "beta": 0.25, **numbers}
    return Case(activation, "FusedGemm", [f32(6, 8), f32(8, 12), f32(12)], given)


def _split_gelu(x: Any, bias: Any) -> list[Any]:
    left, right = np.split(x + bias, 2, axis=-1)
    return [(left * 0.5 * right * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))).astype(np.float32)]


CASES = [
    *(_conv(activation) for activation in ACTIVATIONS),
    *(_conv(activation, f32(6), f32(2, 6, 6, 5)) for activation in ACTIVATIONS),
    _conv("Relu", None, f32(2, 6, 6, 5)),
    _conv("Tanh", f32(6), fed=3),
    _conv("LeakyRelu", f32(4), group=4),
    *(_gemm(activation) for activation in ACTIVATIONS if activation not in ("", "Clip")),
    Case("", "BiasAdd", [f32(2, 6, 8), f32(8), f32(2, 6, 8)], {}, fed=3, expected=lambda x, b, z: [x + b + z]),
    Case("of constants", "BiasAdd", [f32(1, 5, 3), f32(3), f32(1, 5, 3)], {}, expected=lambda x, b, z: [x + b + z]),
    Case("", "BiasSplitGelu", [f32(2, 3, 16), f32(16)], {}, fed=2, expected=_split_gelu),
    Case("of constants", "BiasSplitGelu", [f32(1, 4, 6), f32(6)], {}, expected=_split_gelu),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_session_gives_what_the_operator_means(case: Case, new_session: NewSession, provider: str) -> None:
    check(case, new_session, provider)
