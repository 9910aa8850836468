"""Each tile that products take on a GPU, here on a software adapter: by sizes that choose it."""

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.browser

#: m, k, n of a product, and the shader that they choose.
PRODUCTS = {
    "largest": (1020, 36, 2044, "gemm__hw_128x64x32_8x8"),
    "large": (500, 40, 1036, "gemm__hw_64x64x32_4x8"),
    "by element": (500, 31, 1030, "gemm__hw_64x64x32"),
    "shallow": (250, 100, 500, "gemm__hw_32x64x32_slices_2"),
    "small": (1100, 100, 36, "gemm__hw_32x32x32"),
    "deep": (250, 600, 260, "gemm__hw_32x32x32_slices_4"),
    "few": (49, 1500, 100, "gemm__hw_16x32x16_two_slices_4"),
    "cut": (40, 4100, 70, "gemm__hw_32x32x16_two_slices_4_split"),
}
#: Size, channels, output channels, window, stride.
CONVOLUTIONS = {
    "several taps in a tile": (9, 4, 36, 3, 1, "conv__hw_16x32x16_two_slices_4"),
    "a tap in several tiles": (7, 40, 20, 3, 2, "conv__hw_16x32x16_two_slices_4"),
    "deep": (40, 72, 40, 3, 1, "conv__hw_32x32x32_slices_4"),
    "cut": (6, 180, 36, 5, 1, "conv__hw_32x32x16_two_slices_4_split"),
    "large": (92, 12, 60, 3, 1, "conv__hw_64x64x32_4x8"),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products(kernel_page: Any, product: tuple[int, int, int, str]) -> None:
    m, k, n, shader = product
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    result = kernel_page.run("MatMul", [a, b], hardware=True)
    assert shader in result.shaders
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=1e-5 * k)


def test_little_workgroup_memory(kernel_page: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((250, 600), (600, 260)))
    result = kernel_page.run("MatMul", [a, b], hardware=True, traits={"maxWorkgroupStorage": 16384})
    assert result.shaders == ["gemm__hw_32x32x16_slices_4"]
    np.testing.assert_allclose(result.outputs[0], a @ b, rtol=1e-4, atol=6e-3)


@pytest.mark.parametrize("convolution", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
def test_convolutions(kernel_page: Any, convolution: tuple[int, int, int, int, int, str]) -> None:
    size, channels, outputs, window, stride, shader = convolution
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, size, size, channels), np.float32)
    w = rng.standard_normal((window, window, channels, outputs), np.float32)
    pad = window // 2
    attributes = {
        "kernel_shape": [window] * 2,
        "strides": [stride] * 2,
        "dilations": [1, 1],
        "pads": [pad] * 4,
        "group": 1,
        "weight_layout": "HWIO",
    }
    result = kernel_page.run("Conv", [x, w], attributes, domain="com.ms.internal.nhwc", hardware=True)
    assert shader in result.shaders
    padded = np.pad(x[0], ((pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (0, 1))[::stride, ::stride]
    expected = np.einsum("yxcij,ijco->yxo", windows, w, optimize=True)
    np.testing.assert_allclose(result.outputs[0][0], expected, rtol=1e-4, atol=1e-5 * channels * window**2)
