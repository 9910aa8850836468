"""Caches of a fixed length, as exporters write into and read them: TensorScatter, and no mask if lengths suffice."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled, operators, parse

B, H, L, D = 2, 3, 8, 4
FRONT, BACK = "Transpose<perm=[2,0,1,3]>", "Transpose<perm=[1,2,0,3]>"
CONSTANTS: dict[str, Any] = {
    **{"i0": np.int64(0), "i1": np.int64(1), "zero": np.float32(0), "least": np.float32(-3.4e38)},
    **{"v0": np.array([0]), "v1": np.array([1]), "v2": np.array([2]), "row": np.array([1, 1, -1, 1])},
    **{"two": np.arange(2), "keys": np.arange(L), "apart": np.array([[3], [5]]), "place3": np.array([[3], [4]])},
    **{"heads": np.array([B, 4, -1, L]), "column": np.array([1, 1, -1, 1]), "line": np.array([1, -1])},
}
WRITE = f"t = {FRONT}(x)  w = {FRONT}(u)"
INDEX = f"{WRITE}  i = Unsqueeze(p, v1)  s = ScatterND(t, i, w)  y = {BACK}(s)"
EACH = "i = Reshape(p, row)  d = Shape(u)  e = Expand(i, d)  y = ScatterElements<axis=2>(x, e, u)"
ADDED = EACH.replace("axis=2", 'axis=2, reduction="add"')
START = "f = Gather(place, i0)"
ONE, MANY = {"TensorScatter": 1}, {"ScatterElements": 1}
# id: (rows of the update u, nodes from cache x, u and place to y, operators besides those of places)
WRITES: dict[str, tuple[int, str, dict[str, int]]] = {
    "one row, between transposes": (1, f"p = Slice(place, v0, v1, v0)  {INDEX}", ONE),
    "from a place on, between transposes": (2, f"{START}  p = Add(two, f)  {INDEX}", ONE),
    "from a place on, by a Range": (
        2,
        f"{START}  n = Shape<start=2, end=3>(u)  m = Squeeze(n, v0)  r = Range(i0, m, i1)  p = Add(f, r)  {INDEX}",
        ONE,
    ),
    "from a place on, by element": (2, f"{START}  p = Add(f, two)  {EACH}", ONE),
    "known places": (2, f"{WRITE}  s = ScatterND(t, place3, w)  y = {BACK}(s)", ONE),
    "places apart": (2, f"{WRITE}  s = ScatterND(t, apart, w)  y = {BACK}(s)", MANY),
    "any places, between transposes": (2, f"p = Slice(place, v0, v2, v0)  {INDEX}", MANY),
    "any places, by element": (2, f"p = Slice(place, v0, v2, v0)  {EACH}", MANY),
    "added": (2, f"{START}  p = Add(f, two)  {ADDED}", MANY),
}
_PLACES = {"Gather", "Add", "Slice", "Range", "Shape", "Squeeze", "Unsqueeze", "Reshape", "Expand", "Transpose"}


def _used(nodes: str) -> dict[str, Any]:
    return {name: CONSTANTS[name] for name in set(re.findall(r"\w+", nodes)) & set(CONSTANTS)}


@pytest.mark.parametrize(("rows", "nodes", "expected"), WRITES.values(), ids=WRITES)
def test_write(rows: int, nodes: str, expected: dict[str, int]) -> None:
    model = parse(
        f"""g (float[{B},{H},{L},{D}] x, float[{B},{H},{rows},{D}] u, int64[3] place)
        => (float[a,b,c,d] y) {{ {nodes} }}""",
        _used(nodes),
    )
    rng = np.random.default_rng(2)
    feeds = {name: rng.standard_normal((B, H, n, D)).astype(np.float32) for name, n in (("x", L), ("u", rows))}
    feeds["place"] = np.array([3, 4, 3])
    result = check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds)
    assert {name: n for name, n in operators(result).items() if name not in _PLACES} == expected
    cache = result.model.graph.inputs[0]
    assert [use.node.op_type for use in cache.uses()] == list(expected)


_ROWS = f"{START}  c = Add(two, f)  rows = Reshape(c, column)"
_QUERY = f"{START}  rows = Reshape(f, column)"
# id: (queries, nodes from place to the bools t, attribute is_causal, or None if the mask stays)
SEEN: dict[str, tuple[int, str, int | None]] = {
    "up to each query's place": (2, f"{_ROWS}  t = LessOrEqual(keys, rows)", 1),
    "up to one place": (1, f"{_QUERY}  t = LessOrEqual(keys, rows)", 1),
    "up to one place, for all queries": (2, f"{_QUERY}  t = LessOrEqual(keys, rows)", 0),
    "before each query's place": (2, f"{_ROWS}  t = Greater(rows, keys)", 1),
    "from each query's place on": (2, f"{_ROWS}  t = GreaterOrEqual(keys, rows)", None),
    "up to a place of each": (
        2,
        "c = Slice(place, v0, v2, v0)  rows = Reshape(c, column)  t = LessOrEqual(keys, rows)",
        None,
    ),
}


@pytest.mark.parametrize("spelled", ["by parts", "whole"])
@pytest.mark.parametrize(("queries", "nodes", "causal"), SEEN.values(), ids=SEEN)
def test_keys_that_count(queries: int, nodes: str, causal: int | None, spelled: str) -> None:
    if causal == 0 and spelled == "whole":
        pytest.skip("onnxruntime's Attention wants a row of the mask for each query")
    attend = {
        "by parts": "w = MatMul(q, k)  z = Where(t, w, least)  p = Softmax<axis=-1>(z)  y = MatMul(p, x)",
        "whole": "kt = Transpose<perm=[0,1,3,2]>(k)  y = Attention<scale=1.0>(q, kt, x, t)",
    }[spelled]
    model = parse(
        f"""g (float[{B},{H},{queries},{D}] q, float[{B},{H},{D},{L}] k, float[{B},{H},{L},{D}] x, int64[3] place)
        => (float[a,b,c,d] y) {{ {nodes}  {attend} }}""",
        _used(nodes + attend),
        opset=23,
    )
    rng = np.random.default_rng(4)
    shapes = {"q": (B, H, queries, D), "k": (B, H, D, L), "x": (B, H, L, D)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["place"] = np.array([3, 5, 2])
    result = check_equal(model, compiled(model, providers=["wasm"]), feeds=feeds)
    (attention,) = (node for node in result.model.graph if node.op_type == "Attention")
    assert (len(attention.inputs) == 7) == (causal is not None)
    if causal is not None:
        assert attention.inputs[3] is None and attention.attributes["is_causal"].value == causal


def test_keys_repeated_and_swapped_as_stacks() -> None:
    """With known sizes, the exporter makes the stack of repeated keys at once."""
    model = parse(
        f"""g (float[1,4,2,{D}] q, float[1,2,{L},{D}] k, float[1,2,{L},{D}] v) => (float[a,b,c,d] y) {{
        k5 = Unsqueeze(k, v2)  ke = Expand(k5, wide)  k3 = Reshape(ke, stack)  kt = Transpose<perm=[0,2,1]>(k3)
        k4 = Reshape(kt, swapped)  v5 = Unsqueeze(v, v2)  ve = Expand(v5, wide)  v4 = Reshape(ve, four)
        w = MatMul(q, k4)  p = Softmax<axis=-1>(w)  y = MatMul(p, v4) }}""",
        {
            **{"v2": np.array([2]), "wide": np.array([1, 2, 2, L, D]), "stack": np.array([4, L, D])},
            **{"swapped": np.array([1, 4, D, L]), "four": np.array([1, 4, L, D])},
        },
    )
    assert operators(check_equal(model, compiled(model, providers=["wasm"]))) == {"Attention": 1}
