"""Fixtures of the tests of `generate`."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["wasm", "webgpu"])
def provider(request: pytest.FixtureRequest) -> str:
    """Each provider in turn."""
    return request.param
