"""Fixtures of the tests in pages: providers, served folders, user kernels. A plugin of tests/conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from static_site import StaticSite

_PAGE = Path(__file__).resolve().parents[1] / "page"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests in pages."""
    if item.path.is_relative_to(_PAGE):
        item.add_marker("browser")


@pytest.fixture(params=["webgpu", "wasm"])
def provider(request: pytest.FixtureRequest) -> str:
    """Run the test once on each of these providers; parameters of the test itself may name others."""
    return str(request.param)


@pytest.fixture
def serve() -> Iterator[Callable[..., StaticSite]]:
    """Serve folders until the test ends."""
    sites: list[StaticSite] = []

    def start(folder: Path, headers: Mapping[str, str] | None = None) -> StaticSite:
        sites.append(StaticSite(folder, headers))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.fixture
def kernels_as_before() -> Iterator[None]:
    """Unregister the user kernels that the test registers."""
    from py_ort import unregister_kernel
    from py_ort.user_kernels import registered_kernels

    before = set(registered_kernels())
    yield
    for name in set(registered_kernels()) - before:
        unregister_kernel(name)
