"""Outputs of any kind compared: arrays, lists of them, dicts."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same(found: Any, wanted: Any, *, rtol: float = 1e-3, atol: float = 1e-3) -> None:
    """Assert equal kinds, dtypes and shapes; floats approximately, all others exactly."""
    assert type(found) is type(wanted)
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_same(a, b, rtol=rtol, atol=atol)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        assert_same(list(found.values()), list(wanted.values()), rtol=rtol, atol=atol)
    elif isinstance(wanted, (np.ndarray, float)):
        found, wanted = np.asarray(found), np.asarray(wanted)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(found, wanted)
    else:
        assert found == wanted
