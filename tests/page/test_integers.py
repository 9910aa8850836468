"""Integers of 64 bits on webgpu: exact, on either provider, or refused; never truncated."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import parse

from py_ort import SessionOptions
from py_ort.exceptions import NotImplemented, PyOrtError

LARGE = np.array([[1 << 40, -(1 << 40), 5], [(1 << 62) + 1, -7, (1 << 33) + 3]], np.int64)
SMALL = np.array([[3, -4, 5], [6, -7, 1 << 20]], np.int64)
REASON = "is not known to fit the 32 bits"

#: Model, feeds, and numpy's results.
CASES = {
    "adds feeds": ("(int64[2,3] x) => (int64[2,3] y) { y = Add(x, x) }", LARGE, LARGE + LARGE),
    "multiplies large products": (
        "(int64[2,3] x) => (int64[2,3] y) { y = Mul(x, small) }",
        SMALL << 9,
        (SMALL << 9) * SMALL,
    ),
    "adds a large initializer": (
        "(int32[2,3] x) => (int64[2,3] y) { a = Cast<to=7>(x)  y = Add(a, large) }",
        SMALL.astype(np.int32),
        SMALL + LARGE,
    ),
    "casts large floats": (
        "(float[2,3] x) => (int64[2,3] y) { y = Cast<to=7>(x) }",
        np.full((2, 3), 1e12, np.float32),
        np.full((2, 3), 1e12, np.float32).astype(np.int64),
    ),
    "sums beyond 32 bits": (
        "(int32[2,3] x) => (int64[2,1] y) { a = Cast<to=7>(x)  y = ReduceSum(a, one) }",
        np.full((2, 3), 2**31 - 1, np.int32),
        np.full((2, 1), 3 * (2**31 - 1), np.int64),
    ),
    "takes the largest of nothing": (
        "(int64[2,0] x) => (int64[2,1] y) { y = ReduceMax(x, one) }",
        np.zeros((2, 0), np.int64),
        np.full((2, 1), np.iinfo(np.int64).min),
    ),
    "takes the least of nothing": (
        "(uint64[2,0] x) => (uint64[2,1] y) { y = ReduceMin(x, one) }",
        np.zeros((2, 0), np.uint64),
        np.full((2, 1), np.iinfo(np.uint64).max),
    ),
    "and goes on with the sum": (
        "(int32[2,3] x) => (int64[1,2] z) { a = Cast<to=7>(x)  y = ReduceSum(a, one)  z = Transpose(y) }",
        np.full((2, 3), 2**31 - 1, np.int32),
        np.full((1, 2), 3 * (2**31 - 1), np.int64),
    ),
    "unsigned": (
        "(uint64[2,3] x) => (uint64[2,3] y) { y = Mul(x, x) }",
        np.abs(SMALL).astype(np.uint64) << np.uint64(8),
        (np.abs(SMALL).astype(np.uint64) << np.uint64(8)) ** 2,
    ),
}
CONSTANTS = {"small": SMALL, "large": LARGE, "one": np.array([1], np.int64)}


def model(text: str) -> bytes:
    return parse("g " + text, {name: value for name, value in CONSTANTS.items() if name in text}).SerializeToString()


@pytest.mark.parametrize("name", CASES)
def test_results_are_exact(new_session, name):
    text, x, wanted = CASES[name]
    session = new_session(model(text))
    (got,) = session.run(None, {"x": x})
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    assert any(REASON in node.reason and node.provider == "wasm" for node in session.placement().nodes)


def test_what_fits_runs_on_the_gpu(new_session):
    session = new_session(model("(int64[2,3] x) => (int64[3,2] y) { y = Transpose(x) }"))
    assert [node.provider for node in session.placement().nodes] == ["webgpu"]
    np.testing.assert_array_equal(session.run(None, {"x": SMALL})[0], SMALL.T)


def test_a_feed_that_does_not_fit_is_refused(new_session):
    session = new_session(model("(int64[2,3] x) => (int64[3,2] y) { y = Transpose(x) }"))
    with pytest.raises(PyOrtError, match=r"1099511627776 does not fit the 32 bits.*session.wide_integers"):
        session.run(None, {"x": LARGE})
    np.testing.assert_array_equal(session.run(None, {"x": SMALL})[0], SMALL.T)


def test_a_feed_may_be_wide_where_the_session_expects_it(new_session):
    options = SessionOptions()
    options.add_session_config_entry("session.wide_integers", "1")
    session = new_session(model("(int64[2,3] x) => (int64[3,2] y) { y = Transpose(x) }"), options)
    np.testing.assert_array_equal(session.run(None, {"x": LARGE})[0], LARGE.T)


def test_without_fallback_the_error_names_node_operator_and_reason(new_session):
    options = SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    source = parse("g (float[2,3] x) => (int64[2,3] y) { a = Relu(x)  y = Cast<to=7>(a) }")
    source.graph.node[1].name = "the cast"
    with pytest.raises(NotImplemented, match=rf"the cast.*Cast.*{REASON}") as caught:
        new_session(source.SerializeToString(), options)
    assert (caught.value.node, caught.value.op_type, caught.value.provider) == ("the cast", "Cast", "webgpu")


def test_the_largest_of_nothing_that_comes_unforeseen_is_an_error(new_session):
    session = new_session(model("(int64[2,n] x) => (int64[2,1] y) { y = ReduceMax(x, one) }"))
    assert session.run(None, {"x": SMALL})[0].ravel().tolist() == [5, 1 << 20]
    with pytest.raises(PyOrtError, match=r"limit of int64.*32 bits"):
        session.run(None, {"x": SMALL[:, :0]})
