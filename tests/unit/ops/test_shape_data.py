"""Shape arithmetic is followed symbolically."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds
from standard_form import run_native

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
    """Two paths of one size are known to agree although the size is unknown: the sum goes into the convolution."""
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


_NEAREST = 'Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">'
_SIZES = "s = Shape(x)  h = Gather(s, two)  w = Gather(s, three)"
_NUMBERS = {
    **{"two": np.array(2, I64), "three": np.array(3, I64), "nc": np.array([1, 2], I64), "last": np.array([-1], I64)},
    **{
        "zero": np.float32(0),
        "half": np.float32(0.5),
        "one": np.float32(1),
        "four": np.float32(4),
        "first": np.array([0], I64),
    },
}
#: id: nodes from x (float[n,2,h,w]) to y; all its sizes are known by symbols
FOLLOWED = {
    "none": (
        "s = Size(x)  f = Reshape(s, last)  t = Concat<axis=0>(f, f)  v = Sub(t, t)  y = Tile(m, v)",
        {"m": np.ones((2, 2), np.float32)},
    ),
    "repeated never": ("y = Tile(x, k)", {"k": np.array([1, 1, 0, 2])}),
    "enlarged": (f"y = {_NEAREST}(x, , k)", {"k": np.float32([1, 1, 2, 3])}),
    "made smaller": (f"y = {_NEAREST}(x, , k)", {"k": np.float32([1, 1, 0.5, 0.25])}),
    "by a fraction": (f"y = {_NEAREST}(x, , k)", {"k": np.float32([1, 1, 1.5, 2.75])}),
    "two axes": (
        f"y = {_NEAREST.replace('<', '<axes=[2,3], ')}(x, , k)",
        {"k": np.float32([2, 0.5])},
    ),
    "to sizes": (
        f"{_SIZES}  a = Add(h, w)  f = Reshape(a, last)  t = Concat<axis=0>(nc, f, f)  y = {_NEAREST}(x, , , t)",
        {},
    ),
    "to sizes that were floats": (
        f"{_SIZES}  a = Cast<to=1>(h)  b = Mul(a, half)  c = Floor(b)  d = Div(a, four)  e = Ceil(d)"
        f"  i = Cast<to=7>(c)  j = Cast<to=7>(e)  o = Reshape(i, last)  p = Reshape(j, last)"
        f"  t = Concat<axis=0>(nc, o, p)  y = {_NEAREST}(x, , , t)",
        {},
    ),
    "to sizes that were rounded towards zero": (
        f"{_SIZES}  a = Cast<to=1>(w)  b = Mul(a, half)  i = Cast<to=7>(b)  o = Reshape(i, last)"
        f"  t = Concat<axis=0>(nc, o, o)  y = {_NEAREST}(x, , , t)",
        {},
    ),
    "a pyramid": (
        f"p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)  u = {_NEAREST}(p, , k)  y = Add(u, x)",
        {"k": np.float32([1, 1, 2, 2])},
    ),
    "places": (
        f"{_SIZES}  a = Cast<to=1>(h)  b = Cast<to=1>(w)  c = Range(zero, a, one)  d = Range(zero, b, one)"
        "  e = Add(c, half)  f = Add(d, half)  i = Shape(e)  j = Shape(f)  g = Concat<axis=0>(i, j)"
        "  o = Reshape(e, column)  p = Expand(o, g)  q = Reshape(f, row)  r = Expand(q, g)  l = Unsqueeze(p, last)"
        "  m = Unsqueeze(r, last)  v = Concat<axis=-1>(l, m)  y = Reshape(v, pairs)",
        {"column": np.array([-1, 1], I64), "row": np.array([1, -1], I64), "pairs": np.array([-1, 2], I64)},
    ),
}


@pytest.mark.parametrize(("nodes", "constants"), FOLLOWED.values(), ids=FOLLOWED)
def test_sizes_are_followed(nodes: str, constants: dict[str, np.ndarray]) -> None:
    """As expressions that hold for any feeds."""
    model = parse(f"g (float[n,2,h,w] x) => (float y) {{ {nodes} }}", {**_NUMBERS, **constants})
    (made,) = compiled(model).model.graph.outputs
    assert made.shape is not None
    for height, width in ((4, 4), (8, 12), (64, 20), (128, 256)):
        sizes = {"n": 1, "h": height, "w": width}
        (wanted,) = run_native(model, random_feeds(model, sizes))
        found = [dim if isinstance(dim, int) else dim.evaluate(sizes) for dim in made.shape]
        assert found == list(wanted.shape), str(made.shape)


#: id: the height of y from that of x, by floats: nothing may be claimed of it
UNCERTAIN = {
    "thirds, which are rounded": "b = Div(a, three)",
    "tenths, which are rounded": "b = Mul(a, tenth)",
    "what may be below zero, and is rounded upwards there": "d = Mul(a, half)  b = Sub(d, one)",
}


@pytest.mark.parametrize("nodes", UNCERTAIN.values(), ids=UNCERTAIN)
def test_what_is_not_certain_is_not_claimed(nodes: str) -> None:
    text = (
        f"h = Gather(s, two)  a = Cast<to=1>(h)  {nodes}  i = Cast<to=7>(b)  r = Reshape(i, last)"
        f"  t = Concat<axis=0>(nc, r, r)  y = {_NEAREST}(x, , , t)"
    )
    constants = {**_NUMBERS, "three": np.float32(3), "tenth": np.float32(0.1)}
    (made,) = compiled(
        parse(f"g (float[n,2,h,w] x) => (float y) {{ s = Shape(x)  {text} }}", constants)
    ).model.graph.outputs
    assert made.shape is not None and [str(dim) for dim in made.shape] == ["1", "2", "None", "None"]


def test_of_two_names_either_may_be_one() -> None:
    model = parse("g (float[n,2,h,w] x, float[n,2,k,w] z) => (float y) { y = Add(x, z) }")
    (made,) = compiled(model).model.graph.outputs
    assert made.shape is not None and [str(dim) for dim in made.shape] == ["n", "2", "None", "w"]


@pytest.mark.parametrize(
    ("known", "added", "joined"),
    [
        ("b,4,p,8", "b,4,s,8", ["b", "4", "8"]),
        ("0,4,0,8", "b,4,s,8", ["b", "4", "8"]),
        ("a,4,p,8", "b,4,s,8", ["None", "4", "8"]),
        ("a,4,p,8", "b,4,1,8", ["b", "4", "8"]),
        ("a,4,3,8", "b,4,1,8", ["a", "4", "8"]),
    ],
)
def test_what_may_be_empty_need_not_fit(known: str, added: str, joined: list[str]) -> None:
    model = parse(f"g (float[{known}] x, float[{added}] z) => (float[i,j,k,l] y) {{ y = Concat<axis=2>(x, z) }}")
    (made,) = compiled(model).model.graph.outputs
    assert made.shape is not None and [str(dim) for k, dim in enumerate(made.shape) if k != 2] == joined
