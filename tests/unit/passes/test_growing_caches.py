"""Masks with which caches may be in buffers with room: their effect on a key depends on that key alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import transformer_blocks
from graphs import compiled, parse

NUMBERS: dict[str, Any] = {
    **{"i0": np.int64(0), "i1": np.int64(1), "i4": np.int64(4), "minus": np.array([-1]), "last": np.array([-(2**62)])},
    **{"v0": np.array([0]), "v1": np.array([1]), "v2": np.array([2]), "v12": np.array([1, 2]), "v01": np.array([0, 1])},
    **{"zero": np.float32(0), "one": np.float32(1), "least": np.float32(-3.4e38), "yes": np.array(True)},
    "table": np.linspace(0, 1, 4096, dtype=np.float32)[None, None],
}
GIVEN = "f = Cast<to=1>(attention_mask)  h = Sub(one, f)  l = Mul(h, least)  given = Unsqueeze(l, v12)"
TOTAL = "tv = Shape<start=1, end=2>(attention_mask)  total = Squeeze(tv)"
BEFORE = "pv = Shape<start=2, end=3>(past_key)  before = Squeeze(pv)"
ROWS = "rv = Shape<start=1, end=2>(q)  rows = Squeeze(rv)"
COLUMNS = f"{TOTAL}  column = Range(i0, total, i1)"
PLACES = f"{BEFORE}  {ROWS}  end = Add(before, rows)  place = Range(before, end, i1)  own = Unsqueeze(place, v1)"
BIAS = "b = Where(hidden, least, zero)  mask = Add(given, b)"
# id: (nodes to `mask`, true if caches may have room)
MASKS: dict[str, tuple[str, bool]] = {
    "padding": (f"{GIVEN}  mask = Identity(given)", True),
    "places compared": (f"{GIVEN}  {COLUMNS}  {PLACES}  hidden = Greater(column, own)  {BIAS}", True),
    "places by the mask's length": (
        f"{GIVEN}  {COLUMNS}  {ROWS}  older = Sub(total, rows)  r = Range(i0, rows, i1)  place = Add(r, older)  "
        f"own = Unsqueeze(place, v1)  seen = LessOrEqual(column, own)  hidden = Not(seen)  {BIAS}",
        True,
    ),
    "a triangle": (
        f"{GIVEN}  {TOTAL}  {PLACES}  size = Concat<axis=0>(rv, tv)  full = Expand(least, size)  "
        "t = Trilu<upper=1>(full, i1)  column = Range(i0, total, i1)  later = Greater(column, own)  "
        "weight = Cast<to=1>(later)  b = Mul(t, weight)  mask = Add(given, b)",
        True,
    ),
    "the first keys": (f"{GIVEN}  {COLUMNS}  hidden = Greater(column, i4)  {BIAS}", True),
    "truths, repeated": (
        f"{TOTAL}  {ROWS}  bv = Shape<end=1>(q)  size = Concat<axis=0>(bv, v1, rv, tv)  "
        "t = Cast<to=9>(attention_mask)  four = Unsqueeze(t, v12)  wide = Expand(four, size)  "
        "mask = Where(wide, zero, least)",
        True,
    ),
    "a table's first columns": (f"{GIVEN}  {TOTAL}  wide = Slice(table, v0, tv, v2)  mask = Add(given, wide)", False),
    "a window": (
        f"{GIVEN}  {COLUMNS}  {PLACES}  first = Sub(own, i4)  hidden = LessOrEqual(column, first)  {BIAS}",
        False,
    ),
    "by distance": (
        f"{GIVEN}  {COLUMNS}  {PLACES}  d = Sub(column, own)  b = Cast<to=1>(d)  mask = Add(given, b)",
        False,
    ),
    "by the number of rows": (
        f"{GIVEN}  {BEFORE}  n = Cast<to=1>(before)  b = Div(one, n)  mask = Add(given, b)",
        False,
    ),
    "the last keys": (
        f"{GIVEN}  {COLUMNS}  end = Sub(total, i4)  hidden = Less(column, end)  {BIAS}",
        False,
    ),
    "backwards": (f"{GIVEN}  v3 = Add(v1, v2)  mask = Slice(given, minus, last, v3, minus)", False),
    "sums along the keys": (f"{GIVEN}  sums = CumSum(f, i1)  b = Unsqueeze(sums, v12)  mask = Add(given, b)", False),
    "the largest": (f"{GIVEN}  top = ReduceMax(given, minus)  mask = Sub(given, top)", False),
}


def model(nodes: str, result: str = "y = Identity(found)") -> Any:
    text = f"""g (float[batch,rows,16] q, float[batch,rows,16] k, float[batch,rows,16] v,
        int64[batch,all] attention_mask, float[batch,2,past,8] past_key, float[batch,2,past,8] past_value)
        => (float[batch,rows,16] y, float[batch,2,c,8] present_key, float[batch,2,d,8] present_value) {{ {nodes}
        found, present_key, present_value =
          Attention<q_num_heads=2, kv_num_heads=2>(q, k, v, mask, past_key, past_value)  {result} }}"""
    used = {name: value for name, value in NUMBERS.items() if f"{name}," in text or f"{name})" in text}
    return parse(text, used, opset=23)


def grows(result: Any) -> list[Any]:
    """The inputs that are as long as the keys, of each node that appends."""
    nodes = [node for node in result.model.graph if node.op_type == "Attention"]
    assert nodes
    return [node.attributes["grows_with"].value for node in nodes if "grows" in node.attributes]


@pytest.mark.parametrize(("nodes", "may"), MASKS.values(), ids=MASKS)
def test_mask(nodes: str, may: bool) -> None:
    assert grows(compiled(model(nodes))) == ([(3,)] if may else [])


def test_rows_before_are_seen_elsewhere() -> None:
    """By the result, which then differs between steps."""
    nodes = f"{GIVEN}  mask = Identity(given)  {BEFORE}  n = Cast<to=1>(before)"
    assert not grows(compiled(model(nodes, "y = Mul(found, n)")))
    assert grows(compiled(model(nodes, "y = Mul(found, one)")))


@pytest.mark.parametrize("form", [{}, {"rotary": "split"}, {"kv_heads": 1}, {"softcap": 30.0}, {"partial": 4}], ids=str)
def test_llama(form: dict[str, Any]) -> None:
    found = compiled(transformer_blocks.llama(**form))
    inputs = [value.name for value in found.model.graph.inputs]
    assert grows(found) == [(inputs.index("attention_mask"),)]
