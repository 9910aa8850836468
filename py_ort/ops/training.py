"""Losses, and the optimizers' steps."""

from __future__ import annotations

from py_ort.ir.operators import Operator

TRAINING = "ai.onnx.preview.training"

OPERATORS = [
    *(Operator(name, expand=False, indices=(1,)) for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")),
    *(Operator(name, TRAINING, host=(0, 1)) for name in ("Adagrad", "Adam", "Momentum")),
]
