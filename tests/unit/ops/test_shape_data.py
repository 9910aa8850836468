"""Shape arithmetic is followed symbolically."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

I64 = np.int64


def test_reshape_by_shape_arithmetic_needs_no_arithmetic() -> None:
    model = parse(
        """g (float[n,4,h,w] x) => (float[a,b,c] y) {
            s = Shape(x)  n = Slice(s, zero, one)  t = Concat<axis=0>(n, rest)  y = Reshape(x, t) }""",
        {"zero": np.array([0], I64), "one": np.array([1], I64), "rest": np.array([4, -1], I64)},
    )
    result = check_equal(model)
    assert operators(result) == {"Reshape": 1}


@pytest.mark.parametrize("sizes", [{}, {"n": 3, "h": 5, "w": 7}])
def test_with_numbers_nothing_is_left(sizes: dict[str, int]) -> None:
    model = parse(
        """g (float[n,4,h,w] x) => (float[a,b] y) {
            s = Shape(x)  h = Gather(s, two)  w = Gather(s, three)  hw = Mul(h, w)
            c = Constant<value_ints=[-1]>()  r = Reshape(hw, c)  t = Concat<axis=0>(minus, r)  y = Reshape(x, t) }""",
        {"two": np.array(2, I64), "three": np.array(3, I64), "minus": np.array([-1], I64)},
    )
    result = compiled(model, free_dimension_overrides=sizes)
    feeds = {"x": np.arange(420, dtype=np.float32).reshape(3, 4, 5, 7)}
    check_equal(model, result, feeds=feeds)
    if sizes:
        assert operators(result) == {"Reshape": 1}
        assert result.placement.counts()["wasm"] == 0


def test_nested_windows_give_names_that_agree() -> None:
    """Two paths of one size are known to agree although the size is not known: the sum goes into the convolution."""
    w = np.ones((2, 2, 3, 3), np.float32)
    model = parse(
        """g (float[1,2,h,w] x) => (float[a,b,c,d] y) {
            p = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)
            c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, k)
            q = Sigmoid(p)  y = Add(c, q) }""",
        {"k": w},
    )
    result = check_equal(model, feeds={"x": np.random.default_rng(0).standard_normal((1, 2, 9, 7)).astype(np.float32)})
    assert "Add" not in operators(result)
