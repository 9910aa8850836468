"""Each tile of products on a GPU, here on a software adapter. web/test/unit/tiles.test.ts covers the choice."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
from case import Case, r
from test_webgpu_kernels import CASES, run_case

pytestmark = pytest.mark.browser

#: Tiles for which a software adapter has workgroup memory enough: the others are these with twice the depth or tiles.
TILES = (
    "128x64x32_8x8",
    "64x64x32_4x8",
    "64x64x32",
    "32x64x32",
    "32x32x32",
    "32x64x32_slices_2",
    "32x32x32_slices_4",
    "32x32x16_slices_4",
    "16x32x16_two_slices_4",
    "32x32x16_two_slices_4",
    "32x32x16_two_slices_4_parts_3",
    "16x32x16_two_slices_4_parts_2",
    "32x64x16_8x4_ahead_slices_4_parts_4",
    "32x64x16_8x4_slices_4",
    "32x64x16_8x4_ahead_slices_4",
    "32x32x32_8x4_direct_slices_8",
    "16x32x16_slices_8",
    "16x32x16_ahead_slices_8",
    "16x32x16_slices_4",
    "32x32x16_8x4_slices_4",
    "32x32x16_slices_4_parts_4",
)
#: The three ways of adding up slices: no more slices than rows, more, and with no part of b in workgroup memory.
SLICED = ("32x64x16_8x4_ahead_slices_4", "16x32x16_ahead_slices_8", "32x32x32_8x4_direct_slices_8")
#: Size, channels, output channels, window, stride, groups.
CONVOLUTIONS = {
    "several taps in a tile": (9, 4, 36, 3, 1, 1),
    "a tap in several tiles": (7, 40, 20, 3, 2, 1),
    "deep": (12, 72, 40, 3, 1, 1),
    "by element": (10, 7, 30, 3, 1, 1),
    "groups": (9, 48, 24, 3, 1, 2),
}


def forced(tile: str) -> dict[str, Any]:
    """The variant of a kernel whose products use this tile where possible."""
    return {"hardware": True, "traits": {"tiles": {"*": tile}}}


def shader(kind: str, tile: str) -> str:
    """The shader's name: for several parts it only says that there are some."""
    return f"{kind}__hw_{re.sub('_parts_.*', '_split', tile)}"


def drawn(cases: list[Any]) -> list[Any]:
    """Slow to compile on a software adapter: one of three, all with `make kernels`."""
    return cases[:: 1 if os.environ.get("PY_ORT_ALL_CASES") == "1" else 3]


@pytest.mark.parametrize("tile", TILES)
def test_products(kernel_page: Any, tile: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((135, 300), (300, 76)))
    result = kernel_page.run("MatMul", [a, b], **forced(tile))
    assert shader("gemm", tile) in result.shaders
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=3e-3)


def test_many_parts(kernel_page: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((50, 1000), (1000, 76)))
    tile = "32x64x32_slices_2_parts_8"
    result = kernel_page.run("MatMul", [a, b], **forced(tile))
    assert shader("gemm", tile) in result.shaders
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=1e-2)


#: Edges that are no multiple of 4, batches that broadcast, strides of a bias, b along k, alpha and beta; residuals,
#: columns of wider tensors, phases.
ENDS = {
    "batches": Case("MatMul", [r(3, 1, 33, 517), r(2, 517, 65)], tolerance="loose"),
    "bias": Case(
        "Gemm", [r(50, 132), r(65, 132), r(50, 1)], {"transB": 1, "alpha": 0.5, "beta": 2.0}, tolerance="loose"
    ),
    **{
        name.split(":")[0]: CASES[name]
        for name in (
            "matmul/MatMul:f32[1,50,130],f32[130,70],-,f32[1,50,70]:epilogue=Add01;LeakyRelu2#0.01",
            "columns/Conv:f32[1,6,5,400],f32[8,96,3,3](-0.5..0.5),f32[8],f32[1,6,5,20],f32[1,6,5,20]:pads=[1,1,1,1]"
            ":epilogue=Add01;Relu2:x_columns=[16,96]:residual_columns=[0,8]:y_columns=[8,20]:into=4",
            "convolution/ConvTranspose:f32[1,5,6,24],f32[2,2,24,8],f32[8],f32[1,10,12,8]:kernel_shape=[2,2]"
            ":strides=[2,2]:epilogue=Add01;Relu2:weight_layout=HWIO:packed",
        )
    },
}
COMBINED = {f"{name}@{tile}": (case, tile) for tile in SLICED for name, case in ENDS.items()}


@pytest.mark.parametrize("combined", drawn([*COMBINED.values()]), ids=drawn([*COMBINED]))
def test_ends(kernel_page: Any, combined: tuple[Case, str]) -> None:
    case, tile = combined
    result = run_case(kernel_page, case, **forced(tile))
    # Phases, and b along k, stage b.
    staged = "direct" in tile and (case.op == "ConvTranspose" or "transB" in case.attributes)
    assert any(f"__hw_{tile}" in name for name in result.shaders) != staged


