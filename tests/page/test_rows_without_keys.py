"""Queries whose mask hides every key: a Softmax then returns NaN, unless the model prevents it."""

from typing import Any

import numpy as np
import pytest
from same_values import assert_same
from standard_form import run_native
from text_form import parse

RNG = np.random.default_rng(4)
NUMBERS = {"zero": np.float32(0), "hidden": np.float32(-np.inf), "scale": np.float32(0.25)}
MASKS = {"added": "mask = Where(seen, zero, hidden)  m = Add(c, mask)", "chosen": "m = Where(seen, c, hidden)"}
GUARDS = {
    "as it is": "w = Softmax<axis=-1>(m)",
    "guarded": "p = Softmax<axis=-1>(m) n = IsNaN(p) w = Where(n, zero, p)",
}


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("queries", "keys"), [(2, 7), (40, 33), (1, 700)])
def test_as_native(new_session, provider, guard, mask, queries, keys):
    shape = f"2,3,{queries}"
    model = parse(
        f"g (float[{shape},16] q, float[2,3,16,{keys}] k, float[2,3,{keys},16] v, bool[2,1,{queries},{keys}] seen)"
        f" => (float[{shape},16] y) {{ s = MatMul(q, k)  c = Mul(s, scale)  {MASKS[mask]}  {GUARDS[guard]}"
        "  y = MatMul(w, v) }",
        NUMBERS,
    )
    shapes = {"q": (2, 3, queries, 16), "k": (2, 3, 16, keys), "v": (2, 3, keys, 16)}
    feeds: dict[str, Any] = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    feeds["seen"] = RNG.random((2, 1, queries, keys)) < 0.5
    feeds["seen"][1, :, ::2] = False
    wanted = run_native(model, feeds)
    assert np.isnan(wanted[0]).any() == (guard == "as it is")
    found = new_session(model, providers=[provider]).run(None, feeds)
    assert_same(found, wanted, rtol=1e-4, atol=1e-4)
