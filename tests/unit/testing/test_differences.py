"""Differences between a session's outputs and the reference's, in words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from py_ort.testing.reference import differences


def test_the_largest_difference_is_one_of_numbers() -> None:
    """NaN, and strings, have no distance from what is wanted."""
    wanted = {"x": np.full(3, 2, np.float32), "y": np.ones(2, np.float32), "s": np.array(["a", "b"], object)}
    got = [np.full(3, 3, np.float32), np.array([1, np.nan], np.float32), np.array(["a", "c"], object)]
    number, nan, text = differences(SimpleNamespace(run=lambda names, feeds: got), {}, wanted)
    assert number.endswith("(worst: 0.5 of the largest)") and "worst" not in nan + text
