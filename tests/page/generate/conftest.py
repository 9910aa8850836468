"""What tests of `generate` share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["wasm", "webgpu"])
def provider(request: pytest.FixtureRequest) -> str:
    """Each provider in turn."""
    return request.param
