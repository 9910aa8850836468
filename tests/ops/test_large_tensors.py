"""The WebGPU kernels on tensors larger than a binding: the device pretends to bind only a few hundred bytes.

If work can be cut into parts, each binds windows (`web/src/providers/webgpu/wgsl/large.ts`). Other work binds several
windows at once, accessed through functions (`web/src/providers/webgpu/windows.ts`). For each operator the largest case
of the tables.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from case import Case, i64, r
from test_webgpu_kernels import largest, run_case

#: Bindings begin at multiples of this number of bytes.
STEP = 256
#: Operators with so many large tensors that, halved, they need more bindings than available: only the largest are cut.
MANY_TENSORS = ("LSTM", "GRU", "RNN", "LinearAttention", "QLinearConv", "RotaryEmbedding", "GroupQueryAttention")


def _bytes(arrays: list[np.ndarray | None], expected: list[np.ndarray]) -> list[int]:
    """Sizes on the GPU: 64-bit integers and bools have 32 bits there."""
    every = [array for array in [*arrays, *expected] if array is not None]
    return [array.size * (4 if array.dtype == np.bool_ else min(4, array.itemsize)) for array in every]


LARGEST = {name: case for name, (size, case) in largest().items() if size > STEP // 4}
#: Packed elements.
PACKED = [
    Case("Softmax", [r(3, 300, dtype="float16")], tolerance="loose"),
    Case("ReduceSum", [r(30, 41, dtype="float16"), i64(0)], tolerance="loose"),
    Case("MaxPool", [r(1, 8, 14, 12, dtype="uint8")], {"kernel_shape": [3, 3]}),
    Case("Pad", [r(20, 33, dtype="int8"), i64(1, 2, 3, 0)], host=(1,)),
    Case("GatherElements", [r(30, 40, dtype="uint8"), r(7, 40, dtype="int64", low=0, high=30)]),
]
#: Kernels with other shaders for hardware.
TWOFOLD = (
    "MatMul",
    "Gemm",
    "Conv",
    "GlobalAveragePool",
    "LayerNormalization",
    "ReduceSum",
    "ReduceMax",
    "Attention",
    "Concat",
)
SCALES = np.array([1, 1, 2.5, 2.5], np.float32)
#: By parts of axes, with a device that binds 16 KiB.
BY_PARTS = [
    Case("Add", [r(130, 100), r(130, 100)]),
    Case("Add", [r(130, 100), r(100)]),
    Case("Mul", [r(190, 1, 64), r(190, 2, 64)]),
    Case("Where", [r(320, 16, dtype="bool"), r(320, 1), r(16)]),
    Case("Sigmoid", [r(9001)]),
    Case("Cast", [r(9001)], {"to": 7}),
    Case("Transpose", [r(64, 96)], {"perm": [1, 0]}),
    Case("Transpose", [r(37, 3, 41)], {"perm": [2, 0, 1]}),
    Case("Slice", [r(5000), i64(4990), i64(-5000), i64(0), i64(-3)]),
    Case("Concat", [r(3, 1700), r(3, 1801)], {"axis": 1}),
    Case("Split", [r(2, 2500), i64(700, 1800)], {"axis": 1}, outputs=2),
    Case("Expand", [r(1, 50), i64(100, 50)]),
    Case("Tile", [r(20, 30), i64(3, 4)]),
    Case("Gather", [r(900, 20), i64(0, 899, 5, 450, -1, 77)]),
    Case("Gather", [r(900, 7), np.arange(900)[::-1].copy().reshape(10, 90)]),
    Case("MatMul", [r(5, 600), r(600, 24)], tolerance="normal"),
    Case("MatMul", [r(900, 16), r(16, 24)], tolerance="normal"),
    Case("Gemm", [r(4, 560), r(560, 24), r(24)], tolerance="normal"),
    Case("Gemm", [r(4, 560), r(24, 560)], {"transB": 1}, tolerance="normal"),
    Case("Softmax", [r(130, 64)]),
    Case("LayerNormalization", [r(260, 32), r(32), r(32)], outputs=3, expected="onnx", tolerance="normal"),
    Case("Conv", [r(5, 4, 16, 16), r(6, 4, 3, 3), r(6)], {"pads": [1, 1, 1, 1]}, tolerance="loose"),
    Case("ConvTranspose", [r(4, 4, 8, 8), r(4, 6, 2, 2)], {"strides": [2, 2]}, tolerance="loose"),
    Case("MaxPool", [r(6, 8, 16, 16)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", [r(6, 8, 16, 16)], {"kernel_shape": [3, 3]}, outputs=2),
    Case("GlobalAveragePool", [r(6, 8, 16, 16)], tolerance="normal"),
]
#: Outputs with more windows than remaining bindings: in passes. With the bytes of a binding, and the bindings.
IN_PASSES = [
    (Case("MaxPool", [r(1, 2, 12, 12)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, outputs=2), 256, 7),
    (Case("Resize", [r(1, 2, 6, 6), None, SCALES], {"mode": "linear"}, tolerance="normal"), 512, 3),
    (Case("CumSum", [r(9, 40), np.array(1, np.int64)], tolerance="normal"), 512, 5),
    (Case("TopK", [r(20, 30), i64(25)], outputs=2), 1024, 5),
    (Case("Conv", [r(1, 2, 9, 9), r(7, 2, 3, 3)], {"pads": [1, 1, 1, 1]}, tolerance="loose"), 768, 6),
    (Case("MatMul", [r(15, 2), r(2, 24)], tolerance="normal"), 512, 6),
    (Case("OneHot", [r(90, dtype="int64", low=0, high=9), i64(9), np.array([0, 1], np.float32)]), 512, 4),
    (Case("InstanceNormalization", [r(2, 3, 5, 11), r(3), r(3)], tolerance="normal"), 512, 7),
]


@pytest.mark.browser
@pytest.mark.parametrize("case", LARGEST.values(), ids=LARGEST.keys())
def test_in_windows(kernel_page: Any, case: Case) -> None:
    _run_halved(kernel_page, case, hardware=False)


@pytest.mark.browser
@pytest.mark.parametrize("case", PACKED, ids=lambda case: case.id)
def test_packed_in_windows(kernel_page: Any, case: Case) -> None:
    _run_halved(kernel_page, case, hardware=False)


@pytest.mark.browser
@pytest.mark.parametrize("op", TWOFOLD)
def test_in_windows_on_hardware(kernel_page: Any, op: str) -> None:
    _run_halved(
        kernel_page, next(case for case in LARGEST.values() if (case.domain, case.op) == ("", op)), hardware=True
    )


@pytest.mark.browser
@pytest.mark.parametrize("hardware", [False, True], ids=["software", "hardware"])
@pytest.mark.parametrize("case", BY_PARTS, ids=lambda case: case.id)
def test_by_parts(kernel_page: Any, case: Case, hardware: bool) -> None:
    _run(kernel_page, case, {"maxStorageBindingSize": 16384}, hardware=hardware)


@pytest.mark.browser
@pytest.mark.parametrize(("case", "size", "count"), IN_PASSES, ids=[case.id for case, *_ in IN_PASSES])
def test_in_passes(kernel_page: Any, case: Case, size: int, count: int) -> None:
    shaders = _run(kernel_page, case, {"maxStorageBindingSize": size, "maxStorageBuffersPerStage": count})
    assert any(first == second and "windows" in first for first, second in pairwise(shaders))


@pytest.mark.browser
def test_what_cannot_be_cut_is_said(kernel_page: Any) -> None:
    traits = {"maxStorageBindingSize": STEP, "maxStorageBuffersPerStage": 8}
    message = (
        r"global_pool\w*: float32\[1,3,50,50\] is beyond the 256 bytes that this device can bind; "
        "in parts there are 119 bindings, of which it allows 8"
    )
    with pytest.raises(Exception, match=message):
        kernel_page.run("GlobalAveragePool", [np.zeros((1, 3, 50, 50), np.float32)], traits=traits)


def _run_halved(page: Any, case: Case, hardware: bool) -> None:
    sizes = sorted(_bytes(case.arrays(), case.expectation(case.arrays())))
    limit = sizes[-1] - 1 if case.op in MANY_TENSORS else sizes[-1] // 2
    # One workgroup in each dimension: grids are folded too.
    traits = {"maxStorageBindingSize": max(STEP, limit // STEP * STEP), "maxWorkgroupsPerDimension": 1}
    _run(page, case, traits, hardware=hardware)


def _run(page: Any, case: Case, traits: dict[str, int], *, hardware: bool = False) -> list[str]:
    return list(run_case(page, case, traits=traits, hardware=hardware).shaders)
