"""Products with epilogues of more than one step, in every form that kernels compute."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from activations import ACTIVATIONS
from case import Case, r
from channels_last import NHWC, moved
from epilogues import epilogue

Array = np.ndarray[Any, np.dtype[Any]]
# name: (function, its parameters, place of a residual, added number)
ENDS: dict[str, tuple[str, list[float], Any, float | None]] = {
    "sum": ("", [], "first", None),
    "relu, sum": ("Relu", [], "last", None),
    "sum, clip, number": ("Clip", [-0.5, 0.7], "first", 0.25),
    "swish, number, sum": ("Swish", [1.3], "last", -0.5),
    "number, sum": ("", [], "last", 0.75),
    "relu, number": ("Relu", [], None, 0.5),
}


def _image(channels: int, outputs: int, size: int, *, group: int = 1, of: int = 9, **more: Any) -> tuple[Any, ...]:
    attributes = {"kernel_shape": [size] * 2, "pads": [size // 2] * 4, "group": group, **more}
    return (
        "Conv",
        [r(1, of, of + 2, channels), r(outputs, channels // group, size, size, low=-0.5, high=0.5)],
        attributes,
    )


# name: operator, A and B, attributes
HOSTS: dict[str, tuple[str, Sequence[Any], Mapping[str, Any]]] = {
    "MatMul": ("MatMul", [r(2, 9, 16), r(16, 12)], {}),
    "one row": ("MatMul", [r(1, 64), r(64, 100)], {}),
    "Gemm": ("Gemm", [r(33, 40), r(30, 40)], {"transB": 1}),
    "1x1": _image(8, 12, 1),
    "odd": _image(5, 7, 3),
    "3x3": _image(16, 16, 3, of=20),
    "deep": _image(96, 16, 3, of=30),  # large enough for Winograd's
    "grouped": _image(8, 12, 3, group=2),
    "depthwise": _image(12, 12, 3, group=12),
    "tiles": ("ConvTranspose", [r(1, 5, 6, 8), r(8, 12, 2, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping": ("ConvTranspose", [r(1, 5, 6, 8), r(8, 7, 3, 3)], {"kernel_shape": [3, 3], "strides": [2, 2]}),
}


def _ended(host: str, end: str) -> Case:
    op, inputs, attributes = HOSTS[host]
    function, parameters, residual, number = ENDS[end]
    channels_last = op.startswith("Conv")

    def product(a: Array, b: Array) -> Array:
        if channels_last:
            return moved(op, **attributes)(a, b)
        return a @ (b.T if attributes else b)

    shape = product(*(x.make(1) for x in inputs)).shape

    def expected(a: Array, b: Array, bias: Array, z: Array | None = None) -> Array:
        y = product(a, b).astype(np.float64) + bias
        y = y if z is None or residual == "last" else y + z
        y = ACTIVATIONS[function][1](y) if function else y
        y = y if number is None else y + number
        return (y if z is None or residual == "first" else y + z).astype(np.float32)

    return Case(
        op,
        [*inputs, r(shape[-1]), *([r(*shape)] if residual else [])],
        {**attributes, **epilogue(function, parameters, residual=residual, offset=number)},
        expected,
        domain=NHWC if channels_last else "",
        tolerance="loose",
        name=host,
    )


CASES = [_ended(host, end) for host in HOSTS for end in ENDS]
