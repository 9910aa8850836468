"""Pages that py_ort writes, opened as a user does: from a file, in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from py_ort.browser import find
from py_ort.browser.browser_options import NO_ADDRESS_BAR, NO_SANDBOX

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for the tests of a module: while Playwright runs in a thread, asyncio cannot."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(find.binary()), args=[NO_SANDBOX, NO_ADDRESS_BAR])
        yield started
        started.close()


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Open HTML; afterwards it must have asked for nothing, and have had no error."""
    opened, wrong = [], []

    def show(html: str, *, dark: bool = False, width: int = 1200, height: int = 900) -> Any:
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(html, encoding="utf-8")
        page = chromium.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", has_touch=width < 600
        )
        opened.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: request.url == file.as_uri() or wrong.append(request.url))
        page.goto(file.as_uri())
        return page

    yield show
    titles = [page.title() for page in opened]
    for page in opened:
        page.close()
    assert not wrong and "taken" not in titles
