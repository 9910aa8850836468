"""`py-ort export --provider webnn`: the check and the page load the code of WebNN late."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models
from click.testing import CliRunner

from py_ort import BrowserOptions
from py_ort.cli.export import export

CHROMIUM = Path(__file__).parents[2] / "build/webnn/chromium"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium with WebNN is there (make webnn)"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser of `open_url`: one with WebNN."""
    from playwright.sync_api import sync_playwright

    flags = BrowserOptions(browser=str(CHROMIUM), sandbox=False).command_line()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield started
        started.close()


def exported(folder: Path, *options: str) -> None:
    (folder / "add.onnx").write_bytes(small_models.add())
    done = CliRunner().invoke(export, [str(folder / "add.onnx"), "-o", str(folder), "--provider", "webnn", *options])
    assert done.exit_code == 0, done.output


def test_the_check_runs_on_webnn(tmp_path: Path) -> None:
    exported(tmp_path, "--check", "--browser", str(CHROMIUM))
    rows = json.loads((tmp_path / "add.check.json").read_text())["rows"]
    assert [(row["provider"], row["outcome"]) for row in rows] == [("webnn", "same")]


def test_the_page_runs_on_webnn(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    exported(tmp_path, "--page")
    page = open_url(plainly_served(tmp_path))
    page.locator("body[data-state=ready], body[data-state=failed]").wait_for(timeout=60_000)
    assert page.locator("#facts").get_attribute("data-provider") == "webnn", page.locator("#status").inner_text()
    page.get_by_role("button", name="Run").click()
    page.locator("body[data-state=done], body[data-state=failed]").wait_for(timeout=60_000)
    assert page.locator("body").get_attribute("data-state") == "done", page.locator("#status").inner_text()