@pytest.mark.parametrize("tile", drawn([*SLICED]))
def test_halves(kernel_page: Any, tile: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((50, 130), (130, 72)))
    result = kernel_page.run("MatMul", [a, b], **forced(tile))
    assert shader("gemm", tile) in result.shaders
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(result.outputs[0].astype(np.float32), expected, rtol=4e-3, atol=4e-3 * expected.max())


def test_what_lies_beyond_k_counts_nothing(kernel_page: Any) -> None:
    """The next row of b belongs to another matrix."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((2, 20, 65), (2, 65, 32)))
    b[1, 0] = np.inf
    result = kernel_page.run("MatMul", [a, b], **forced("32x32x32_8x4_direct_slices_8"))
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("columns, depth", [(8, 40), (1000, 300), (1001, 33), (2048, 70), (4100, 20)])
def test_few_rows(kernel_page: Any, rows: int, columns: int, depth: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((rows, depth), (depth, columns)))
    result = kernel_page.run("MatMul", [a, b], hardware=True)
    assert result.shaders == [f"gemm__hw_vector_{1 if rows == 1 else 4}"]
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows, depth, columns, limit", [(70, 300, 64, 32768), (20, 4104, 32, 266752)])
def test_parts_of_few_rows(kernel_page: Any, rows: int, depth: int, columns: int, limit: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((rows, depth), (columns, depth)))
    traits = {"maxStorageBindingSize": limit}
    made = kernel_page.run("FusedMatMul", [a, b], {"transB": 1}, domain="com.microsoft", hardware=True, traits=traits)
    np.testing.assert_allclose(made.outputs[0], a @ b.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("device", [{"hardware": True}, {}])
@pytest.mark.parametrize("domain", ["", "com.ms.internal.nhwc"])
def test_windows_of_the_whole_image(kernel_page: Any, domain: str, device: dict[str, Any]) -> None:
    x = np.random.default_rng(0).standard_normal((2, 7, 5, 12), np.float32)
    sizes, axes = (x.shape[1:3], (1, 2)) if domain else (x.shape[2:], (2, 3))
    attributes = {"kernel_shape": list(sizes), "strides": [2, 2], "dilations": [1, 1], "pads": [0, 0, 0, 0]}
    result = kernel_page.run("AveragePool", [x], {**attributes, "ceil_mode": 0}, domain=domain, **device)
    assert all("global_pool" in shader for shader in result.shaders)
    np.testing.assert_allclose(result.outputs[0], x.mean(axis=axes, keepdims=True), rtol=1e-5, atol=1e-6)
    padded = {**attributes, "pads": [1, 0, 0, 0], "count_include_pad": 1}
    result = kernel_page.run("AveragePool", [x], padded, domain=domain, **device)
    assert not any("global_pool" in shader for shader in result.shaders)


def test_little_workgroup_memory(kernel_page: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((250, 600), (600, 260)))
    result = kernel_page.run("MatMul", [a, b], hardware=True, traits={"maxWorkgroupStorage": 16384})
    assert result.shaders == ["gemm__hw_32x32x16_slices_4"]
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=6e-3)


#: Shapes with the first tiles, and with each tile that adds up differently.
CONVOLVED = [
    ("several taps in a tile", "16x32x16_two_slices_4"),
    ("a tap in several tiles", "64x64x32_4x8"),
    ("deep", "32x32x16_two_slices_4_parts_3"),
    ("deep", "32x64x16_8x4_ahead_slices_4_parts_2"),
    ("by element", "32x32x32_slices_4"),
    *[(name, tile) for tile in SLICED for name in [*CONVOLUTIONS][-1:]],
    *drawn([(name, tile) for tile in SLICED for name in [*CONVOLUTIONS][:-1]]),
]


@pytest.mark.parametrize(("name", "tile"), CONVOLVED, ids=[f"{name}@{tile}" for name, tile in CONVOLVED])
def test_convolutions(kernel_page: Any, name: str, tile: str) -> None:
    size, channels, outputs, window, stride, group = CONVOLUTIONS[name]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, size, size, channels), np.float32)
    w = rng.standard_normal((window, window, channels // group, outputs), np.float32)
    pad = window // 2
    attributes = {
        "kernel_shape": [window] * 2,
        "strides": [stride] * 2,
        "dilations": [1, 1],
        "pads": [pad] * 4,
        "group": group,
        "weight_layout": "HWIO",
    }
    result = kernel_page.run("Conv", [x, w], attributes, domain="com.ms.internal.nhwc", **forced(tile))
    assert shader("conv", tile) in result.shaders
    padded = np.pad(x[0], ((pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (0, 1))[::stride, ::stride]
    products = [
        np.einsum("yxcij,ijco->yxo", part, weights, optimize=True)
        for part, weights in zip(np.split(windows, group, 2), np.split(w, group, 3), strict=True)
    ]
    expected = np.concatenate(products, 2)
    np.testing.assert_allclose(result.outputs[0][0], expected, rtol=1e-4, atol=1e-5 * channels * window**2)
