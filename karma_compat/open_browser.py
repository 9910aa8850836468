"""For Karma's launcher: opens a URL in a browser of py_ort's, until stdin ends.

python -m karma_compat.open_browser BROWSER WEBGPU URL
"""

from __future__ import annotations

import asyncio
import sys

from py_ort import BrowserOptions
from py_ort.browser.launchers import launcher_for, with_playwright
from py_ort.exceptions import PyOrtError


async def open_browser(options: BrowserOptions, url: str) -> int:
    """Return the exit status: 1 if the browser ended by itself."""
    lost = asyncio.Event()

    def on_lost(error: PyOrtError) -> None:
        print(f"py_ort: {error}", file=sys.stderr)
        lost.set()

    launcher = launcher_for(options)(options, on_lost)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    waiting = [asyncio.ensure_future(lost.wait()), asyncio.ensure_future(ended)]
    try:
        await launcher.start(url)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    except PyOrtError as e:
        on_lost(e)
    finally:
        await launcher.close()
        await with_playwright.stop_driver()
    return int(lost.is_set())


if __name__ == "__main__":
    browser, webgpu, url = sys.argv[1:]
    sys.exit(asyncio.run(open_browser(BrowserOptions(browser=browser, webgpu=webgpu), url)))
