"""A page's work while its model is on its way."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models
from static_site import StaticSite

import py_ort
from py_ort.browser.browser_options import NO_SANDBOX
from py_ort.exporting.runtime_files import copy_runtime

pytestmark = pytest.mark.browser
MODEL = "/model.pyort"
OPTIMIZING = "wasm.TopTierCompilation"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[StaticSite]:
    """Holds the model back."""
    copy_runtime(tmp_path)
    py_ort.export(small_models.two_products(), tmp_path / MODEL[1:], providers=["wasm"])
    (tmp_path / "index.html").write_text("<!doctype html><title>Waiting</title>")
    site = StaticSite(tmp_path)
    site.held[MODEL] = threading.Event()
    yield site
    site.held[MODEL].set()
    site.close()


def traced(browser: Any, site: StaticSite, seconds: float) -> set[str]:
    """The names of V8's work on WebAssembly in this time, in a page that waits for its model."""
    page = browser.new_context().new_page()
    page.goto(f"{site.origin}/index.html")
    browser.start_tracing(page=page, categories=["v8.wasm", "disabled-by-default-v8.wasm"])
    page.evaluate("""void import('./py_ort.mjs').then(({ InferenceSession }) =>
        InferenceSession.create('model.pyort', { executionProviders: ['wasm'] }))""")
    page.wait_for_timeout(seconds * 1000)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    return {event["name"] for event in events}


def test_the_product_is_optimized_while_the_model_is_on_its_way(site: StaticSite) -> None:
    """Most models spend their time in products: their first runs do not use the slow form."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=[NO_SANDBOX])
        # More time on a busy machine.
        seen = next((seen for time in (3, 10, 30) if OPTIMIZING in (seen := traced(browser, site, time))), set())
        browser.close()
    assert {MODEL, "/core.wasm"} <= set(site.asked)
    assert OPTIMIZING in seen
