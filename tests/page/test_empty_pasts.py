"""A cache without rows may also have no batches, and transformers.js begins with it: native's Concat accepts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphs import parse
from same_values import assert_same
from standard_form import run_native

from py_ort.exceptions import RuntimeException

pytestmark = pytest.mark.browser
RNG = np.random.default_rng(8)
WEIGHTS = {name: RNG.standard_normal((32, 32)).astype(np.float32) / 5 for name in ("wq", "wk", "wv")}
NUMBERS = {"heads": np.array([0, 0, 4, 8]), "flat": np.array([0, 0, 32]), "scale": np.float32(8**-0.5)}


def heads(name: str) -> str:
    return f"""{name}0 = MatMul(x, w{name})  {name}1 = Reshape({name}0, heads)
               {name}2 = Transpose<perm=[0,2,1,3]>({name}1)  """


#: Attention with its caches, and the inputs joined to each
GROWING = f"""{heads("q")} {heads("k")} {heads("v")} k = Concat<axis=2>(pk, k2)  v = Concat<axis=2>(pv, v2)
    t = Transpose<perm=[0,1,3,2]>(k)  s = MatMul(q2, t)  m = Mul(s, scale)  p = Softmax<axis=-1>(m)
    a = MatMul(p, v)  c = Transpose<perm=[0,2,1,3]>(a)  y = Reshape(c, flat)"""


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("batch", ["b", "other"])
def test_a_decoder(new_session: Any, provider: str, batch: str) -> None:
    past = f"float[{batch},4,p,8]"
    model = parse(
        f"g (float[b,s,32] x, {past} pk, {past} pv) => (float[b,s,32] y, float[b,4,n,8] k, float[b,4,n,8] v) {{"
        f" {GROWING} }}",
        {**WEIGHTS, **NUMBERS},
    )
    session = new_session(model.SerializeToString(), providers=[provider])
    caches = [np.zeros((0, 4, 0, 8), np.float32)] * 2
    for rows in (3, 1):
        x = RNG.standard_normal((1, rows, 32)).astype(np.float32)
        feeds = {"x": x, "pk": caches[0], "pv": caches[1]}
        wanted = run_native(model, feeds)
        assert_same(session.run(None, feeds), wanted, rtol=1e-5, atol=1e-5)
        caches = wanted[1:]


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_a_constant(new_session: Any, provider: str) -> None:
    """The output's batch does not come from it."""
    model = parse(
        "g (float[b,4,s,8] x) => (float[i,4,k,8] y, int64[4] z) { y = Concat<axis=2>(nothing, x) z = Shape(y) }",
        {"nothing": np.zeros((0, 4, 0, 8), np.float32)},
    )
    feeds = {"x": RNG.standard_normal((2, 4, 3, 8)).astype(np.float32)}
    found = new_session(model.SerializeToString(), providers=[provider]).run(None, feeds)
    assert_same(found, run_native(model, feeds), rtol=0, atol=0)


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_rows_that_nobody_has(new_session: Any, provider: str) -> None:
    """Native leaves them uninitialized; that is refused."""
    model = parse("g (float[a,p] x, float[b,s] z) => (float[i,k] y) { y = Concat<axis=1>(x, z) }")
    session = new_session(model.SerializeToString(), providers=[provider])
    with pytest.raises(RuntimeException, match="Concat along axis 1"):
        session.run(None, {"x": np.zeros((0, 2), np.float32), "z": np.ones((1, 3), np.float32)})
