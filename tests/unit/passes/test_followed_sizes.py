"""Sizes are read from inputs, not from values made from them."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

I0, I1, ONE = np.array([0]), np.int64(1), np.array([1])
# id: (nodes from x [n, s, 4] and past [n, p, 4] to z, remaining operators besides Shape and Gather)
CASES = {
    "of what is made of it": ("t = Tanh(x)  d = Shape(t)  z = Gather(d, i0)", {}),
    "a number": ("t = Transpose<perm=[1,0,2]>(x)  u = Exp(t)  d = Shape(u)  z = Gather(d, i1)", {}),
    "by a Slice": ("t = Tanh(x)  d = Shape(t)  z = Slice(d, one, two)", {}),
    "of a sum": ("t = Concat<axis=1>(past, x)  d = Shape(t)  z = Gather(d, i1)", {"Add": 1}),
    "of a product": ("t = Reshape(x, flat)  u = Exp(t)  d = Shape(u)  z = Gather(d, i0)", {"Reshape": 1, "Exp": 1}),
    "of an input": ("d = Shape(x)  z = Gather(d, i0)", {}),
}


@pytest.mark.parametrize(("nodes", "expected"), CASES.values(), ids=CASES)
def test_size(nodes: str, expected: dict[str, int]) -> None:
    known = {"i0": I0, "i1": I1, "one": ONE, "two": np.array([2]), "flat": np.array([-1, 4])}
    used = {name: value for name, value in known.items() if name in nodes}
    rank = "" if "i1" in nodes else "a"
    model = parse(f"g (float[n,s,4] x, float[n,p,4] past) => (int64[{rank}] z) {{ {nodes} }}", used)
    feeds = {"x": np.zeros((2, 3, 4), np.float32), "past": np.zeros((2, 5, 4), np.float32)}
    result = check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds)
    left = {name: count for name, count in operators(result).items() if name not in ("Shape", "Gather", "Slice")}
    assert left == expected


def test_one_name_for_different_sizes() -> None:
    """Such models exist, and run elsewhere: the size is that of the tensor from which it was read."""
    model = parse(
        """g (float[n,4] x, float[n,4] other) => (float[n,4] y, int64[a] z) {
        t = Tanh(other)  d = Shape(t)  z = Gather(d, i0)  y = Relu(x) }""",
        {"i0": I0},
    )
    feeds = {"x": np.zeros((2, 4), np.float32), "other": np.zeros((3, 4), np.float32)}
    check_equal(model, feeds=feeds)


def test_heads_of_a_shape_in_which_zero_is_zero() -> None:
    """torch.export's Reshape to sizes that it read; the constant that replaces them copies sizes of 0."""
    model = parse(
        """g (float[n,s,4] x) => (float[a,b,c,d] y) {
        d = Shape(x)  n1 = Slice(d, i0, one)  s1 = Slice(d, one, two)  t = Concat<axis=0>(n1, s1, two, two)
        r = Reshape<allowzero=1>(x, t)  y = Transpose<perm=[0,2,1,3]>(r) }""",
        {"i0": I0, "one": ONE, "two": np.array([2])},
    )
    result = compiled(model, providers=["wasm"])
    check_equal(model, result, feeds={"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)})
    assert operators(result) == {"Reshape": 1, "Transpose": 1}


def test_rows_tiled_for_each_of_a_batch() -> None:
    """arange(s).repeat(n, 1), the positions of Whisper's decoder."""
    model = parse(
        """g (int64[n,s] x) => (float[a,b,c,d] y) {
        d = Shape(x)  n1 = Slice(d, i0, one)  s1 = Gather(d, at)  r = Range(zero, s1, at)  u = Unsqueeze(r, i0)
        t = Concat<axis=0>(n1, one)  p = Tile(u, t)  e = Gather(rows, p)
        f = Shape(e)  h = Slice(f, i0, two)  g = Concat<axis=0>(h, two, two)  y = Reshape(e, g) }""",
        {
            **{"i0": I0, "one": ONE, "two": np.array([2]), "at": I1, "zero": np.int64(0)},
            "rows": np.arange(12, dtype=np.float32).reshape(3, 4),
        },
    )
    result = compiled(model, providers=["wasm"])
    check_equal(model, result, feeds={"x": np.array([[1, 2, 0], [0, 0, 2]])})
    reshape = [node for node in result.model.graph if node.op_type == "Reshape"]
    assert [node.inputs[1].const_value is not None for node in reshape if node.outputs[0].name == "y"] == [True]


def test_rows_of_a_table_as_long_as_the_sequence() -> None:
    """table[:, :s] has min(64, s) columns; the tensors that it fits have size s."""
    model = parse(
        """g (int64[n,s] x) => (float[a,b,c,d] y) {
        d = Shape(x)  s1 = Slice(d, one, two)  cut = Slice(table, i0, s1, one)  wide = Expand(cut, d)
        r = Gather(rows, x)  t = Gather(rows, wide)  u = Add(r, t)
        e = Shape(u)  f = Slice(e, i0, two)  g = Concat<axis=0>(f, two, two)  y = Reshape(u, g) }""",
        {
            **{"i0": I0, "one": ONE, "two": np.array([2]), "table": np.arange(64).reshape(1, 64) % 3},
            "rows": np.arange(12, dtype=np.float32).reshape(3, 4),
        },
    )
    result = compiled(model, providers=["wasm"])
    check_equal(model, result, feeds={"x": np.array([[1, 2, 0], [0, 0, 2]])})
    assert operators(result)["Reshape"] == 1 and "Concat" not in operators(result)
