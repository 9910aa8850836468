"""Rotary embedding in its forms: one node each, and the same results; similar graphs stay."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import provisional
import pytest
from graphs import check_equal, compiled, operators, parse

from py_ort.compiler import compile_model
from py_ort.ir.graph import attribute

B, H, S, D = 1, 3, 5, 8
ANGLES = np.outer(np.arange(S), 10.0 ** -(np.arange(D // 2) / 4)).astype(np.float32)
HALF = {f"{n}h": f(ANGLES) for n, f in (("c", np.cos), ("s", np.sin))}
TWICE = {n[0]: np.concatenate([v, v], 1) for n, v in HALF.items()}
PAIRS = {f"{n[0]}p": np.repeat(v, 2, 1) for n, v in HALF.items()}
UNEQUAL = {"cu": np.cos(np.arange(S * D, dtype=np.float32).reshape(S, D))}
WIDE = {"cw": HALF["ch"].repeat(B, 0).reshape(S, B, 1, D // 2).transpose(1, 2, 0, 3)}
CONSTANTS: dict[str, Any] = {
    **HALF,
    **TWICE,
    **PAIRS,
    **UNEQUAL,
    **{n: np.array([v]) for n, v in (("n0", 0), ("n1", 1), ("n2", 2), ("n3", 3), ("n4", 4), ("n8", 8))},
    **{"last": np.array([-1]), "i0": np.int64(0), "i1": np.int64(1), "minus": np.float32(-1)},
    **{"pairs": np.array([0, 0, 0, 4, 2]), "halves": np.array([0, 0, 0, 2, 4]), "whole": np.array([0, 0, 0, 8])},
    "all": np.array([D, 0]),
    **{"table": np.concatenate([TWICE["c"], TWICE["c"]]), "ids": np.array([[4, 0, 3, 2, 1]])},
    **{"ctwo": TWICE["c"].reshape(S, 1, D).transpose(1, 0, 2)[None].repeat(B, 0)},
    **{"stwo": TWICE["s"].reshape(S, 1, D).transpose(1, 0, 2)[None].repeat(B, 0)},
    **{"cs": TWICE["c"][:, None], "ss": TWICE["s"][:, None]},
}
CUT = "a = Slice(x, n0, n4, n3)  b = Slice(x, n4, n8, n3)"
ROTATE = f"{CUT}  m = Neg(b)  r = Concat<axis=3>(m, a)"
SUM = "u = Mul(x, {c})  w = Mul(r, {s})  y = Add(u, w)"
EVEN = "a = Slice(x, n0, n8, n3, n2)  b = Slice(x, n1, n8, n3, n2)"
BY_HALF = "p = Mul(a, ch)  q = Mul(b, sh)  f = Sub(p, q)  g = Mul(b, ch)  h = Mul(a, sh)  e = Add(g, h)"
STACK = "f5 = Unsqueeze(f, last)  e5 = Unsqueeze(e, last)  j = Concat<axis=-1>(f5, e5)  y = Reshape(j, whole)"
WHOLE = SUM.format(c="c", s="s")
ONE = {"RotaryEmbedding": 1}
# id: (nodes from x [1, 3, 5, 8], heads first, to y; attributes of the node, or None without a node)
SPELLINGS: dict[str, tuple[str, dict[str, int] | None]] = {
    "halves by Slice": (f"{ROTATE}  {WHOLE}", {}),
    "halves by Split": (f"a, b = Split<axis=-1, num_outputs=2>(x)  m = Neg(b)  r = Concat<axis=-1>(m, a)  {WHOLE}", {}),
    "negated by a factor": (f"{ROTATE.replace('Neg(b)', 'Mul(minus, b)')}  {WHOLE}", {}),
    "factors first": (f"{ROTATE}  u = Mul(c, x)  w = Mul(s, r)  y = Add(w, u)", {}),
    "caches for each of a batch": (f"{ROTATE}  {SUM.format(c='ctwo', s='stwo')}", {}),
    "caches out of a table": (
        f"{ROTATE}  ci = Gather(table, ids)  c4 = Unsqueeze(ci, n1)  {SUM.format(c='c4', s='s')}",
        {},
    ),
    "neighbors, stacked": (
        f"{EVEN}  m = Neg(b)  m5 = Unsqueeze(m, last)  a5 = Unsqueeze(a, last)  k = Concat<axis=-1>(m5, a5)  "
        f"r = Reshape(k, whole)  {SUM.format(c='cp', s='sp')}",
        {"interleaved": 1},
    ),
    "each half": (f"{CUT}  {BY_HALF}  y = Concat<axis=-1>(f, e)", {}),
    "each of neighbors": (f"{EVEN}  {BY_HALF}  {STACK}", {"interleaved": 1}),
    "each of neighbors, and nothing behind them": (
        f"t, rest = Split<axis=-1>(x, all)  {EVEN.replace('(x', '(t')}  {BY_HALF}  {STACK.replace('y =', 'z =')}  "
        "y = Concat<axis=-1>(z, rest)",
        {"interleaved": 1},
    ),
    "each of pairs, gathered": (
        f"z = Reshape(x, pairs)  a = Gather<axis=-1>(z, i0)  b = Gather<axis=-1>(z, i1)  {BY_HALF}  {STACK}",
        {"interleaved": 1},
    ),
    "halves of a fold, split": (
        f"z = Reshape(x, halves)  a5, b5 = Split<axis=3, num_outputs=2>(z)  a = Squeeze(a5, n3)  b = Squeeze(b5, n3)  "
        f"{BY_HALF}  y = Concat<axis=-1>(f, e)",
        {},
    ),
    "the wrong sign": (f"{CUT}  m = Neg(a)  r = Concat<axis=3>(m, b)  {WHOLE}", None),
    "nothing negated": (f"{CUT}  r = Concat<axis=3>(b, a)  {WHOLE}", None),
    "halves that differ": (f"{ROTATE}  {SUM.format(c='cu', s='s')}", None),
    "cosines of pairs for halves": (f"{ROTATE}  {SUM.format(c='cp', s='sp')}", None),
    "another sine for the second half": (
        f"{CUT}  {BY_HALF.replace('Mul(a, sh)', 'Mul(a, ch)')}  y = Concat<axis=-1>(f, e)",
        None,
    ),
}


def _model(nodes: str, shape: str = f"{B},{H},{S},{D}") -> Any:
    used = {name: CONSTANTS[name] for name in set(re.findall(r"\w+", nodes)) & set(CONSTANTS)}
    return parse(f"g (float[{shape}] x) => (float[k0,k1,k2,k3] y) {{ {nodes} }}", used)


@pytest.mark.parametrize(("nodes", "attributes"), SPELLINGS.values(), ids=SPELLINGS)
def test_spelling(nodes: str, attributes: dict[str, int] | None) -> None:
    model = _model(nodes)
    result = check_equal(model, compiled(model, providers=["wasm"]))
    assert operators(result).get("RotaryEmbedding", 0) == (attributes is not None)
    for node in result.model.graph if attributes is not None else ():
        if node.op_type == "RotaryEmbedding":
            assert attribute(node, "interleaved", 0) == attributes.get("interleaved", 0)


def test_one_row_of_angles_for_a_batch() -> None:
    """One row needs com.microsoft's operator, which has a first position for all."""
    model = _model(f"{ROTATE}  {WHOLE}", f"n,{H},{S},{D}")
    assert "RotaryEmbedding" not in operators(compiled(model, providers=["wasm"]))
    manifests = provisional.manifests()
    manifests["wasm"] = dataclasses.replace(
        manifests["wasm"], kernels={**manifests["wasm"].kernels, ("com.microsoft", "RotaryEmbedding"): ()}
    )
    result = compile_model(model.SerializeToString(), providers=["wasm"], manifests=manifests)
    assert operators(check_equal(model, result)) == {"RotaryEmbedding": 1}


@pytest.mark.parametrize(("rest", "fused"), [("x, n4, n8, n3", True), ("x, n0, n4, n3", False)], ids=["rest", "again"])
def test_the_operator_on_a_part_of_each_head(rest: str, fused: bool) -> None:
    """torch.export writes this in opset 23 where half of a head turns."""
    angles = {name: np.ascontiguousarray(table[None, :, :2]) for name, table in HALF.items()}
    model = parse(
        f"""g (float[{B},{H},{S},{D}] x) => (float[k0,k1,k2,k3] y) {{
        a = Slice(x, n0, n4, n3)  r = RotaryEmbedding(a, ch, sh)  b = Slice({rest})  y = Concat<axis=-1>(r, b) }}""",
        {**{name: CONSTANTS[name] for name in ("n0", "n4", "n8", "n3")}, **angles},
        opset=23,
    )
    result = check_equal(model, compiled(model, providers=["wasm"]))
    assert ("Concat" not in operators(result)) == fused
