"""Functions that fused operators name in their attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.schema.scalar_functions import FUNCTIONS


def activated(x: ir.Value, activation: str, numbers: Iterable[float], build: Builder) -> ir.Value:
    """Return the function `activation` of `x`; what numbers leave out gets the function's defaults."""
    if activation in ("", "Identity"):
        return x
    row = FUNCTIONS.get(activation)
    given: dict[str, Any] = dict(zip(row.parameters if row is not None else (), numbers, strict=False))
    if activation != "Clip":
        return build.op(activation, x, **given)
    return build.op("Clip", x, *(build.op("CastLike", np.array(end, np.float32), x) for end in given.values()))
