"""Weights in panels, Winograd: the forms that Python's layout makes for the CPU."""

from collections.abc import Callable
from functools import cache

import numpy as np
from case import Case, r
from epilogues import epilogue

from py_ort.providers.wasm.packing import conv_panels, panels, transposed_panels

NHWC = "com.ms.internal.nhwc"


def _array(*shape: int) -> np.ndarray:
    return r(*shape).make(sum(shape))


def _last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _plain(op: str, **attributes: object) -> Callable[..., np.ndarray]:
    """The operator on plain arrays, by onnxruntime."""

    @cache
    def ask(*keys: tuple[tuple[int, ...], bytes]) -> np.ndarray:
        arrays = [np.frombuffer(data, np.float32).reshape(shape) for shape, data in keys]
        return Case(op, arrays, attributes).expectation(arrays)[0]

    return lambda *arrays: ask(*((a.shape, np.ascontiguousarray(a).tobytes()) for a in arrays))


def _conv(
    name: str,
    x: tuple[int, ...],
    w: tuple[int, ...],
    *,
    group: int = 1,
    stride: int = 1,
    pad: int = 0,
    dilation: int = 1,
) -> Case:
    weights = _array(*w) / np.float32(np.sqrt(w[1] * w[2] * w[3]))
    common = {
        "kernel_shape": list(w[2:]),
        "strides": [stride] * 2,
        "pads": [pad] * 4,
        "dilations": [dilation] * 2,
        "group": group,
    }
    conv = _plain("Conv", **common)

    def expected(image: np.ndarray, _: np.ndarray, bias: np.ndarray, z: np.ndarray) -> np.ndarray:
        plain = conv(np.moveaxis(image, -1, 1), weights, bias)
        return np.maximum(_last(plain) + z, 0)

    out = conv(_array(*x), weights, np.zeros(w[0], np.float32)).shape
    attributes = {**common, "weight_layout": "panel8", "out_channels": w[0], **epilogue("Relu", residual="first")}
    inputs = [r(x[0], *x[2:], x[1]), conv_panels(weights, group), r(w[0]), r(out[0], *out[2:], out[1])]
    return Case("Conv", inputs, attributes, expected, tolerance="loose", domain=NHWC, name=name)


def _conv_transpose(
    name: str, x: tuple[int, ...], w: tuple[int, ...], *, group: int = 1, stride: int = 1, pad: int = 0
) -> Case:
    weights = _array(*w) / np.float32(np.sqrt(w[0]))
    common = {"kernel_shape": list(w[2:]), "strides": [stride] * 2, "pads": [pad] * 4, "group": group}
    conv = _plain("ConvTranspose", **common)
    attributes = {**common, "weight_layout": "panel8", "out_channels": w[1] * group}
    inputs = [r(x[0], *x[2:], x[1]), transposed_panels(weights, group), r(w[1] * group)]
    return Case(
        "ConvTranspose",
        inputs,
        attributes,
        lambda image, _, bias: _last(conv(np.moveaxis(image, -1, 1), weights, bias)),
        tolerance="loose",
        domain=NHWC,
        name=name,
    )


def _packed_product(rows: tuple[int, ...], k: int, n: int) -> Case:
    b = _array(k, n)
    return Case(
        "MatMul",
        [r(*rows, k), panels(b), r(n)],
        {"packed_n": n},
        lambda a, _, bias: (a @ b + bias).astype(np.float32),
        tolerance="loose",
        name="packed",
    )


def _winograd(x: tuple[int, ...], out: int, pad: int) -> Case:
    weights = _array(out, x[1], 3, 3) / np.float32(3 * np.sqrt(x[1]))
    attributes = {"kernel_shape": [3, 3], "pads": [pad] * 4, "strides": [1, 1]}
    return Case("Conv", [r(*x), weights, r(out)], attributes, tolerance="loose", name=f"winograd{out}")


CASES = [
    _conv("pointwise", (2, 24, 7, 9), (13, 24, 1, 1)),
    _conv("pointwise-strided", (1, 24, 7, 9), (16, 24, 1, 1), stride=2),
    _conv("short-rows", (1, 3, 17, 19), (8, 3, 3, 3), stride=2, pad=1),
    _conv("dense", (2, 20, 9, 11), (9, 20, 3, 3), pad=1),
    _conv("wide", (1, 17, 9, 40), (24, 17, 1, 5), pad=2),
    _conv("dilated", (1, 16, 12, 11), (8, 16, 3, 3), pad=2, dilation=2),
    _conv("grouped", (1, 12, 9, 8), (6, 4, 3, 3), group=3, pad=1),
    _conv_transpose("twice", (1, 9, 6, 5), (9, 7, 2, 2), stride=2),
    _conv_transpose("overlapping", (2, 6, 5, 4), (6, 3, 3, 3), stride=2, pad=1),
    _conv_transpose("grouped", (1, 6, 5, 4), (6, 2, 3, 3), group=2),
    *(
        _packed_product(rows, k, n)
        for rows, k, n in (
            ((1,), 33, 75),
            ((2,), 19, 45),
            ((7,), 64, 8),
            ((8,), 24, 27),
            ((2, 13), 40, 30),
            ((4,), 5, 1),
        )
    ),
    _winograd((1, 16, 20, 21), 17, 1),
    _winograd((2, 33, 13, 22), 40, 0),
    _winograd((1, 64, 30, 14), 16, 1),
]
