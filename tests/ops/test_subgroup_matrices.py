"""Products by subgroup matrices, which no software adapter has: the page emulates them, the rest is as on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from case import Case, r
from test_webgpu_kernels import run_case

pytestmark = pytest.mark.browser


def h(*shape: int) -> Any:
    return r(*shape, dtype="float16")


#: Edges that are no multiple of a tile, or of 4; batches; b along k; alpha, beta and a bias; windows, groups, phases.
CASES = {
    "edges": Case("MatMul", [h(440, 70), h(70, 445)], tolerance="loose"),
    "batches": Case("MatMul", [h(12, 1, 70, 40), h(2, 40, 84)], tolerance="loose"),
    "along k": Case(
        "Gemm", [h(441, 68), h(447, 68), h(447)], {"transB": 1, "alpha": 0.5, "beta": 2.0}, tolerance="loose"
    ),
    "windows": Case("Conv", [h(2, 8, 41, 37), h(72, 8, 3, 3), h(72)], {"pads": [1, 1, 1, 1]}, tolerance="loose"),
    "groups": Case("Conv", [h(1, 24, 40, 40), h(68, 12, 2, 2)], {"group": 2}, tolerance="loose"),
    "phases": Case("ConvTranspose", [h(1, 36, 30, 30), h(36, 68, 2, 2)], {"strides": [2, 2]}, tolerance="loose"),
}
#: m, n and k of matrices, as on a GPU: NVIDIA's; larger ones; all three different.
SIZES = {"16": (16, 16, 16), "32": (32, 16, 32), "8": (16, 32, 8)}


def matrices(size: str, tile: str = "matrices_64x64x32") -> dict[str, Any]:
    """The variant of a kernel on a GPU with matrices of this size, and of a tile."""
    sizes = dict(zip("mnk", SIZES[size], strict=True), subgroup=32)
    return {"hardware": True, "traits": {"subgroupMatrix": sizes, "tiles": {"*": tile}}}


@pytest.mark.parametrize(("name", "size"), [("edges", "16"), ("along k", "8"), *((name, "32") for name in CASES)])
def test_products(kernel_page: Any, name: str, size: str) -> None:
    result = run_case(kernel_page, CASES[name], **matrices(size))
    assert any("__matrices_" in shader for shader in result.shaders)


@pytest.mark.parametrize("name", ["edges", "windows"])
def test_slices_of_k(kernel_page: Any, name: str) -> None:
    """Subgroups divide k: the last one has less of it."""
    tile = "matrices_32x32x32_slices_2"  # software adapters lack the memory for others
    result = run_case(kernel_page, CASES[name], **matrices("32", tile))
    assert any(f"__{tile}" in shader for shader in result.shaders)


#: Ends of k, of y and of phases; a residual and an epilogue, which the dispatch that adds up applies.
DEEP = {
    "edges": Case("MatMul", [h(70, 610), h(610, 85)], tolerance="loose"),
    "along k": Case(
        "Gemm", [h(70, 612), h(66, 612), h(66)], {"transB": 1, "alpha": 0.5, "beta": 2.0}, tolerance="loose"
    ),
    "windows": Case("Conv", [h(2, 64, 9, 7), h(72, 64, 3, 3), h(72)], {"pads": [1, 1, 1, 1]}, tolerance="loose"),
}


@pytest.mark.parametrize("name", DEEP)
def test_parts_of_k(kernel_page: Any, name: str) -> None:
    """Workgroups divide k, and another dispatch adds up their parts."""
    result = run_case(kernel_page, DEEP[name], **matrices("32", "matrices_64x64x32_parts_2"))
    assert any("__matrices_64x64x32" in shader and shader.endswith("_split") for shader in result.shaders)
    assert any("_parts__" in shader for shader in result.shaders)


@pytest.mark.parametrize(("level", "taken"), [(0, False), (2, True), (4, True)])
def test_blocks_by_accuracy_level(kernel_page: Any, level: int, taken: bool) -> None:
    """Rows of float32 are rounded to halves if the model allows it."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((450, 96), np.float32)
    packed, scales = (
        rng.integers(0, 256, (448, 3, 16)).astype(np.uint8),
        rng.uniform(0.1, 1, 448 * 3).astype(np.float32),
    )
    attributes = {"K": 96, "N": 448, "bits": 4, "block_size": 32, "accuracy_level": level}
    inputs = [a, packed, scales]
    result = kernel_page.run("MatMulNBits", inputs, attributes, domain="com.microsoft", **matrices("32"))
    assert any("__matrices_" in shader for shader in result.shaders) == taken
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(448, 3, 32) - 8.0
    wanted = a @ (numbers * scales.reshape(448, 3, 1)).reshape(448, 96).T
    np.testing.assert_allclose(result.outputs[0], wanted, rtol=1e-4, atol=0.05 if taken else 1e-3)
