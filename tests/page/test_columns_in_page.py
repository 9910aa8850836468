"""Nodes that read and write columns of wider tensors, in whole models."""

import numpy as np
import pytest
from column_cases import CASES, network
from graphs import parse, random_feeds
from same_values import assert_same
from standard_form import run_native

from py_ort import SessionOptions

#: Cases of the unit test, and their remaining dispatches.
RUN = {
    "halves, one of which goes on": 8,
    "pools of pools": 7,
    "a skip connection": 8,
    "what was enlarged": 6,
    "all that came before": 9,
    "each of what came before": 6,
    "two of four are made elsewhere": 8,
}


@pytest.mark.parametrize("case", RUN)
def test_equals_onnxruntime(new_session, case):
    nodes, constants, _ = CASES[case]
    model = parse(f"g (float[2,4,10,6] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    session = new_session(model, providers=["webgpu"])
    for seed in range(2):
        feeds = random_feeds(model, seed=seed)
        assert_same(session.run(None, feeds), run_native(model, feeds), rtol=1e-4, atol=1e-4)
    assert session.stats()["last_run"]["counters"]["dispatches"] == RUN[case]


#: On wasm, where only convolutions and Concat support columns, the remaining Concats, Splits and Slices.
ON_WASM = dict.fromkeys(RUN, 0) | dict.fromkeys(["pools of pools", "a skip connection", "what was enlarged"], 1)
ON_WASM["two of four are made elsewhere"] = 1


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize("case", ON_WASM)
def test_equals_onnxruntime_on_wasm(new_session, case, dtype):
    nodes, constants, _ = CASES[case]
    half = dtype == "float16"
    if half:
        constants = {name: c.astype(np.float16) if c.ndim == 4 else c for name, c in constants.items()}
    model = parse(f"g ({dtype}[2,4,10,6] x) => ({dtype}[a,b,c,d] y) {{ {nodes} }}", constants)
    session = new_session(model, providers=["wasm"])
    for seed in range(2):
        feeds = random_feeds(model, seed=seed)
        close = {"rtol": 1e-2, "atol": 2e-2} if half else {"rtol": 1e-4, "atol": 1e-4}
        assert_same(session.run(None, feeds), run_native(model, feeds), **close)
    moved = [node for node in session.placement().nodes if node.op_type in ("Concat", "Split", "Slice")]
    assert len(moved) == ON_WASM[case]


@pytest.mark.parametrize("seed", range(300, 306))
def test_random_networks_on_wasm(new_session, seed):
    """With images for Winograd's algorithm, and threads."""
    nodes, constants = network(seed)
    model = parse(f"g (float[1,4,24,20] x) => (float[a,b,c,d] y) {{ {nodes} }}", constants)
    options = SessionOptions()
    options.intra_op_num_threads = 2
    session = new_session(model, options, providers=["wasm"])
    feeds = random_feeds(model, seed=seed)
    wanted = run_native(model, feeds)
    for _ in range(2):
        assert_same(session.run(None, feeds), wanted)


def test_what_is_given_out(new_session, provider):
    """Outputs that are tensors which several nodes write, with sizes that change between runs."""
    text = "a = Conv(x, w)  b = Conv(x, u)  j = Concat<axis=1>(a, b)  y = Transpose<perm=[0,2,3,1]>(j)  c = Conv(j, v)"
    rng = np.random.default_rng(1)
    sizes = {"w": 4, "u": 4, "v": 8}
    constants = {name: rng.standard_normal((4, n, 1, 1)).astype(np.float32) for name, n in sizes.items()}
    model = parse(f"g (float[1,4,h,w] x) => (float[a,b,c,d] y, float[e,f,g,i] c) {{ {text} }}", constants)
    session = new_session(model, providers=[provider])
    for size in (4, 6, 4):
        feeds = random_feeds(model, {"h": size, "w": 5}, seed=size)
        assert_same(session.run(None, feeds), run_native(model, feeds), rtol=1e-4, atol=1e-4)
