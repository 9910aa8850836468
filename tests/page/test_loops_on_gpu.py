"""If, Loop and Scan on webgpu compared with native onnxruntime: values that stay on the GPU, and waits."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from array_models import assert_as_native
from native import native_session
from same_values import assert_same
from text_form import parse

STEPS, BATCH, HIDDEN = 20, 2, 33
RANDOM = np.random.default_rng(7)


def _random(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.3).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A graph and its feeds; the number of waits before a run's end, its uploads, and whether it is replayed."""

    graph: str
    feeds: dict[str, np.ndarray]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    waits: int = 0
    uploads: int = 1
    replayed: bool = True  # without a walk of the core
    wanted: tuple[np.ndarray, ...] | None = None  # set if native onnxruntime fails
    tolerance: float = 1e-5


def _scan(
    attributes: str, x: str, out: str, body: str = "t = Add(h, row)  next = Tanh(t)  out = Mul(next, row)"
) -> str:
    return f"""(float[{x}] x, float[4] h0) => (float[4] last, float[{out}] y) {{
        last, y = Scan <num_scan_inputs=1, {attributes} body = turn (float[4] h, float[4] row)
            => (float[4] next, float[4] out) {{ {body} }}> (h0, x) }}"""


COUNT = {"most": np.array(STEPS, np.int64)}
STACKED = """(float[2,33] x) => (float[2,33] y, float[n,2,33] all) {{
    y, all = Loop (most, , x) <body = turn (int64 i, bool go, float[2,33] s)
        => (bool again, float[2,33] next, float[2,33] out) {{ {body} }}> }}"""
DOWN = {"half": np.array(0.5, np.float32), "least": np.array(0.04, np.float32)}
X = np.linspace(-1, 1, 66, dtype=np.float32).reshape(2, 33)

