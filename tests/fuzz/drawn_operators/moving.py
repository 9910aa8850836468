"""Operators that move, pick or repeat elements."""

from __future__ import annotations

import numpy as np

from drawn_operators.draft import Draft, Draws, Values, drawn_axis, some_axes

DRAWS = Draws()


@DRAWS.weighted(2)
def _transpose(g: Values) -> Draft:
    x = g.value("fib", least=2)
    perm = g.decide.sample(range(g.array(x).ndim), g.array(x).ndim)
    return Draft("Transpose", [x], {"perm": perm} if g.decide.random() < 0.8 else {})


@DRAWS.weighted(2)
def _reshape(g: Values) -> Draft:
    x = g.value("fib")
    sizes = list(g.array(x).shape)
    for _ in range(g.decide.randint(1, 3)):
        at = g.decide.randint(0, len(sizes))
        if len(sizes) > 1 and g.decide.random() < 0.5:
            at = g.decide.randrange(len(sizes) - 1)
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif sizes and at < len(sizes):
            divisor = g.decide.choice([d for d in range(1, sizes[at] + 1) if sizes[at] % d == 0] or [1])
            sizes[at : at + 1] = [divisor, sizes[at] // divisor]
        else:
            sizes.insert(at, 1)
    if sizes and g.decide.random() < 0.4:
        sizes[g.decide.randrange(len(sizes))] = -1
    return Draft("Reshape", [x, g.fixed(np.array(sizes[:6], np.int64))])


@DRAWS.weighted()
def _flat(g: Values) -> Draft:
    x = g.value("fib")
    return Draft("Flatten", [x], {"axis": g.decide.randint(-g.array(x).ndim, g.array(x).ndim)})


@DRAWS.weighted(2)
def _squeezed(g: Values) -> Draft:
    x = g.value("fib")
    ones = [i for i, d in enumerate(g.array(x).shape) if d == 1]
    if ones and g.decide.random() < 0.5:
        return Draft("Squeeze", [x, g.fixed(np.array(g.decide.sample(ones, g.decide.randint(1, len(ones))), np.int64))])
    return Draft("Unsqueeze", [x, g.fixed(np.array([g.decide.randint(-1, g.array(x).ndim)], np.int64))])


@DRAWS.weighted(2)
def _slice(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axes = [axis for axis in some_axes(g, x) if g.array(x).shape[axis] > 0][:2] or [0]
    bounds = [-(2**63), -100, -3, -2, -1, 0, 1, 2, 3, 100, 2**31]
    steps = [g.decide.choice([1, 1, 1, 2, 3, -1, -1, -2]) for _ in axes]
    # As an end with negative steps onnxruntime treats it as the start.
    rows = [[g.decide.choice([*bounds, 2**63 - 1] if step > 0 else bounds) for step in steps] for _ in range(2)]
    parts = [*rows, axes, steps] if g.decide.random() < 0.7 else [*rows, axes]
    return Draft("Slice", [x, *(g.fixed(np.array(part, np.int64)) for part in parts)])


@DRAWS.weighted(2)
def _pad(g: Values) -> Draft:
    x = g.value("fi", least=1)
    mode = g.decide.choice(["constant", "constant", "edge", "reflect", "wrap"])
    pads = [g.decide.choice([0, 0, 1, 2, -1] if mode == "constant" else [0, 0, 1]) for _ in range(2 * g.array(x).ndim)]
    more = [g.leaf(np.array(2, g.array(x).dtype))] if mode == "constant" and g.decide.random() < 0.5 else []
    return Draft("Pad", [x, g.fixed(np.array(pads, np.int64)), *more], {"mode": mode})


@DRAWS.weighted()
def _expanded(g: Values) -> Draft:
    x = g.value("fib")
    sizes = [d if d > 1 else g.decide.randint(1, 3) for d in g.array(x).shape]
    sizes = [g.decide.randint(1, 2), *sizes] if g.decide.random() < 0.3 else sizes
    return Draft("Expand", [x, g.fixed(np.array(sizes, np.int64))])


@DRAWS.weighted()
def _tiled(g: Values) -> Draft:
    x = g.value("fib", least=1)
    return Draft("Tile", [x, g.fixed(np.array([g.decide.randint(1, 2) for _ in g.array(x).shape], np.int64))])


@DRAWS.weighted(2)
def _concat(g: Values) -> Draft:
    x = g.value("fi", least=1)
    axis = drawn_axis(g, x)
    shape = list(g.array(x).shape)
    shape[axis] = g.decide.randint(1, 3)
    other = x if g.decide.random() < 0.3 else g.leaf(np.ones(shape, g.array(x).dtype))
    return Draft("Concat", g.decide.sample([x, other], 2), {"axis": axis})


@DRAWS.weighted()
def _split(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axis = drawn_axis(g, x)
    size = g.array(x).shape[axis]
    if size < 2:
        return Draft("Identity", [x])
    if g.decide.random() < 0.4:
        return Draft("Split", [x], {"axis": axis, "num_outputs": 2}, 2)
    at = g.decide.randint(0, size)
    return Draft("Split", [x, g.fixed(np.array([at, size - at], np.int64))], {"axis": axis}, 2)


@DRAWS.weighted(2)
def _gather(g: Values) -> Draft:
    x = g.value("fib", least=1)
    axis = drawn_axis(g, x)
    size = max(g.array(x).shape[axis], 1)
    op_type = g.decide.choice(["Gather", "Gather", "GatherElements"])
    rank = g.array(x).ndim
    shape = [g.decide.randint(1, 2)] * g.decide.randint(0, 2) if op_type == "Gather" else [1] * rank
    picked = np.array([g.decide.randrange(-size, size) for _ in range(int(np.prod(shape)))], np.int64)
    return Draft(op_type, [x, g.leaf(picked.reshape(shape))], {"axis": axis})


@DRAWS.weighted()
def _scattered(g: Values) -> Draft:
    x = g.value("f", least=1)
    axis, size = drawn_axis(g, x), 1
    size = max(g.array(x).shape[axis], 1)
    shape = [1] * g.array(x).ndim
    at = g.leaf(np.full(shape, g.decide.randrange(-size, size), np.int64))
    reduction = g.decide.choice(["none", "add", "mul", "max", "min"])
    return Draft("ScatterElements", [x, at, g.floats(*shape)], {"axis": axis, "reduction": reduction})


@DRAWS.weighted()
def _most(g: Values) -> Draft:
    x = g.value("fi", least=1)
    axis = drawn_axis(g, x)
    k = g.decide.randint(1, max(g.array(x).shape[axis], 1))
    flags = {"axis": axis, "largest": g.decide.randint(0, 1), "sorted": 1}
    return Draft("TopK", [x, g.fixed(np.array([k], np.int64))], flags, 2)


@DRAWS.weighted()
def _sizes(g: Values) -> Draft:
    x = g.value("fib")
    bounds = {"start": g.decide.randint(-2, 1)} if g.decide.random() < 0.4 else {}
    return Draft("Shape", [x], bounds) if g.decide.random() < 0.8 else Draft("Size", [x])


@DRAWS.weighted()
def _triangle(g: Values) -> Draft:
    x = g.value("fi", least=2)
    more = [g.fixed(np.array(g.decide.randint(-2, 2), np.int64))] if g.decide.random() < 0.6 else []
    return Draft("Trilu", [x, *more], {"upper": g.decide.randint(0, 1)})


@DRAWS.weighted()
def _block_of_depth(g: Values) -> Draft:
    n, h, w = (g.decide.randint(1, 3) for _ in range(3))
    if g.decide.random() < 0.5:
        mode = g.decide.choice(["DCR", "CRD"])
        return Draft("DepthToSpace", [g.floats(n, 4 * h, h, w)], {"blocksize": 2, "mode": mode})
    return Draft("SpaceToDepth", [g.floats(n, w, 2 * h, 2 * w)], {"blocksize": 2})
