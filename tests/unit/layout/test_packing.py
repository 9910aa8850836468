"""Packed weights, element by element, against their definition in docs/internals.md, section 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, parse

from py_ort.providers.wasm import packing

RNG = np.random.default_rng(5)


def test_panels_hold_every_column_and_zeros() -> None:
    matrix = RNG.standard_normal((3, 11)).astype(np.float32)
    packed = packing.panels(matrix)
    assert packed.shape == (2, 3, 8)
    for k in range(3):
        for n in range(16):
            assert packed[n // 8, k, n % 8] == (matrix[k, n] if n < 11 else 0)


def elements(w: np.ndarray, group: int) -> Iterator[tuple[int, int, int, Any]]:
    """Each weight of a convolution, with its group, and its column and row there."""
    for (m, c, y, x), weight in np.ndenumerate(w):
        g, n = divmod(m, len(w) // group)
        yield g, n, (y * w.shape[3] + x) * w.shape[1] + c, weight


@pytest.mark.parametrize("group", [1, 2])
def test_conv_panels(group: int) -> None:
    w = RNG.standard_normal((10, 3, 2, 2)).astype(np.float32)
    packed = packing.conv_panels(w, group)
    assert packed.shape == (group, 2 if group == 1 else 1, 12, 8)
    for g, n, k, weight in elements(w, group):
        assert packed[g, n // 8, k, n % 8] == weight


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integer_panels(dtype: type) -> None:
    matrix = RNG.integers(0, 256, (7, 11)).astype(np.uint8).view(dtype)
    packed = packing.integer_panels(matrix)
    assert packed.shape == (2, 2, 8, 4)
    assert packed.dtype == np.int8
    moved = 128 if dtype == np.uint8 else 0
    for k in range(8):
        for n in range(16):
            assert packed[n // 8, k // 4, n % 8, k % 4] == (int(matrix[k, n]) - moved if n < 11 and k < 7 else 0)


@pytest.mark.parametrize("group", [1, 2])
def test_integer_conv_panels(group: int) -> None:
    w = RNG.integers(-128, 128, (10, 3, 2, 2)).astype(np.int8)
    packed = packing.integer_conv_panels(w, group)
    assert packed.shape == (group, 2 if group == 1 else 1, 3, 8, 4)
    for g, n, k, weight in elements(w, group):
        assert packed[g, n // 8, k // 4, n % 8, k % 4] == weight


@pytest.mark.parametrize("group", [1, 2])
def test_transposed_panels(group: int) -> None:
    w = RNG.standard_normal((4, 3, 2, 2)).astype(np.float32)
    packed = packing.transposed_panels(w, group)
    for c in range(4):
        g, k = divmod(c, 4 // group)
        for m in range(3):
            for y in range(2):
                for x in range(2):
                    n = (y * 2 + x) * 3 + m
                    assert packed[g, n // 8, k, n % 8] == w[c, m, y, x]


@pytest.mark.parametrize(
    ("provider", "group", "weights", "layout", "shape"),
    [
        ("webgpu", 1, (5, 4, 3, 3), "HWIO", (3, 3, 4, 5)),
        ("webgpu", 2, (6, 2, 3, 3), "HWIO", (3, 3, 2, 6)),
        ("webgpu", 4, (4, 1, 3, 3), "HWIO", (3, 3, 1, 4)),
        ("webnn", 1, (5, 4, 3, 3), "OHWI", (5, 3, 3, 4)),
        ("webnn", 2, (6, 2, 3, 3), "OHWI", (6, 3, 3, 2)),
        ("webnn", 4, (4, 1, 3, 3), "IHWO", (1, 3, 3, 4)),
        ("webnn", 4, (8, 1, 3, 3), "OHWI", (8, 3, 3, 1)),
        ("wasm", 1, (5, 4, 3, 3), "panel8", (1, 1, 36, 8)),
        ("wasm", 2, (6, 2, 3, 3), "panel8", (2, 1, 18, 8)),
        ("wasm", 4, (4, 1, 3, 3), "HWIO", (3, 3, 1, 4)),
        ("wasm", 4, (8, 1, 3, 3), "panel8", (4, 1, 9, 8)),
    ],
)
def test_each_provider_gets_its_order(
    provider: str, group: int, weights: tuple[int, ...], layout: str, shape: tuple[int, ...]
) -> None:
    model = parse(
        f"g (float[1,4,6,6] x) => (float[a,b,c,d] y) {{ y = Conv<group={group}>(x, w) }}",
        {"w": RNG.standard_normal(weights).astype(np.float32)},
    )
    result = check_equal(model, compiled(model, providers=[provider]))
    (node,) = [n for n in result.model.graph if n.op_type == "Conv"]
    assert node.attributes["weight_layout"].value == layout
    assert tuple(node.inputs[1].const_value.numpy().shape) == shape
    if layout != "HWIO":
        assert node.attributes["out_channels"].value == weights[0]


@pytest.mark.parametrize("group", [1, 2])
def test_transposed_weights_of_webnn(group: int) -> None:
    model = parse(
        f"g (float[1,4,6,6] x) => (float[a,b,c,d] y) {{ y = ConvTranspose<group={group}>(x, w) }}",
        {"w": RNG.standard_normal((4, 3, 2, 2)).astype(np.float32)},
    )
    result = check_equal(model, compiled(model, providers=["webnn"]))
    (node,) = [n for n in result.model.graph if n.op_type == "ConvTranspose"]
    assert node.attributes["weight_layout"].value == "OHWI"
    assert tuple(node.inputs[1].const_value.numpy().shape) == (3, 2, 2, 4)
    assert node.attributes["out_channels"].value == 3 * group


def test_weights_that_two_nodes_share_are_packed_once() -> None:
    model = parse(
        "g (float[1,4,6,6] x) => (float[a,b,c,d] y) { p = Conv<pads=[1,1,1,1]>(x, w)  y = Conv<pads=[1,1,1,1]>(p, w) }",
        {"w": RNG.standard_normal((4, 4, 3, 3)).astype(np.float32)},
    )
    result = check_equal(model)
    assert len(result.weights.entries) == 1


def test_weights_of_a_provider_each() -> None:
    model = parse(
        "g (float[1,4,6,6] x) => (float[a,b,c,d] y) { p = Conv<pads=[1,1,1,1]>(x, w)  y = Conv<pads=[1,1,1,1]>(p, w) }",
        {"w": RNG.standard_normal((4, 4, 3, 3)).astype(np.float32)},
    )
    model.graph.node[1].name = "second"
    result = check_equal(model, compiled(model, force_cpu_node_names=["second"]))
    assert sorted(e.places for e in result.weights.entries) == [1, 2]


def test_weights_that_are_computed_stay_as_they_are() -> None:
    model = parse("g (float[1,4,6,6] x, float[5,4,3,3] w) => (float[a,b,c,d] y) { y = Conv(x, w) }")
    (node,) = [n for n in check_equal(model).model.graph if n.op_type == "Conv"]
    assert "weight_layout" not in node.attributes
