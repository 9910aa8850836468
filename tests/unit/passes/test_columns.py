"""Concat, Split and Slice of channels without copies: the removed ones, the remaining ones, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds

RNG = np.random.default_rng(5)


def _w(outputs: int, inputs: int, size: int = 1) -> np.ndarray:
    return (RNG.standard_normal((outputs, inputs, size, size)) * 0.3).astype(np.float32)


def _i(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


UP = 'Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">'
POOL = "MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>"
#: id: (nodes from x to y, constants, the remaining Concats, Splits and Slices)
CASES: dict[str, tuple[str, dict[str, np.ndarray], int]] = {
    "halves, one of which goes on": (  # YOLO's C2f
        "c = Conv(x, w)  a, b = Split<axis=1>(c, s)  p = Conv(b, u)  d = Conv<pads=[1,1,1,1]>(p, w3)"
        "  e = Add(b, d)  q = Conv(e, u)  f = Conv<pads=[1,1,1,1]>(q, w3)  h = Add(e, f)"
        "  j = Concat<axis=1>(a, b, e, h)  y = Conv(j, v)",
        {"w": _w(16, 4), "s": _i(8, 8), "u": _w(8, 8), "w3": _w(8, 8, 3), "v": _w(6, 32)},
        0,
    ),
    "pools of pools": (  # YOLO's SPPF
        f"c = Conv(x, w)  a = {POOL}(c)  b = {POOL}(a)  d = {POOL}(b)  j = Concat<axis=1>(c, a, b, d)  y = Conv(j, v)",
        {"w": _w(8, 4), "v": _w(6, 32)},
        0,
    ),
    "branches": (  # Inception
        f"c = Conv(x, w)  a = Conv(c, w)  t = Conv(c, u)  b = Conv<pads=[1,1,1,1]>(t, w3)  p = {POOL}(c)"
        f"  q = Conv(p, w)  j = Concat<axis=1>(a, b, q)  z = {POOL}(j)  r = Conv(j, v)  y = Concat<axis=1>(r, z)",
        {"w": _w(4, 4), "u": _w(4, 4), "w3": _w(12, 4, 3), "v": _w(8, 20)},
        0,
    ),
    "a skip connection": (  # U-Net
        "c = Conv<pads=[1,1,1,1]>(x, w3)  p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c)  d = Conv(p, w)"
        "  u = ConvTranspose<strides=[2,2]>(d, t)  j = Concat<axis=1>(c, u)  y = Conv<pads=[1,1,1,1]>(j, v)",
        {"w3": _w(8, 4, 3), "w": _w(12, 8), "t": _w(12, 8, 2), "v": _w(4, 16, 3)},
        0,
    ),
    "what was enlarged": (
        f"c = Conv(x, w)  p = Conv<strides=[2,2]>(c, u)  d = {UP}(p, , k)  j = Concat<axis=1>(d, c)  y = Conv(j, v)",
        {"w": _w(8, 4), "u": _w(12, 8), "k": np.float32([1, 1, 2, 2]), "v": _w(6, 20)},
        0,
    ),
    "a slice of a slice": (
        "c = Conv(x, w)  a = Slice(c, four, sixteen, one)  b = Slice(a, four, twelve, one)  y = Conv(b, v)",
        {"w": _w(16, 4), "four": _i(4), "sixteen": _i(16), "twelve": _i(-1), "one": _i(1), "v": _w(4, 7)},
        2,  # 7 channels
    ),
    "slices of fours": (
        "c = Conv(x, w)  a = Slice(c, four, sixteen, one)  b = Slice(a, four, twelve, one)  y = Conv(b, v)",
        {"w": _w(16, 4), "four": _i(4), "sixteen": _i(16), "twelve": _i(8), "one": _i(1), "v": _w(4, 4)},
        0,
    ),
    "channels one by one": (
        "c = Conv(x, w)  a, b = Split<axis=1>(c, s)  d = Conv<group=8, pads=[1,1,1,1]>(b, k)"
        "  j = Concat<axis=1>(a, d)  y = Conv(j, v)",
        {"w": _w(16, 4), "s": _i(8, 8), "k": _w(8, 1, 3), "v": _w(4, 16)},
        1,  # half of c is used in place, in j
    ),
    "each of what came before": (
        "a = Conv(x, w)  b = Conv<pads=[1,1,1,1]>(a, u)  c = Conv<group=4>(b, k)"
        "  j = Concat<axis=1>(a, b, c)  y = Conv(j, v)",
        {"w": _w(4, 4), "u": _w(4, 4, 3), "k": _w(4, 1), "v": _w(4, 12)},
        0,
    ),
    "all that came before": (  # DenseNet
        "a = Conv(x, w)  d = Conv<group=8>(a, k)  b = Conv(d, u)  i = Concat<axis=1>(a, b)"
        "  e = Conv<group=12>(i, l)  c = Conv(e, t)  j = Concat<axis=1>(i, c)  p = MaxPool<kernel_shape=[2,2]>(j)"
        "  y = Conv(p, v)",
        {"w": _w(8, 4), "k": _w(8, 1), "u": _w(4, 8), "l": _w(12, 1), "t": _w(4, 12), "v": _w(4, 16)},
        0,
    ),
    "one in the other, with copies": (
        "a = Conv(x, w)  s = Sin(a)  b = Conv(x, u)  i = Concat<axis=1>(s, b)  d = Conv(i, v)"
        "  j = Concat<axis=1>(d, i)  p = MaxPool<kernel_shape=[2,2]>(j)  q = Conv(i, t)  o = Conv(p, z)"
        "  r = Conv<strides=[8,8]>(q, q2)  y = Mul(o, r)",
        {"w": _w(4, 4), "u": _w(8, 4), "v": _w(8, 12), "t": _w(4, 12), "z": _w(4, 20), "q2": _w(4, 4)},
        1,  # s is copied
    ),
    "a part, and the whole": (
        "a = Conv(x, w)  b = Conv(x, u)  i = Concat<axis=1>(a, b)  j = Concat<axis=1>(a, i)  y = Conv(j, v)",
        {"w": _w(4, 4), "u": _w(8, 4), "v": _w(4, 16)},
        1,
    ),
    "odd channels": (
        "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=1>(a, b)  y = Conv(j, v)",
        {"w": _w(5, 4), "u": _w(3, 4), "v": _w(4, 8)},
        1,
    ),
    "something else reads a part": (
        "a = Conv(x, w)  b = Conv(x, u)  s = Sin(a)  j = Concat<axis=1>(a, b)  r = Conv(j, v)  y = Add(r, s)",
        {"w": _w(4, 4), "u": _w(4, 4), "v": _w(4, 8)},
        1,
    ),
    "two of four are made elsewhere": (
        "a = Conv(x, w)  b = Sin(a)  c = Conv(b, w)  d = Cos(c)  e = Conv(x, w)"
        "  j = Concat<axis=1>(b, e, d, c)  y = Conv(j, v)",
        {"w": _w(4, 4), "v": _w(4, 16)},
        1,
    ),
    "in two of them": (
        "a = Conv(x, w)  b = Conv(x, s)  c = Conv(x, u)  j = Concat<axis=1>(a, b)  k = Concat<axis=1>(a, c)"
        "  r = Conv(j, v)  t = Conv(k, z)  y = Add(r, t)",
        {"w": _w(4, 4), "s": _w(4, 4), "u": _w(8, 4), "v": _w(4, 8), "z": _w(4, 12)},
        1,
    ),
    "twice the same": (
        "a = Conv(x, w)  j = Concat<axis=1>(a, a)  y = Conv(j, v)",
        {"w": _w(4, 4), "v": _w(4, 8)},
        1,
    ),
    "rows": (
        "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=2>(a, b)  y = Conv(j, w)",
        {"w": _w(4, 4), "u": _w(4, 4)},
        1,
    ),
}


@pytest.mark.parametrize("sizes", ["1,4,8,8", "n,4,h,w"])
@pytest.mark.parametrize(("nodes", "constants", "left"), CASES.values(), ids=CASES)
def test_columns(nodes: str, constants: dict[str, Any], left: int, sizes: str) -> None:
    model = parse(f"g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8})
    found = operators(check_equal(model, compiled(model, columns=True), feeds=feeds))
    assert sum(found.get(name, 0) for name in ("Concat", "Split", "Slice")) == left, found


SIBLINGS: dict[str, tuple[str, dict[str, np.ndarray], int]] = {
    "with biases and activations": (
        "a = Conv<strides=[2,2]>(x, w, p)  d = Relu(a)  b = Conv<strides=[2,2]>(x, u, q)  e = Relu(b)"
        "  f = Conv(d, v)  g = Conv(e, t)  y = Add(f, g)",
        {"w": _w(8, 4), "u": _w(4, 4), "p": _w(8, 1)[:, 0, 0, 0], "q": _w(4, 1)[:, 0, 0, 0]}
        | {"v": _w(4, 8), "t": _w(4, 4)},
        3,
    ),
    "three, one of them before a Concat": (
        "a = Conv(x, w)  b = Conv(x, u)  c = Conv(x, t)  d = Conv<pads=[1,1,1,1]>(b, k)  e = Conv<pads=[1,1,1,1]>(c, l)"
        "  j = Concat<axis=1>(a, d, e)  y = Conv(j, v)",
        {"w": _w(4, 4), "u": _w(8, 4), "t": _w(4, 4), "k": _w(4, 8, 3), "l": _w(4, 4, 3), "v": _w(4, 12)},
        5,
    ),
    "with larger windows": (
        "a = Conv<pads=[1,1,1,1]>(x, w)  b = Conv<pads=[1,1,1,1]>(x, u)  f = Conv(a, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": _w(8, 4, 3), "u": _w(4, 4, 3), "v": _w(4, 8), "t": _w(4, 4)},
        4,
    ),
    "with other activations": (
        "a = Conv(x, w)  d = Relu(a)  b = Conv(x, u)  e = Tanh(b)  f = Conv(d, v)  g = Conv(e, t)  y = Add(f, g)",
        {"w": _w(8, 4), "u": _w(4, 4), "v": _w(4, 8), "t": _w(4, 4)},
        4,
    ),
    "one read by something else": (
        "a = Conv(x, w)  d = Sin(a)  b = Conv(x, u)  f = Conv(d, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": _w(8, 4), "u": _w(4, 4), "v": _w(4, 8), "t": _w(4, 4)},
        4,
    ),
    "odd channels": (
        "a = Conv(x, w)  b = Conv(x, u)  f = Conv(a, v)  g = Conv(b, t)  y = Add(f, g)",
        {"w": _w(7, 4), "u": _w(4, 4), "v": _w(4, 7), "t": _w(4, 4)},
        4,
    ),
}


@pytest.mark.parametrize("sizes", ["1,4,8,8", "n,4,h,w"])
@pytest.mark.parametrize(("nodes", "constants", "left"), SIBLINGS.values(), ids=SIBLINGS)
def test_siblings(nodes: str, constants: dict[str, Any], left: int, sizes: str) -> None:
    """Convolutions of one tensor; the remaining number. Most memory is needed before them."""
    text = f"h = Conv(i, large)  x = Conv(h, small)  {nodes}"
    constants = {**constants, "large": _w(32, 4), "small": _w(4, 32)}
    model = parse(f"g (float[{sizes}] i) => (float[a,b,c,d] y) {{ {text} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8})
    assert operators(check_equal(model, compiled(model, columns=True), feeds=feeds))["nhwc.Conv"] == left + 2


def network(seed: int) -> tuple[str, dict[str, np.ndarray]]:
    """Convolutions, pools, sums, Splits and Concats at random, all of 8x8 pixels; y is made from the unread ones."""
    rng = np.random.default_rng(seed)
    channels, lines, constants = {"x": 4}, [], {}
    unread = {"x"}

    def pick(count: int = 1, of: int | None = None) -> list[str]:
        names = [name for name, width in channels.items() if of in (None, width)]
        late = names[-6:]
        chosen = [str(name) for name in rng.choice(late, min(count, len(late)), replace=False)]
        unread.difference_update(chosen)
        return chosen

    def give(width: int) -> str:
        name = f"v{len(channels)}"
        channels[name] = width
        unread.add(name)
        return name

    def conv(x: str, width: int, size: int, group: int = 1) -> str:
        weights, name = f"w{len(constants)}", give(width)
        constants[weights] = _w(width, channels[x] // group, size)
        lines.append(f"{name} = Conv<group={group}, pads={[size // 2] * 4}>({x}, {weights})")
        return name

    for _ in range(14):
        kind = rng.choice(["conv", "conv", "depthwise", "pool", "sum", "split", "concat", "concat"])
        (x,) = pick()
        if kind == "conv":
            conv(x, int(rng.choice([4, 8, 8, 6])), int(rng.choice([1, 3])))
        elif kind == "depthwise":
            conv(x, channels[x], 3, channels[x])
        elif kind == "pool":
            lines.append(f"{give(channels[x])} = {POOL}({x})")
        elif kind == "sum":
            made = conv(x, channels[x], 3)
            unread.discard(made)
            lines.append(f"{give(channels[x])} = Add({x}, {made})")
        elif kind == "split" and channels[x] > 4:
            width = channels[x] // 2
            sizes = f"s{len(constants)}"
            constants[sizes] = _i(width, channels[x] - width)
            lines.append(f"{give(width)}, {give(channels[x] - width)} = Split<axis=1>({x}, {sizes})")
        elif kind == "concat":
            parts = list(dict.fromkeys([x, *pick(3)]))
            lines.append(f"{give(sum(channels[p] for p in parts))} = Concat<axis=1>({', '.join(parts)})")
    lines.append(f"y = Concat<axis=1>({', '.join([*sorted(unread), 'x'])})")
    return "  ".join(lines), constants


@pytest.mark.parametrize("seed", [*range(100, 112), 119])
def test_random_networks(seed: int) -> None:
    nodes, constants = network(seed)
    sizes = "1,4,8,8" if seed % 2 else "n,4,h,w"
    model = parse(f"g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    feeds = random_feeds(model, {"n": 1, "h": 8, "w": 8}, seed)
    check_equal(model, compiled(model, columns=True), feeds=feeds, tolerance=1e-3)


def test_an_output_in_the_middle_stays() -> None:
    constants = {"w": _w(4, 4), "u": _w(4, 4), "t": _w(4, 4), "v": _w(4, 12)}
    text = "a = Conv(x, w)  b = Conv(x, u)  c = Conv(x, t)  j = Concat<axis=1>(a, b, c)  y = Conv(j, v)"
    model = parse(
        f"g (float[1,4,8,8] x) => (float[a,b,c,d] y, float[e,f,g,h] b, float[k,l,m,n] j) {{ {text} }}", constants
    )
    found = operators(check_equal(model, compiled(model, columns=True)))
    assert found["nhwc.Conv"] == 4


def test_no_more_memory_than_before() -> None:
    """A wide tensor that waits for its second part while larger ones exist would be the peak."""
    text = (
        "a = Conv(x, w)  t = Conv(a, u)  s = Conv<pads=[1,1,1,1]>(t, z)  b = Conv(s, q)"
        "  j = Concat<axis=1>(a, b)  y = Conv(j, v)"
    )
    constants = {"w": _w(16, 16), "u": _w(64, 16), "z": _w(64, 64, 3), "q": _w(16, 64), "v": _w(4, 32)}
    model = parse(f"g (float[1,16,8,8] x) => (float[a,b,c,d] y) {{ {text} }}", constants)
    result = check_equal(model, compiled(model, columns=True))
    (concat,) = [node for node in result.model.graph if node.op_type == "Concat"]
    assert "y_columns" in concat.attributes  # a is copied, b is not


@pytest.mark.parametrize("level", ["extended", "layout"])
def test_at_lower_levels(level: str) -> None:
    nodes, constants, _ = CASES["branches"]
    model = parse(f"g (float[1,4,8,8] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    check_equal(model, compiled(model, columns=True, level=level))


def test_a_slice_beside_what_has_any_width() -> None:
    """The number of columns that a Concat reads must be known for all inputs."""
    model = parse(
        "g (float[2,8] x, float[2,n] z) => (float[a,b] y) { y0, y1 = Split<axis=1>(x, s)  y = Concat<axis=1>(y1, z) }",
        {"s": _i(4, 4)},
    )
    check_equal(model, compiled(model, columns=True), feeds=random_feeds(model, {"n": 3}))
