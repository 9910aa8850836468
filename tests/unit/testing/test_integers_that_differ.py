"""Integers that differ: by how much at most, and how many steps of quantization pass."""

from __future__ import annotations

import numpy as np
import pytest

from py_ort.exceptions import InvalidArgument
from py_ort.testing.case import Tolerance, difference
from py_ort.testing.closeness import closeness
from py_ort.testing.sources.table import cases


def test_one_step_is_named():
    text, _ = closeness(np.array([135, 7], np.uint8), np.array([136, 7], np.uint8))
    assert text == "1 of 2 elements differ, first at [0]: got 135, wanted 136; one step of quantization at most"


@pytest.mark.parametrize(
    ("dtype", "got", "wanted", "off"),
    [
        ("int8", 127, -128, 255),
        ("int64", -(2**63), 2**63 - 1, 2**64 - 1),
        ("uint64", 2**64 - 1, 0, 2**64 - 1),
        ("int32", 5, 4, 1),
        ("int32", 4, 6, 2),
    ],
)
def test_the_largest_difference(dtype, got, wanted, off):
    pair = np.array([got, 0], dtype), np.array([wanted, 0], dtype)
    assert difference(*pair, Tolerance()).endswith(f"; {off} at most")
    assert difference(*pair, Tolerance(steps=off)) == ""
    assert difference(pair[0][0], pair[1][0], Tolerance()).endswith(f"; {off} at most")


def test_steps_are_for_integers_only():
    assert closeness(np.array([7], np.uint8), np.array([9], np.uint8), steps=2)[0] == ""
    assert closeness(np.array([7], np.uint8), np.array([9], np.uint8), steps=1)[0]
    assert closeness(np.array([True]), np.array([False]), steps=5)[0]
    assert closeness(np.array([1.0], np.float32), np.array([2.0], np.float32), steps=5)[0]


def test_a_table_has_steps(tmp_path):
    file = tmp_path / "table.toml"
    file.write_text('[[case]]\nmodel = "m.onnx"\nsteps = 1\nrtol = 0.5\nskip = "none"\n')
    (case,) = cases(file)
    assert case.tolerance[""] == Tolerance(0.5, 1e-3, steps=1)
    file.write_text('[[case]]\nmodel = "m.onnx"\nsteps = 0.5\n')
    with pytest.raises(InvalidArgument, match=r"steps = 0\.5 is of another type"):
        cases(file)
