"""Operands that do not fit are refused in the run.

A GPU cannot refuse numbers out of range: they only access elements of their own tensors. Indices that are fed from the
CPU are refused before the run.
"""

from typing import Any

import numpy as np
import pytest
from text_form import parse

from py_ort.exceptions import PyOrtError, RuntimeException

_MIXED = """<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]>
g (float[4,3] x, int64[n] fed, int64[1,3] places, float[n,3] new, float[1,2,3,4] heads, float[p,2] cos,
    int64[3] lengths)
    => (float[n,3] gathered, float[4,3] scattered, float[4,3] elements, float[1,2,3,4] rotated, float[4,3] turned)
{
    rows = Neg (fed)
    gathered = Gather (x, rows)
    at = Unsqueeze (rows, one)
    scattered = ScatterND (x, at, new)
    spread = Expand (at, size)
    elements = ScatterElements (x, spread, new)
    rotated = com.microsoft.RotaryEmbedding (heads, places, cos, cos)
    turned = ReverseSequence <time_axis = 0, batch_axis = 1> (x, lengths)
}"""


def test_numbers_out_of_range_on_the_gpu(new_session):
    """They become the nearest valid ones; nothing is scattered by them."""
    model = parse(_MIXED, {"one": np.array([1]), "size": np.array([1, 3])})
    session = new_session(model, providers=["webgpu"])
    shapes = {"x": (4, 3), "heads": (1, 2, 3, 4), "cos": (5, 2), "new": (4, 3)}
    given = {name: np.random.default_rng(3).standard_normal(shape).astype("f") for name, shape in shapes.items()}

    def run(rows: list[int], places: list[int], lengths: list[int], new: Any) -> list[Any]:
        numbers = {"fed": -np.array(rows), "places": np.array([places]), "lengths": np.array(lengths)}
        return session.run(None, given | numbers | {"new": new})

    gathered, *found = run([9, 1, -9, 3], [7, 1, 5], [400, 2, 5], given["new"])
    np.testing.assert_array_equal(gathered, given["x"][[3, 1, 0, 3]])
    _, *wanted = run([1, 3], [4, 1, 4], [4, 2, 4], given["new"][[1, 3]])
    for value, right in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(value, right)


def test_indices_of_feeds_are_refused(new_session, provider):
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[5,2] x, int32[n] ids, bool c, int64[m] others) => (float[n,k,2] y, float[m,2] z)
    {
        wide = Cast <to = 7> (ids)
        column = Unsqueeze (wide, one)
        y = Gather (x, column)
        z = If (c) <then_branch = then () => (float[m,2] a) { a = Gather (x, others) },
                    else_branch = other () => (float[m,2] b) { b = Gather (x, zeros) }>
    }"""
    model = parse(text, {"one": np.array([1]), "zeros": np.array([0])}).SerializeToString()
    session = new_session(model, providers=[provider])
    x = np.arange(10, dtype=np.float32).reshape(5, 2)

    def run(*ids):
        feeds = {"x": x, "ids": np.array(ids, np.int32), "c": np.array(False), "others": np.array([9])}
        return session.run(["y"], feeds)[0]

    np.testing.assert_array_equal(run(4, -5), x[[[4], [0]]])
    assert run().shape == (0, 1, 2)
    for ids, words in (((1, 5), r"index 5 \(element 1"), ((-6, 5), "index"), ((0, 0, -6), r"index -6 \(element 2")):
        with pytest.raises(RuntimeException, match=f"{words}.* is out of range for an axis of 5"):
            run(*ids)


def test_diagonals_do_not_broadcast(new_session, provider):
    model = parse('g (float[n,m] x) => (float[d] y) { y = Einsum<equation="ii->i">(x) }')
    session = new_session(model, providers=[provider])
    np.testing.assert_array_equal(session.run(None, {"x": np.diag(np.float32([1, 2, 3]))})[0], [1, 2, 3])
    for shape in ((4, 1), (1, 4)):
        with pytest.raises(PyOrtError, match="Einsum"):
            session.run(None, {"x": np.ones(shape, np.float32)})
