"""If, Loop and Scan on webgpu: bodies run their kernels on the GPU's data, and only conditions come back."""

from __future__ import annotations

import numpy as np
import pytest
import small_models
from graphs import parse
from native import native_session
from same_values import assert_same
from session_settings import settings

import py_ort

X = np.linspace(-1, 1, 6000, dtype=np.float32).reshape(2, 3000)
TURNS = 5

MODELS = {
    "If": """(float[2,3000] x) => (float[2,3000] y) {
        s = ReduceSum<keepdims=0>(x)  p = Greater(s, zero)
        y = If (p) <then_branch = yes () => (float[2,3000] a) { b = Exp(x)  a = Mul(b, x) },
                    else_branch = no () => (float[2,3000] c) { d = Abs(x)  c = Sub(d, x) }> }""",
    "Loop": """(float[2,3000] x) => (float[2,3000] y) {
        y = Loop (most, , x) <body = turn (int64 i, bool go, float[2,3000] state) => (bool again, float[2,3000] next) {
            next = Mul(state, half)  s = ReduceMax<keepdims=0>(next)  again = Greater(s, least) }> }""",
    "Scan": """(float[2,3000] x) => (float[3000] last, float[2,3000] y) {
        start = Slice(x, zero1, one1, zero1)  first = Squeeze(start, zero1)
        last, y = Scan <num_scan_inputs=1, body = turn (float[3000] state, float[3000] row)
            => (float[3000] next, float[3000] out) { t = Add(state, row)  next = Tanh(t)  out = Mul(next, row) }>
            (first, x) }""",
}
CONSTANTS = {
    "zero1": np.array([0], np.int64),
    "one1": np.array([1], np.int64),
    "zero": np.array(0, np.float32),
    "half": np.array(0.5, np.float32),
    "least": np.array(0.04, np.float32),
    "most": np.array(100, np.int64),
}


def _wanted(name: str, x: np.ndarray) -> list[np.ndarray]:
    if name == "If":
        return [np.exp(x) * x if x.sum() > 0 else np.abs(x) - x]
    if name == "Loop":
        return [x * np.float32(0.5**TURNS)]
    state, rows = x[0], []
    for row in x:
        state = np.tanh(state + row)
        rows.append(state * row)
    return [state, np.stack(rows)]


@pytest.mark.parametrize(("name", "conditions"), [("If", 1), ("Loop", TURNS), ("Scan", 0)])
def test_bodies_run_on_the_gpu(new_session, name, conditions):
    text = MODELS[name]
    used = {key: value for key, value in CONSTANTS.items() if f"{key}," in text or f"{key})" in text}
    session = new_session(parse("g " + text, used))
    elsewhere = {node.op_type for node in session.placement().nodes if node.provider != "webgpu"}
    assert elsewhere <= {"Identity", name}
    for x in (X - 0.5, X + 0.5) if name == "If" else (X,):
        assert_same(session.run(None, {"x": x}), _wanted(name, x), rtol=1e-5, atol=1e-6)
    counters = session.stats()["last_run"]["counters"]
    # One for each condition, and one for each output.
    assert counters["downloads"] <= conditions + len(_wanted(name, X))
    assert counters["uploads"] <= 1


def test_a_session_of_an_endless_loop_is_made(new_session):
    """Shapes are known, so the plan is walked before any run; other work in the page continues."""
    new_session(small_models.endless_loop())
    other = new_session(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }"))
    np.testing.assert_array_equal(other.run(None, {"x": np.float32([1, 2])})[0], [-1, -2])


#: A body's change to a state, and the node behind the loop: the rank of the state changes in each iteration.
OTHER_RANKS = {
    "unsqueeze, reshape": ((), "t = Unsqueeze(s, zero1)  next = Reshape(t, most1)", "y = Identity(l)"),
    "transpose": ((2, 2), "t = Transpose(s)  next = Unsqueeze(t, zero1)", "y = Identity(l)"),
    "sum of all": ((2, 3), "next = Unsqueeze(s, zero1)", "y = ReduceSum<keepdims=1>(l)"),
    "largest of all": ((2, 2, 2), "next = ReduceSum<keepdims=0>(s, most1)", "y = ReduceMax<keepdims=0>(l)"),
    "nested": (
        (2, 2),
        """next = Loop (two, , s) <body = inside (int64 j, bool on, float[] p) => (bool still, float[] q) {
            still = Identity(on)  r = Transpose(p)  q = Unsqueeze(r, zero1) }>""",
        "y = Transpose(l)",
    ),
}


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("level", [0, 99])
@pytest.mark.parametrize(("shape", "body", "behind"), OTHER_RANKS.values(), ids=OTHER_RANKS)
def test_states_whose_rank_changes(new_session, provider, level, shape, body, behind):
    declared = f"float[{','.join(map(str, shape))}]" if shape else "float"
    text = f"""g ({declared} x) => (float[] y) {{
        l = Loop (two, , x) <body = turn (int64 i, bool go, float[] s) => (bool again, float[] next) {{
            again = Identity(go)  {body} }}>  {behind} }}"""
    constants = {"zero1": np.array([0]), "most1": np.array([-1]), "two": np.array(2)}
    model = parse(text, {name: value for name, value in constants.items() if name in text})
    x = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    options = settings(graph_optimization_level=py_ort.GraphOptimizationLevel(level))
    got = new_session(model, options, providers=[provider]).run(None, {"x": x})[0]
    np.testing.assert_array_equal(got, native_session(model).run(None, {"x": x})[0], strict=True)
