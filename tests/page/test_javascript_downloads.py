"""Downloads of py_ort.mjs that end: aborted, refused by the cache, or broken off by the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from javascript_site import lay_out
from static_site import CORS, StaticSite, browsing

pytestmark = pytest.mark.browser
#: Connections of Chromium to one server.
CONNECTIONS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("downloads")
    lay_out(made)
    return made


@pytest.fixture
def sites(folder) -> Iterator[tuple[StaticSite, StaticSite]]:
    """Sites for the page and for its models."""
    page, models = StaticSite(folder), StaticSite(folder, CORS)
    yield page, models
    page.close()
    models.close()


def _until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert true()


@pytest.mark.parametrize("where", ["", "&page"], ids=["worker", "page"])
@pytest.mark.parametrize("cache", ["", "&cache"], ids=["fetched", "cached"])
def test_an_aborted_download_closes_its_connection(sites, where, cache):
    """None is asked for again, and the next download has a connection."""
    page, models = sites
    models.stalled["/add.pyort"] = 100
    page.held["/now"] = threading.Event()
    url = f"{page.origin}/javascript_downloads.html?case=aborted&models={models.origin}{where}{cache}"
    with browsing("chromium", url):
        _until(lambda: len(models.asked) == CONNECTIONS)
        page.held["/now"].set()
        closed = [models.closed.get(timeout=45) for _ in range(CONNECTIONS)]
        told = page.told(45)
    assert told == {"reasons": ["mine"] * 8, "y": [11, 22, 33], "kept": 0}, told
    assert set(models.asked) >= {*closed, "/wasm.pyort"}
    assert len(set(models.asked)) == len(models.asked)


@pytest.mark.parametrize("where", ["", "&page"], ids=["worker", "page"])
def test_corrected_settings_of_the_runtime_have_an_effect(sites, where):
    """A failed start is forgotten, with its settings."""
    page, models = sites
    page.held["/held/core.wasm"] = threading.Event()
    url = f"{page.origin}/javascript_downloads.html?case=corrected&models={models.origin}{where}"
    try:
        with browsing("chromium", url):
            *errors, y = page.told(60)
    finally:
        page.held["/held/core.wasm"].set()
    for error, words in zip(errors, ("/nowhere/core.wasm", "and memory", "within 1 ms"), strict=True):
        assert words in error
    assert y == [11, 22, 33]
