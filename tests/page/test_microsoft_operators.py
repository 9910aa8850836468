"""Operators of com.microsoft without a WebGPU kernel, on the GPU in parts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contributed_cases import Case, Draws, check, step

_DRAWS = Draws()
RNG, f32, u8, i8 = _DRAWS.rng, _DRAWS.f32, _DRAWS.u8, _DRAWS.i8


def _groups(groups: int, last: bool, silu: bool) -> Callable[..., Any]:
    """In plain numpy: no CPU provider of onnxruntime has it."""

    def run(x: Any, scale: Any, bias: Any, skip: Any = None, more: Any = None) -> Any:
        first = np.moveaxis(x, -1, 1) if last else x
        if skip is not None:
            first = first + (skip[:, :, None, None] if skip.ndim == 2 else np.moveaxis(skip, -1, 1) if last else skip)
            first = first if more is None else first + more[:, None, None]
        split = first.reshape(first.shape[0], groups, -1).astype(np.float64)
        normal = (split - split.mean(2, keepdims=True)) / np.sqrt(split.var(2, keepdims=True) + 1e-5)
        y = normal.reshape(first.shape) * scale[:, None, None] + bias[:, None, None]
        y = y / (1 + np.exp(-y)) if silu else y
        back = [np.moveaxis(z, 1, -1) if last else z for z in (y, first)]
        return [z.astype(np.float32) for z in back[: 1 if skip is None else 2]]

    return run


def _convolved(x: Any, w: Any, bias: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), (3, 3), (1, 2))
    return [(np.einsum("nhwcij,mijc->nhwm", windows, w) + bias).astype(np.float32)]


CASES = [
    *(
        Case(name, op, [a, *step(0.1, 120), b, *step(0.03, 7), *step(0.05, 3)], {}, fed=2)
        for op in ("QLinearAdd", "QLinearMul")
        for name, a, b in [
            ("", u8(3, 5), u8(3, 5)),
            ("broadcast", u8(2, 3, 70), u8(70)),
            ("one for a row", u8(2, 3, 37), u8(3, 1)),
            ("one for all, first", u8(1), u8(4, 21)),
        ]
    ),
    Case(
        "of int8",
        "QLinearAdd",
        [i8(4, 19), *step(0.1, -3, np.int8), i8(4, 19), *step(0.2, 0, np.int8), *step(0.3, 1, np.int8)],
        {},
    ),
    Case(
        "of int8, one for a row",
        "QLinearMul",
        [i8(4, 19), *step(0.1, -3, np.int8), i8(4, 1), *step(0.2, 5, np.int8), *step(0.9, 1, np.int8)],
        {},
    ),
    Case("", "QLinearLeakyRelu", [u8(40), *step(0.1, 128), *step(0.07, 30)], {"alpha": 0.2}),
    Case("", "QLinearSigmoid", [i8(300), *step(0.05, 4, np.int8), *step(1 / 256, -128, np.int8)], {}),
    Case("", "QLinearSoftmax", [u8(3, 12), *step(0.05, 4), *step(1 / 256, 0)], {"axis": -1, "opset": 13}),
    Case("", "QLinearConcat", [*step(0.05, 3), u8(2, 3), *step(0.04, 5), u8(2, 4), *step(0.06, 9)], {"axis": 1}, fed=5),
    Case("", "QLinearWhere", [u8(30) > 99, u8(30), *step(0.1, 3), u8(30), *step(0.2, 5), *step(0.15, 2)], {}, fed=2),
    *(
        Case(
            "channels last" if last else "",
            "QLinearAveragePool",
            [u8(1, 6, 6, 3), *step(0.1, 3), *step(0.08, 4)],
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "channels_last": last},
        )
        for last in (0, 1)
    ),
    Case("", "QLinearGlobalAveragePool", [u8(2, 5, 5, 3), *step(0.1, 3), *step(0.02, 4)], {"channels_last": 1}),
    Case(
        "",
        "QGemm",
        [u8(5, 8), *step(0.1, 3), i8(8, 6), *step(0.02, 1, np.int8), np.arange(6, dtype=np.int32), *step(0.4, 9)],
        {"alpha": 0.5},
    ),
    Case(
        "one number for all, of one column",
        "QGemm",
        [u8(5, 8), *step(0.1, 3), i8(8, 1), *step(0.02, 1, np.int8), np.array(9, np.int32), *step(0.4, 9)],
        {},
    ),
    Case("to float", "QGemm", [u8(5, 8), *step(0.1, 3), i8(6, 8), *step(0.02, 0, np.int8)], {"transB": 1}),
    *(
        Case(name, "QGemm", [u8(5, 8), *step(0.1, 3), i8(8, 6), *step(0.02, 0, np.int8), None, *end], {})
        for name, end in {
            "a scale alone": [np.array(0.4, np.float32)],
            "a zero point alone": [None, np.array(9, np.uint8)],
        }.items()
    ),
    Case(
        "",
        "MatMulIntegerToFloat",
        [u8(2, 5, 8), i8(8, 6), np.array(0.1, np.float32), np.abs(f32(6)), np.array(7, np.uint8), i8(6), f32(6)],
        {},
    ),
    Case("", "DynamicQuantizeMatMul", [f32(5, 8), i8(8, 6), np.array([0.02], np.float32), None, f32(6)], {}),
    *(
        Case(
            name,
            "QAttention",
            [
                *(u8(2, 6, 16), i8(16, 24), f32(24), np.array(0.004, np.float32), np.array(0.006, np.float32)),
                *(np.array([[1] * 6, [1] * 4 + [0] * 2], np.int32), np.array(128, np.uint8), np.array(1, np.int8)),
            ],
            {"num_heads": 2, "unidirectional": causal},
        )
        for name, causal in [("", 0), ("causal", 1)]
    ),
    Case(
        "",
        "EmbedLayerNormalization",
        [
            RNG.integers(0, 20, (2, 6)).astype(np.int32),
            RNG.integers(0, 2, (2, 6)).astype(np.int32),
            *(f32(20, 16), f32(9, 16), f32(2, 16), f32(16), f32(16)),
            RNG.integers(0, 2, (2, 6)).astype(np.int32),
        ],
        {"epsilon": 1e-6},
        outputs=2,
        fed=2,
    ),
    Case(
        "without segments",
        "EmbedLayerNormalization",
        [RNG.integers(0, 20, (2, 6)).astype(np.int32), None, f32(20, 16), f32(9, 16), None, f32(16), f32(16)],
        {},
        outputs=2,
    ),
    Case(
        "all of the first segment",
        "EmbedLayerNormalization",
        [RNG.integers(0, 20, (2, 6)).astype(np.int32), None, *(f32(n, 16) for n in (20, 9, 2)), f32(16), f32(16)],
        {},
        outputs=2,
    ),
    *(
        Case(
            f"activation {silu} last {last}",
            "GroupNorm",
            [f32(2, 4, 5, 6) if last else f32(2, 6, 4, 5), f32(6), f32(6)],
            {"groups": 3, "activation": silu, "channels_last": last, "epsilon": 1e-5},
            expected=_groups(3, bool(last), bool(silu)),
        )
        for silu, last in [(0, 1), (1, 0)]
    ),
    *(
        Case(
            f"skip of rank {skip.ndim}",
            "SkipGroupNorm",
            [f32(2, 4, 5, 6), f32(6), f32(6), skip, f32(6)],
            {"groups": 2, "activation": 1, "epsilon": 1e-5},
            outputs=2,
            expected=_groups(2, True, True),
        )
        for skip in (f32(2, 4, 5, 6), f32(2, 6))
    ),
    Case("", "NhwcConv", [f32(1, 6, 7, 4), f32(8, 3, 3, 4), f32(8)], {"pads": [1] * 4}, expected=_convolved),
    Case("", "DequantizeLinear", [u8(3, 4), np.abs(f32(3)), u8(3)], {"axis": 0}),
    Case("", "QuantizeLinear", [f32(3, 4), *step(0.02, 120)], {}),
    Case("", "ExpandDims", [f32(2, 3), np.array(-1, np.int32)], {}),
    Case("", "Trilu", [f32(4, 5), np.array(1, np.int64)], {"upper": 1}),
    Case("", "Pad", [f32(2, 3), np.array([0, 1, 1, 0]), np.array(2, np.float32)], {}),
    Case("", "GatherND", [f32(3, 4), np.array([[1, 2], [0, 0]])], {}),
    Case("", "GridSample", [f32(1, 2, 4, 4), f32(1, 3, 3, 2)], {"mode": "bicubic"}, fed=2),
    Case("", "TransposeMatMul", [f32(5, 3), f32(5, 4)], {"transA": 1, "alpha": 0.5}),
    Case("", "Unique", [np.array([2, 1, 1, 3, 2], np.float32)], {}, outputs=3),
    Case(
        "",
        "LinearAttention",
        [f32(2, 5, 32), f32(2, 5, 16), f32(2, 5, 12), f32(2, 2, 8, 6), -np.abs(f32(2, 5, 2)), np.abs(f32(2, 5, 2)) / 4],
        {"q_num_heads": 4, "kv_num_heads": 2},
        outputs=2,
    ),
    Case(
        "",
        "CausalConvWithState",
        [f32(2, 7, 2, 3), f32(6, 1, 4), f32(6), f32(2, 6, 2, 3)],
        {"activation": "silu", "channels_last": 1, "dilation": 2},
        outputs=2,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, new_session):
    check(case, new_session, "webgpu")
