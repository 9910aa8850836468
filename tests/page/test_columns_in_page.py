"""Nodes that read and write columns of wider tensors, in whole models on webgpu."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from graphs import parse, random_feeds
from standard_form import run_native

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit/passes"))

from test_columns import CASES

#: Cases of the unit test, and the launches that are left of them.
RUN = {
    "halves, one of which goes on": 8,
    "pools of pools": 7,
    "a skip connection": 8,
    "what was enlarged": 6,
    "all that came before": 9,
    "each of what came before": 6,
    "two of four are made elsewhere": 8,
}


@pytest.mark.browser
@pytest.mark.parametrize("case", RUN)
def test_equals_onnxruntime(new_session, case: str) -> None:
    nodes, constants, _ = CASES[case]
    model = parse(f"g (float[2,4,10,6] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    for seed in range(2):
        feeds = random_feeds(model, seed=seed)
        (found,), (wanted,) = session.run(None, feeds), run_native(model, feeds)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert session.stats()["last_run"]["counters"]["dispatches"] == RUN[case]


@pytest.mark.browser
def test_what_is_given_out(new_session) -> None:
    """Outputs that are tensors which several nodes write into, and for which sizes change from run to run."""
    text = "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=1>(a, b)  y = Transpose<perm=[0,2,3,1]>(j)  c = Conv(j, v)"
    rng = np.random.default_rng(1)
    constants = {
        name: rng.standard_normal((4, n, 1, 1)).astype(np.float32) for name, n in (("w", 4), ("u", 4), ("v", 8))
    }
    model = parse(f"g (float[1,4,h,w] x) => (float[a,b,c,d] y, float[e,f,g,i] c) {{ {text} }}", constants)
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    for size in (4, 6, 4):
        feeds = random_feeds(model, {"h": size, "w": 5}, seed=size)
        for found, wanted in zip(session.run(None, feeds), run_native(model, feeds), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
