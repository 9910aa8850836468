"""Operators that read and write columns of wider tensors, which the compiler makes from Concat and Split."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from case import Case, Input, Random, i64, r
from channels_last import NHWC, moved
from epilogues import epilogue

Array = np.ndarray[Any, np.dtype[Any]]
UP = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}


def columns(
    op: str, inputs: Sequence[Input], kept: Mapping[str, Any], same: Mapping[int, int] | None = None, **given: Any
) -> Case:
    """`kept`: the attributes of ONNX's operator; `given`: those of columns."""

    def expected(*arrays: Array) -> Array:
        operands: list[Any] = list(arrays)
        wide = operands.pop(given["into"]) if "into" in given else None
        cuts = list(given.get("x_columns", ()))
        for k in range(len(cuts) // 2):
            operands[k] = operands[k][..., cuts[2 * k] : cuts[2 * k] + cuts[2 * k + 1]]
        residual = operands.pop(3) if op.startswith("Conv") and len(operands) > 3 else None
        plain = {name: item for name, item in kept.items() if name != "epilogue"}
        if op in ("Resize", "Concat"):
            (y,) = Case(op, operands, plain).expectation(operands)
        else:
            y = moved(op, **plain)(*operands)
        if residual is not None:
            first, count = given.get("residual_columns", (0, residual.shape[-1]))
            y = y + residual[..., first : first + count]
        y = np.maximum(y, 0) if "Relu" in kept.get("epilogue", "") else y
        if "y_columns" not in given:
            return y
        first, width = given["y_columns"]
        made = wide.copy()
        assert made.shape[-1] == width
        made[..., first : first + y.shape[-1]] = y
        return made

    # Winograd's algorithm, used for large images, rounds more.
    tolerance: Any = "loose" if op == "Conv" and isinstance(inputs[0], Random) and inputs[0].shape[1] > 8 else "normal"
    domain = "" if op in ("Resize", "Concat") else NHWC
    return Case(op, inputs, {**kept, **given}, expected, domain=domain, tolerance=tolerance, same=same or {})


def conv(inputs: Sequence[Input], channels: int, outputs: int, size: int = 1, *, group: int = 1, **given: Any) -> Case:
    """X, and optionally Z and the tensor to write into; weights and a bias are in between."""
    x, *rest = inputs
    residual = len(rest) > 0 and rest[0] is not None
    kept: dict[str, Any] = {"pads": [size // 2] * 4, **epilogue("Relu", residual="first" if residual else None)}
    kept |= {"group": group} if group > 1 else {}
    weights = r(outputs, channels // group, size, size, low=-0.5, high=0.5)
    given |= {"into": 4} if "y_columns" in given else {}
    return columns("Conv", [x, weights, r(outputs), *rest], kept, **given)


X = r(1, 6, 5, 24)
Y = r(1, 6, 5, 20)
DEEP = r(1, 6, 5, 400)
TALL = r(1, 66, 62, 48)  # large enough for Winograd's
OWN = {"same": {3: 4}}  # the residual is in the tensor to write into
ALL = {"same": {0: 4, 3: 4}}  # x, too
CASES = [
    conv([X], 8, 12, x_columns=[4, 8]),
    conv([X], 8, 8, 3, x_columns=[16, 8]),
    conv([X], 5, 7, 3, x_columns=[3, 5]),
    conv([X, None, Y], 24, 12, y_columns=[8, 20]),
    conv([X, None, Y], 24, 5, 3, y_columns=[7, 20]),
    conv([X, r(1, 6, 5, 28), Y], 24, 8, 3, residual_columns=[16, 8], y_columns=[12, 20]),
    conv([X, Y, Y], 8, 8, x_columns=[8, 8], residual_columns=[4, 8], y_columns=[12, 20], **OWN),
    conv([X, Y, Y], 8, 8, 3, x_columns=[8, 8], residual_columns=[0, 8], y_columns=[8, 20], **OWN),
    conv([X, Y, Y], 8, 3, 3, x_columns=[8, 8], residual_columns=[1, 3], y_columns=[5, 20], **OWN),
    conv([X, Y, Y], 16, 8, 3, group=2, x_columns=[8, 16], residual_columns=[0, 8], y_columns=[8, 20], **OWN),
    conv([X, Y, Y], 8, 8, 3, group=8, x_columns=[8, 8], residual_columns=[0, 8], y_columns=[8, 20], **OWN),
    conv([X, r(1, 6, 5, 28), Y], 9, 9, 3, group=9, x_columns=[8, 9], residual_columns=[2, 9], y_columns=[1, 20]),
    conv([DEEP, Y, Y], 384, 8, x_columns=[16, 384], residual_columns=[0, 8], y_columns=[8, 20], **OWN),
    conv([DEEP, Y, Y], 96, 8, 3, x_columns=[16, 96], residual_columns=[0, 8], y_columns=[8, 20], **OWN),
    conv([TALL], 16, 16, 3, x_columns=[32, 16]),
    conv(
        [TALL, r(1, 66, 62, 20), r(1, 66, 62, 24)],
        16,
        16,
        3,
        x_columns=[4, 16],
        residual_columns=[4, 16],
        y_columns=[8, 24],
    ),
    conv([TALL, TALL, TALL], 16, 16, 3, x_columns=[32, 16], residual_columns=[0, 16], y_columns=[16, 48], **OWN),
    conv([Y, None, Y], 8, 8, x_columns=[0, 8], y_columns=[12, 20], same={0: 4}),
    conv([Y, Y, Y], 8, 8, 3, x_columns=[0, 8], residual_columns=[0, 8], y_columns=[12, 20], **ALL),
    conv([Y, Y, Y], 8, 6, 3, group=2, x_columns=[0, 8], residual_columns=[2, 6], y_columns=[12, 20], **ALL),
    conv([Y, Y, Y], 8, 8, 3, group=8, x_columns=[0, 8], residual_columns=[0, 8], y_columns=[12, 20], **ALL),
    conv([r(1, 1, 3, 20), None, r(1, 1, 3, 20)], 8, 8, x_columns=[0, 8], y_columns=[12, 20], same={0: 4}),
    conv([DEEP, None, DEEP], 96, 8, 3, x_columns=[16, 96], y_columns=[120, 400], same={0: 4}),
    *(
        columns(
            "ConvTranspose",
            [X, r(8, 12, size, size), r(12), None, r(1, 12, 10, 20)],
            {"strides": [2, 2], "pads": [size // 2 - 1] * 4},
            x_columns=[8, 8],
            y_columns=[4, 20],
            into=4,
        )
        for size in (2, 4)
    ),
    *(
        columns(op, [X, Y], {"kernel_shape": [3, 3], "pads": [1] * 4}, x_columns=cut, y_columns=[8, 20], into=1)
        for op, cut in (("MaxPool", [8, 12]), ("AveragePool", [3, 7]))
    ),
    columns(
        "MaxPool",
        [Y, Y],
        {"kernel_shape": [3, 3], "pads": [1] * 4},
        same={0: 1},
        x_columns=[0, 8],
        y_columns=[8, 20],
        into=1,
    ),
    *(
        columns(
            "Resize",
            [X, None, np.float32([1, 2, 2, 1]), None, r(1, 12, 10, 20)],
            {**UP, "mode": mode},
            x_columns=[12, count],
            y_columns=[4, 20],
            into=4,
        )
        for mode, count in (("nearest", 12), ("linear", 8), ("nearest", 3))
    ),
    columns("Resize", [X, None, None, i64(1, 7, 10, 8)], UP, x_columns=[8, 8]),
    columns("Concat", [X, r(1, 6, 5, 4), Y], {"axis": 3}, x_columns=[8, 8, 0, 4], y_columns=[4, 20], into=2),
    columns("Concat", [X, r(1, 6, 5, 4), Y], {"axis": -1}, x_columns=[5, 3, 1, 2], y_columns=[4, 20], into=2),
    columns("Concat", [*[r(1, 6, 5, 4)] * 5, r(1, 6, 5, 24)], {"axis": 3}, y_columns=[4, 24], into=5),
]
