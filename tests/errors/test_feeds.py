"""Feeds that do not fit: each error names the input, what was expected and what came; the session goes on."""

import numpy as np
import pytest
import small_models

from py_ort.exceptions import InvalidArgument, PyOrtError, RuntimeException

X, SCALE = np.zeros((2, 3), np.float32), np.ones(3, np.float32)

WRONG = {
    "missing": (
        {"x": X},
        ["'scale'", "(['scale']) are missing from input feed (['x'])", "tensor(float)"],
    ),
    "missing all": ({}, ["'x'", "'scale'"]),
    "extra": ({"x": X, "scale": SCALE, "z": X}, ["'z'", "has 'x'"]),
    "another name": ({"x": X, "scales": SCALE}, ["no input 'scales'", "did you mean 'scale'?", "it has 'x'"]),
    "dtype": ({"x": X.astype(np.float64), "scale": SCALE}, ["'x'", "tensor(float)", "tensor(double)"]),
    "dtype int": ({"x": X, "scale": np.ones(3, np.int64)}, ["'scale'", "tensor(int64)"]),
    "rank": ({"x": X[0], "scale": SCALE}, ["'x'", "rank 1", "[N, 3]"]),
    "dimension": ({"x": np.zeros((2, 4), np.float32), "scale": SCALE}, ["'x'", "[2, 4]", "[N, 3]"]),
    "no such type": ({"x": np.zeros((2, 3), "datetime64[s]"), "scale": SCALE}, ["'x'", "datetime64"]),
}


@pytest.mark.parametrize("feeds, words", WRONG.values(), ids=WRONG)
def test_wrong_feeds(new_session, feeds, words):
    session = new_session(small_models.add(), providers=["wasm"])
    with pytest.raises(InvalidArgument) as caught:
        session.run(None, feeds)
    for word in words:
        assert word in str(caught.value)
    np.testing.assert_array_equal(session.run(None, {"x": X, "scale": SCALE})[0], X + 1)


def test_wrong_output_name(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    with pytest.raises(InvalidArgument, match=r"'nope'.*'y'"):
        session.run(["nope"], {"x": X, "scale": SCALE})


def test_a_kernel_that_fails_names_its_node(new_session):
    session = new_session(small_models.gather(), providers=["wasm"])
    with pytest.raises((RuntimeException, InvalidArgument)) as caught:
        session.run(None, {"index": np.array([7])})
    assert caught.value.node == "pick" and caught.value.op_type == "Gather"
    assert session.run(None, {"index": np.array([2])})[0].tolist() == [2]


def test_a_closed_session(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    session.close()
    session.close()
    with pytest.raises(PyOrtError, match="closed"):
        session.run(None, {"x": X, "scale": SCALE})
