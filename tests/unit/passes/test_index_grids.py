"""Masks looked up at each pair of batch and position: the mask itself, or its first part."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

CONSTANTS: dict[str, Any] = {
    **{"i0": np.int64(0), "i1": np.int64(1), "zero": np.array([0]), "two": np.array([2])},
    **{"row": np.array([-1, 1, 1, 1]), "line": np.array([1, 1, 1, -1]), "last": np.array([-1])},
    **{"all": np.indices((2, 5)).reshape(2, -1).T.reshape(2, 1, 5, 2), "flat": np.array([-1])},
    **{"some": np.indices((2, 5)).reshape(2, -1).T[::-1].reshape(2, 1, 5, 2).copy()},
}
SIZES = "d = Shape(x)  n = Gather(d, i0)  m = Shape(z)  s = Gather(m, i1)"
LINES = f"{SIZES}  a = Range(i0, n, i1)  b = Range({{}}, s, i1)  r = Reshape(a, row)  c = Reshape(b, line)"
WIDE = "w = Max(r, c)  e = Shape(w)  r4 = Expand(r, e)  c4 = Expand(c, e)"
LAST = "r5 = Unsqueeze(r4, last)  c5 = Unsqueeze(c4, last)"
PAIRS = f"{LINES}  {WIDE}  {LAST}  p = Concat<axis=-1>({{}})  y = GatherND(x, p)"
ROW = f"{LINES}  f = {{}}(x)  k = Gather(d, i1)  t = Mul(r, k)  q = Add(c, t)  g = Gather(f, q)  y = Squeeze(g, last)"
# id: (x, z, nodes from x and z to y, remaining operators besides reshapes and sizes)
GRIDS: dict[str, tuple[str, str, str, dict[str, int]]] = {
    "pairs": ("n,s", "n,s", PAIRS.format("i0", "r5, c5"), {}),
    "pairs in the front": ("n,t", "n,s", PAIRS.format("i0", "r5, c5"), {"Slice": 1}),
    "pairs from one on": ("n,s", "n,s", PAIRS.format("i1", "r5, c5"), {"GatherND": 1}),
    "pairs the other way": ("5,5", "5,5", PAIRS.format("i0", "c5, r5"), {"GatherND": 1}),
    "in a row": ("n,s", "n,s", ROW.format("i0", "Flatten<axis=2>"), {}),
    "in a row, in the front": ("n,t", "n,s", ROW.format("i0", "Flatten<axis=2>"), {"Slice": 1}),
    "known pairs": ("2,5", "2,5", "y = GatherND(x, all)", {}),
    "known pairs backwards": ("2,5", "2,5", "y = GatherND(x, some)", {"GatherND": 1}),
}
_SMALL = {"Shape", "Gather", "Reshape", "Squeeze", "Concat", "Range", "Expand", "Max", "Unsqueeze", "Add"}


def _model(x: str, z: str, nodes: str) -> onnx.ModelProto:
    used = {name: CONSTANTS[name] for name in set(re.findall(r"\w+", nodes)) & set(CONSTANTS)}
    return parse(f"g (int64[{x}] x, int64[{z}] z) => (int64[a,b,c,e] y) {{ {nodes} }}", used)


@pytest.mark.parametrize(("x", "z", "nodes", "expected"), GRIDS.values(), ids=GRIDS)
def test_grid(x: str, z: str, nodes: str, expected: dict[str, int]) -> None:
    model = _model(x, z, nodes)
    shape = [{"n": 2, "s": 5, "t": 6}.get(size) or int(size) for size in x.split(",")]
    short = [{"n": 2, "s": 5}.get(size) or int(size) for size in z.split(",")]
    feeds = {"x": np.arange(np.prod(shape)).reshape(shape), "z": np.zeros(short, np.int64)}
    found = operators(check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds))
    assert {name: count for name, count in found.items() if name not in _SMALL} == expected
    if "GatherND" not in expected:
        assert not {"Range", "Expand", "Max"} & set(found)


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (1, 5)], ids=str)
@pytest.mark.parametrize(("x", "z", "nodes", "expected"), [GRIDS[name] for name in GRIDS if "known" not in name][:2])
def test_a_feed_that_is_smaller_than_declared(
    x: str, z: str, nodes: str, expected: dict[str, int], shape: tuple[int, int]
) -> None:
    """It fails where the lookup fails: its only column does not broadcast."""
    model = _model(x, z, nodes)
    feeds = {"x": np.arange(shape[0] * shape[1]).reshape(shape), "z": np.zeros((2, 5), np.int64)}
    fused = standard_form(compiled(model, providers=["wasm"]))
    if shape[1] == 5:
        np.testing.assert_array_equal(run_native(fused, feeds)[0], run_native(model, feeds)[0])
        return
    for each in (model, fused):
        with pytest.raises(Exception, match=r"GatherND|Reshape"):
            run_native(each, feeds)
