"""Strings: as feeds, as constants, and invalid text."""

import numpy as np
import pytest
from session_settings import settings
from text_form import parse

import py_ort
from py_ort.exceptions import InvalidArgument


def test_strings_of_every_kind_of_array(new_session):
    session = new_session(parse("g (string[2] x) => (string[2] y) { y = Identity(x) }").SerializeToString())
    for array in (np.array([b"must", b"same"], np.void), np.array([b"must", b"same"]), np.array(["must", "same"])):
        assert list(session.run(None, {"x": array})[0]) == ["must", "same"]
        with pytest.raises(InvalidArgument, match="strings have no address"):
            session.io_binding().bind_input("x", "cpu", 0, array.dtype, [2], array.ctypes.data)


def test_half_a_surrogate_pair_is_no_text(new_session):
    """Browsers' JSON may contain it; UTF-8 cannot."""
    session = new_session(parse("g (string[1] x) => (string[1] y) { y = Identity(x) }").SerializeToString())
    with pytest.raises(InvalidArgument, match="half a surrogate pair"):
        session.run(None, {"x": np.array(["a\ud800"], object)})


@pytest.mark.parametrize("level", [0, 99])
def test_strings_that_end_in_nul(new_session, level):
    text = """g (string[2] x) => (bool[2] y, string[3] z) {
        c = Constant <value = string[2] {"", ""}> ()
        y = Equal(x, w)  v = Gather(c, first)  z = Concat<axis=0>(x, v) }"""
    made = parse(text, {"first": np.array([0])})
    made.graph.initializer.add(name="w", data_type=8, dims=[2], string_data=[b"a\0", b"b"])
    made.graph.node[0].attribute[0].t.string_data[:] = [b"c\0", b"d"]
    options = settings(graph_optimization_level=py_ort.GraphOptimizationLevel(level))
    session = new_session(made, options, providers=["wasm"])
    y, z = session.run(None, {"x": np.array(["a\0", "b"], object)})
    assert y.tolist() == [True, True] and z.tolist() == ["a\0", "b", "c\0"]