CASES = {
    "scan_rnn_20_steps": Case(
        f"""(float[{STEPS},{BATCH},{HIDDEN}] x, float[{BATCH},{HIDDEN}] h0)
            => (float[{BATCH},{HIDDEN}] last, float[{STEPS},{BATCH},{HIDDEN}] y) {{
            last, y = Scan <num_scan_inputs=1, body = turn (float[{BATCH},{HIDDEN}] h, float[{BATCH},{HIDDEN}] row)
                => (float[{BATCH},{HIDDEN}] next, float[{BATCH},{HIDDEN}] out) {{
                a = MatMul(row, w)  b = MatMul(h, u)  c = Add(a, b)  next = Tanh(c)
                out = Identity(next) }}> (h0, x) }}""",
        {"x": _random(STEPS, BATCH, HIDDEN), "h0": _random(BATCH, HIDDEN)},
        {"w": _random(HIDDEN, HIDDEN), "u": _random(HIDDEN, HIDDEN)},
        uploads=2,
        tolerance=1e-4,
    ),
    "scan_axis_1": Case(
        _scan("scan_input_axes=[1], scan_output_axes=[1],", "4,7", "4,7"),
        {"x": _random(4, 7), "h0": _random(4)},
        uploads=2,
    ),
    "scan_backwards": Case(
        _scan("scan_input_directions=[1], scan_output_directions=[1],", "7,4", "7,4"),
        {"x": _random(7, 4), "h0": _random(4)},
        uploads=2,
    ),
    "scan_one_row": Case(_scan("", "1,4", "1,4"), {"x": _random(1, 4), "h0": _random(4)}, uploads=2),
    "scan_no_row": Case(
        _scan("", "n,4", "n,4"),
        {"x": np.empty((0, 4), np.float32), "h0": np.ones(4, np.float32)},
        uploads=2,
        wanted=(np.ones(4, np.float32), np.empty((0, 4), np.float32)),
    ),
    "scan_in_scan": Case(
        """(float[3,5,4] x) => (float[3,5,4] y) {
            y = Scan <num_scan_inputs=1, body = outer (float[5,4] rows) => (float[5,4] made) {
                start = Sub(first, first)
                last, made = Scan <num_scan_inputs=1, body = inner (float[4] h, float[4] row)
                    => (float[4] next, float[4] out) { next = Add(h, row)
                    out = Tanh(next) }> (start, rows) }> (x) }""",
        {"x": _random(3, 5, 4)},
        {"first": np.ones(4, np.float32)},
    ),
    "scan_integers_and_truths": Case(
        """(int64[6,3] x) => (int64[6,3] y, bool[6,3] z) {
            y, z = Scan <num_scan_inputs=1, body = turn (int64[3] row) => (int64[3] a, bool[3] b) {
                a = Neg(row)  b = Less(a, row) }> (x) }""",
        {"x": np.arange(-9, 9).reshape(6, 3)},
    ),
    "scan_narrow_rows": Case(
        """(uint8[5,3] x, float16[3,5] h) => (uint8[5,3] y, float16[5,3] z) {
            y, z = Scan <num_scan_inputs=2, scan_input_axes=[0,1], body = turn (uint8[3] row, float16[3] part)
                => (uint8[3] a, float16[3] b) { a = Max(row, least)  b = Neg(part) }> (x, h) }""",
        {"x": np.arange(15, dtype=np.uint8).reshape(5, 3), "h": _random(3, 5).astype(np.float16)},
        {"least": np.array([4, 5, 6], np.uint8)},
        uploads=2,
        tolerance=1e-3,
    ),
    "scan_narrow_columns": Case(
        """(float16[3,5] h) => (float16[3,5] z) {
            z = Scan <num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1], scan_output_directions=[1],
                body = turn (float16[3] part) => (float16[3] b) { b = Neg(part) }> (h) }""",
        {"h": _random(3, 5).astype(np.float16)},
        tolerance=1e-3,
    ),
    "loop_counted": Case(
        STACKED.format(body="next = Mul(s, half)  out = Tanh(next)  again = Identity(go)"), {"x": X}, {**COUNT, **DOWN}
    ),
    "loop_counted_by_its_number": Case(
        STACKED.format(body="next = Mul(s, half)  out = Tanh(next)  again = Less(i, seven)"),
        {"x": X},
        {**COUNT, "seven": np.array(7, np.int64), "half": DOWN["half"]},
    ),
    "loop_until": Case(
        STACKED.format(
            body="next = Mul(s, half)  m = ReduceMax<keepdims=0>(next)  out = Tanh(next)  again = Greater(m, least)"
        ),
        {"x": X},
        {**COUNT, **DOWN},
        waits=5,
        replayed=False,
    ),
    "loop_no_turn": Case(
        STACKED.format(body="next = Mul(s, half)  out = Tanh(next)  again = Identity(go)"),
        {"x": X},
        {"most": np.array(0, np.int64), "half": DOWN["half"]},
    ),
    "loop_reads_its_number": Case(
        """(float[9,4] x) => (float[4] sum, float[n,4] all, float[n,1,4] rows) {
            sum, all, rows = Loop (most, , start) <body = turn (int64 i, bool go, float[4] s)
                => (bool again, float[4] next, float[4] row, float[1,4] out) {
                again = Identity(go)  row = Gather<axis=0>(x, i)  next = Add(s, row)
                begin = Unsqueeze(i, zero)  end = Add(begin, one)  out = Slice(x, begin, end, zero) }> }""",
        {"x": _random(9, 4)},
        {
            "most": np.array(6, np.int64),
            "zero": np.array([0], np.int64),
            "one": np.array([1], np.int64),
            "start": np.zeros(4, np.float32),
        },
        uploads=1 + 6,
    ),
    "loop_carries_a_counter": Case(
        """(float[2,33] x) => (float[2,33] y, int64 n) {
            y, n = Loop (most, , x, zero) <body = turn (int64 i, bool go, float[2,33] s, int64 c)
                => (bool again, float[2,33] next, int64 d) { d = Add(c, two)  again = Less(d, most)
                next = Mul(s, half) }> }""",
        {"x": X},
        {**COUNT, "half": DOWN["half"], "zero": np.array(0, np.int64), "two": np.array(2, np.int64)},
    ),
    "loop_grows_what_it_carries": Case(
        """(float[2,3] x) => (float[m,3] y) {
            y = Loop (most, , x) <body = turn (int64 i, bool go, float[k,3] s) => (bool again, float[l,3] next) {
                again = Identity(go)  t = Neg(s)  next = Concat<axis=0>(s, t) }> }""",
        {"x": _random(2, 3)},
        {"most": np.array(4, np.int64)},
    ),
    "if_in_loop": Case(
        """(float[2,33] x) => (float[2,33] y, float[n,2,33] all) {
            y, all = Loop (most, , x) <body = turn (int64 i, bool go, float[2,33] s)
                => (bool again, float[2,33] next, float[2,33] out) {
                again = Identity(go)  m = ReduceSum<keepdims=0>(s)  p = Greater(m, least)
                next = If (p) <then_branch = yes () => (float[2,33] a) { a = Sub(s, half) },
                               else_branch = no () => (float[2,33] b) { b = Add(s, third) }>
                out = Tanh(next) }> }""",
        {"x": X},
        {"most": np.array(5, np.int64), **DOWN, "third": np.array(0.3, np.float32)},
        waits=5,
        replayed=False,
    ),
    "if_known": Case(
        """(float[2,33] x) => (float[2,33] y) {
            n = Shape(x)  rows = Gather<axis=0>(n, zero)  p = Greater(rows, one)
            y = If (p) <then_branch = yes () => (float[2,33] a) { a = Exp(x) },
                        else_branch = no () => (float[2,33] b) { b = Abs(x) }> }""",
        {"x": X},
        {"zero": np.array(0, np.int64), "one": np.array(1, np.int64)},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_as_native_and_without_waiting(case, new_session):
    """The second and third run, too: from the recording, with other numbers."""
    model = parse("g " + case.graph, case.constants)
    native, session = native_session(model), new_session(model)
    for feeds in (case.feeds, case.feeds, {name: value[::-1].copy() for name, value in case.feeds.items()}):
        wanted = list(case.wanted or native.run(None, feeds))
        assert_same(session.run(None, feeds), wanted, rtol=case.tolerance, atol=case.tolerance / 10)
    last = session.stats()["last_run"]
    counters = last["counters"]
    assert counters["suspensions"] <= case.waits, counters
    assert counters["uploads"] <= case.uploads, counters
    assert counters["downloads"] <= case.waits + len(native.get_outputs()), counters
    assert (counters["walks"] == 0) == case.replayed, counters


def test_a_loop_is_captured(new_session):
    """enableGraphCapture accepts a model whose loops read nothing of the feeds."""
    case = CASES["loop_counted"]
    model = parse("g " + case.graph, case.constants)
    session = new_session(model, providers=[("webgpu", {"enableGraphCapture": "1"})])
    assert_as_native(session, model, case.feeds, case.feeds, atol=1e-6)
    assert session.stats()["last_run"]["counters"]["walks"] == 0
