"""Losses, and the steps of optimizers."""

from typing import Any

import numpy as np
from case import Case, i64, r

TRAINING = "ai.onnx.preview.training"
NUMBERS = {"alpha": 0.95, "beta": 0.85, "norm_coefficient": 0.01}


def _labels(*shape: int, classes: int = 5, ignored: int | None = None) -> np.ndarray:
    labels = np.random.default_rng(5).integers(0, classes, shape)
    if ignored is not None and ignored < 2**31:
        labels.reshape(-1)[::3] = ignored
    return labels


def _losses(op: str, outputs: int) -> list[Case]:
    cases = []
    for shape, weighted, ignored, reduction in [
        ((3, 5), False, None, "mean"),
        ((3, 5), True, None, "sum"),
        ((300, 5), True, 2, "mean"),
        ((2, 5, 4), False, -7, "mean"),
        ((2, 5, 4, 3), True, None, "none"),
        ((2, 5, 2, 1, 2, 3), True, 10, "none"),
        ((3, 5), False, 2**62, "mean"),
        ((2, 5, 0), False, None, "sum"),
    ]:
        inputs: list[Any] = [r(*shape), _labels(shape[0], *shape[2:], ignored=ignored)]
        inputs += [r(5, low=0.1, high=1.0)] if weighted else []
        chosen = {"reduction": reduction, **({} if ignored is None else {"ignore_index": ignored})}
        cases.append(Case(op, inputs, chosen, outputs=outputs, tolerance="normal", name=f"outputs={outputs}"))
    narrow = [r(4, 7), _labels(4, classes=7).astype(np.int32)]
    return [*cases, Case(op, narrow, outputs=outputs, tolerance="normal", name=f"outputs={outputs}")]


def _adagrad(rate: Any, step: Any, x: Any, g: Any, h: Any, **_: Any) -> tuple[Any, ...]:
    g = g + 0.01 * x
    h = h + g * g
    return (x - rate / (1 + step * np.float32(0.1)) * g / (np.sqrt(h) + np.float32(1e-5))).astype(np.float32), h


def _adam(rate: Any, step: Any, x: Any, g: Any, v: Any, h: Any) -> tuple[Any, ...]:
    g = g.astype(np.float64) + 0.01 * x
    v, h = 0.95 * v + 0.05 * g, 0.85 * h + 0.15 * g * g
    rate = rate * np.sqrt(1 - 0.85**step) / (1 - 0.95**step) if step > 0 else rate
    return tuple(np.float32(a) for a in ((x - rate * v / (np.sqrt(h) + 1e-6)) * (1 - 0.02), v, h))


def _momentum(mode: str) -> Any:
    def step_of(rate: Any, step: Any, *tensors: Any) -> tuple[Any, ...]:
        half = len(tensors) // 3
        results, moments = [], []
        for x, given, v in zip(tensors[:half], tensors[half : 2 * half], tensors[2 * half :], strict=True):
            g = 0.01 * x.astype(np.float64) + given
            v = 0.95 * v + (0.85 if step > 0 else 1) * g
            results.append(np.float32(x - rate * (g + 0.95 * v if mode == "nesterov" else v)))
            moments.append(np.float32(v))
        return (*results, *moments)

    return step_of


RATE = np.array(0.1, np.float32)
STEPS = [
    Case(
        "Adagrad",
        [RATE, i64(3)[0], r(2, 3), r(2, 3), r(2, 3, low=0, high=4)],
        {"norm_coefficient": 0.01, "decay_factor": 0.1, "epsilon": 1e-5},
        expected=_adagrad,
        outputs=2,
    ),
    *(
        Case(
            "Adam",
            [RATE, i64(step)[0], r(7), r(7), r(7), r(7, low=0, high=2)],
            {**NUMBERS, "norm_coefficient_post": 0.02},
            expected=_adam,
            outputs=3,
        )
        for step in (0, 4)
    ),
    *(
        Case(
            "Momentum",
            [RATE, i64(step)[0], *([r(3, 1), r(1)][:count] * 3)],
            {**NUMBERS, "mode": mode},
            expected=_momentum(mode),
            outputs=2 * count,
        )
        for mode, step, count in [("standard", 0, 1), ("standard", 2, 2), ("nesterov", 1, 1)]
    ),
]

CASES = [
    *_losses("NegativeLogLikelihoodLoss", 1),
    *_losses("SoftmaxCrossEntropyLoss", 1),
    *_losses("SoftmaxCrossEntropyLoss", 2)[::3],
    *(
        Case(case.op, case.inputs, case.attributes, case.expected, case.outputs, "normal", TRAINING, host=[0, 1])
        for case in STEPS
    ),
]
