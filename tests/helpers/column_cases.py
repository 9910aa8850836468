"""Networks with Concat, Split and Slice of channels, which need no copies: usual ones, and random ones."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(5)


def w(outputs: int, inputs: int, size: int = 1) -> np.ndarray:
    """Weights of a convolution."""
    return (RNG.standard_normal((outputs, inputs, size, size)) * 0.3).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    """Sizes, or places."""
    return np.array(items, np.int64)


UP = 'Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">'
POOL = "MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>"
#: id: (nodes from x to y, constants, the remaining Concats, Splits and Slices)
CASES: dict[str, tuple[str, dict[str, np.ndarray], int]] = {
    "halves, one of which goes on": (  # YOLO's C2f
        "c = Conv(x, w)  a, b = Split<axis=1>(c, s)  p = Conv(b, u)  d = Conv<pads=[1,1,1,1]>(p, w3)"
        "  e = Add(b, d)  q = Conv(e, u)  f = Conv<pads=[1,1,1,1]>(q, w3)  h = Add(e, f)"
        "  j = Concat<axis=1>(a, b, e, h)  y = Conv(j, v)",
        {"w": w(16, 4), "s": ints(8, 8), "u": w(8, 8), "w3": w(8, 8, 3), "v": w(6, 32)},
        0,
    ),
    "pools of pools": (  # YOLO's SPPF
        f"c = Conv(x, w)  a = {POOL}(c)  b = {POOL}(a)  d = {POOL}(b)  j = Concat<axis=1>(c, a, b, d)  y = Conv(j, v)",
        {"w": w(8, 4), "v": w(6, 32)},
        0,
    ),
    "branches": (  # Inception
        f"c = Conv(x, w)  a = Conv(c, w)  t = Conv(c, u)  b = Conv<pads=[1,1,1,1]>(t, w3)  p = {POOL}(c)"
        f"  q = Conv(p, w)  j = Concat<axis=1>(a, b, q)  z = {POOL}(j)  r = Conv(j, v)  y = Concat<axis=1>(r, z)",
        {"w": w(4, 4), "u": w(4, 4), "w3": w(12, 4, 3), "v": w(8, 20)},
        0,
    ),
    "a skip connection": (  # U-Net
        "c = Conv<pads=[1,1,1,1]>(x, w3)  p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c)  d = Conv(p, w)"
        "  u = ConvTranspose<strides=[2,2]>(d, t)  j = Concat<axis=1>(c, u)  y = Conv<pads=[1,1,1,1]>(j, v)",
        {"w3": w(8, 4, 3), "w": w(12, 8), "t": w(12, 8, 2), "v": w(4, 16, 3)},
        0,
    ),
    "what was enlarged": (
        f"c = Conv(x, w)  p = Conv<strides=[2,2]>(c, u)  d = {UP}(p, , k)  j = Concat<axis=1>(d, c)  y = Conv(j, v)",
        {"w": w(8, 4), "u": w(12, 8), "k": np.float32([1, 1, 2, 2]), "v": w(6, 20)},
        0,
    ),
    "a slice of a slice": (
        "c = Conv(x, w)  a = Slice(c, four, sixteen, one)  b = Slice(a, four, twelve, one)  y = Conv(b, v)",
        {"w": w(16, 4), "four": ints(4), "sixteen": ints(16), "twelve": ints(-1), "one": ints(1), "v": w(4, 7)},
        2,  # 7 channels
    ),
    "slices of fours": (
        "c = Conv(x, w)  a = Slice(c, four, sixteen, one)  b = Slice(a, four, twelve, one)  y = Conv(b, v)",
        {"w": w(16, 4), "four": ints(4), "sixteen": ints(16), "twelve": ints(8), "one": ints(1), "v": w(4, 4)},
        0,
    ),
    "channels one by one": (
        "c = Conv(x, w)  a, b = Split<axis=1>(c, s)  d = Conv<group=8, pads=[1,1,1,1]>(b, k)"
        "  j = Concat<axis=1>(a, d)  y = Conv(j, v)",
        {"w": w(16, 4), "s": ints(8, 8), "k": w(8, 1, 3), "v": w(4, 16)},
        1,  # half of c is used in place, in j
    ),
    "each of what came before": (
        "a = Conv(x, w)  b = Conv<pads=[1,1,1,1]>(a, u)  c = Conv<group=4>(b, k)"
        "  j = Concat<axis=1>(a, b, c)  y = Conv(j, v)",
        {"w": w(4, 4), "u": w(4, 4, 3), "k": w(4, 1), "v": w(4, 12)},
        0,
    ),
    "all that came before": (  # DenseNet
        "a = Conv(x, w)  d = Conv<group=8>(a, k)  b = Conv(d, u)  i = Concat<axis=1>(a, b)"
        "  e = Conv<group=12>(i, l)  c = Conv(e, t)  j = Concat<axis=1>(i, c)  p = MaxPool<kernel_shape=[2,2]>(j)"
        "  y = Conv(p, v)",
        {"w": w(8, 4), "k": w(8, 1), "u": w(4, 8), "l": w(12, 1), "t": w(4, 12), "v": w(4, 16)},
        0,
    ),
    "one in the other, with copies": (
        "a = Conv(x, w)  s = Sin(a)  b = Conv(x, u)  i = Concat<axis=1>(s, b)  d = Conv(i, v)"
        "  j = Concat<axis=1>(d, i)  p = MaxPool<kernel_shape=[2,2]>(j)  q = Conv(i, t)  o = Conv(p, z)"
        "  r = Conv<strides=[8,8]>(q, q2)  y = Mul(o, r)",
        {"w": w(4, 4), "u": w(8, 4), "v": w(8, 12), "t": w(4, 12), "z": w(4, 20), "q2": w(4, 4)},
        1,  # s is copied
    ),
    "a part, and the whole": (
        "a = Conv(x, w)  b = Conv(x, u)  i = Concat<axis=1>(a, b)  j = Concat<axis=1>(a, i)  y = Conv(j, v)",
        {"w": w(4, 4), "u": w(8, 4), "v": w(4, 16)},
        1,
    ),
    "odd channels": (
        "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=1>(a, b)  y = Conv(j, v)",
        {"w": w(5, 4), "u": w(3, 4), "v": w(4, 8)},
        1,
    ),
    "something else reads a part": (
        "a = Conv(x, w)  b = Conv(x, u)  s = Sin(a)  j = Concat<axis=1>(a, b)  r = Conv(j, v)  y = Add(r, s)",
        {"w": w(4, 4), "u": w(4, 4), "v": w(4, 8)},
        1,
    ),
    "two of four are made elsewhere": (
        "a = Conv(x, w)  b = Sin(a)  c = Conv(b, w)  d = Cos(c)  e = Conv(x, w)"
        "  j = Concat<axis=1>(b, e, d, c)  y = Conv(j, v)",
        {"w": w(4, 4), "v": w(4, 16)},
        1,
    ),
    "in two of them": (
        "a = Conv(x, w)  b = Conv(x, s)  c = Conv(x, u)  j = Concat<axis=1>(a, b)  k = Concat<axis=1>(a, c)"
        "  r = Conv(j, v)  t = Conv(k, z)  y = Add(r, t)",
        {"w": w(4, 4), "s": w(4, 4), "u": w(8, 4), "v": w(4, 8), "z": w(4, 12)},
        1,
    ),
    "twice the same": (
        "a = Conv(x, w)  j = Concat<axis=1>(a, a)  y = Conv(j, v)",
        {"w": w(4, 4), "v": w(4, 8)},
        1,
    ),
    "rows": (
        "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=2>(a, b)  y = Conv(j, w)",
        {"w": w(4, 4), "u": w(4, 4)},
        1,
    ),
}


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
        constants[weights] = w(width, channels[x] // group, size)
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
            constants[sizes] = ints(width, channels[x] - width)
            lines.append(f"{give(width)}, {give(channels[x] - width)} = Split<axis=1>({x}, {sizes})")
        elif kind == "concat":
            parts = list(dict.fromkeys([x, *pick(3)]))
            lines.append(f"{give(sum(channels[p] for p in parts))} = Concat<axis=1>({', '.join(parts)})")
    lines.append(f"y = Concat<axis=1>({', '.join([*sorted(unread), 'x'])})")
    return "  ".join(lines), constants
