"""The documentation as a site: read from a folder, as `make docs` writes it, without a server and a network."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError, sync_playwright

from py_ort.browser import find
from py_ort.browser.browser_options import BrowserOptions

ROOT = Path(__file__).parents[2]
MKDOCS = ROOT / "build/docs-venv/bin/mkdocs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not MKDOCS.exists():
        pytest.skip("mkdocs is not installed (make docs)")
    folder = tmp_path_factory.mktemp("docs")
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([MKDOCS, "build", "-q", "-d", folder], cwd=ROOT, env=env, check=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        flags = BrowserOptions().command_line()
        yield playwright.chromium.launch(executable_path=find.binary(), args=flags, chromium_sandbox=True)


@pytest.mark.parametrize("page", ["index.html", "user_kernels.html", "web.html", "fleets.html"])
def test_code_has_room(site, browser, page):
    """No block of code is cut in a window of 1,280 pixels."""
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto((site / page).as_uri())
    blocks = "[...document.querySelectorAll('.md-content pre code')]"
    assert tab.evaluate(f"{blocks}.length") > 3
    assert (
        tab.evaluate(f"{blocks}.filter(code => code.scrollWidth > code.clientWidth).map(code => code.innerText)") == []
    )


@pytest.mark.parametrize("page", ["index.html", "how_it_works.html", "reference/python.html"])
def test_search_from_a_folder(site, browser, page):
    tab = browser.new_page()
    fetched = []
    tab.on("request", lambda request: fetched.append(request.url))
    tab.goto((site / page).as_uri())
    tab.click(".md-search__input")
    found = tab.locator(".md-search-result__link")
    for _ in range(20):  # text typed before the index is loaded is not searched
        tab.fill(".md-search__input", "")
        tab.type(".md-search__input", "sandbox")
        with contextlib.suppress(TimeoutError):
            found.first.wait_for(timeout=500)
            break
    assert "security.html" in str(found.first.get_attribute("href"))
    assert all(url.startswith("file:") for url in fetched), fetched
