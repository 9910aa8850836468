"""Sessions in a page, context or browser of Playwright's pytest plugin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from py_ort.browser import find
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.caller_pages import given
from py_ort.exceptions import BrowserError, BrowserNotFound

#: Adds a frame with our page to the one that is open; returns the directive of its policy that forbids this, or "".
_ADD_FRAME = """url => new Promise(resolve => {
  addEventListener('securitypolicyviolation', event => {
    if (event.blockedURI && url.startsWith(event.blockedURI)) resolve(event.effectiveDirective);
  });
  const frame = document.createElement('iframe');
  frame.src = url;
  frame.title = 'py_ort';
  frame.style.display = 'none';
  frame.onload = () => setTimeout(() => resolve(''), 100);
  document.body.append(frame);
})"""

#: Letters of a page's URL in a message.
_SHORT = 200

#: Options of sessions, and the document that they live in: Playwright's page or frame.
Place = tuple[BrowserOptions, Any]


@contextmanager
def _in_page(page: Any) -> Iterator[Place]:
    ours: list[str] = []

    def add_frame(url: str) -> None:
        ours.append(url)
        if forbidden := page.evaluate(_ADD_FRAME, url):
            raise BrowserError(
                f"{page.url} forbids frames of this machine by its {forbidden}: allow http://127.0.0.1:* in tests, or "
                "have sessions in a tab of their own, with within='context'"
            )
        if all(frame.url != url for frame in page.frames):
            raise BrowserError(
                f"no frame of this machine opens in {page.url[:_SHORT]}: browsers keep sites of other machines, and "
                'pages without a site, from it. With TLS, context.grant_permissions(["local-network-access"]) '
                "lets Chromium open one; or have sessions in a tab of their own, with within='context'"
            )

    with given(add_frame) as options:
        yield options, next(frame for frame in page.frames if frame.url in ours)


@contextmanager
def _in_context(context: Any) -> Iterator[Place]:
    tab = context.new_page()
    try:
        with given(lambda url: tab.goto(url, wait_until="commit")) as options:
            yield options, tab
    finally:
        tab.close()


@contextmanager
def _in_browser(browser: Any) -> Iterator[Place]:
    context = browser.new_context()
    try:
        with _in_context(context) as place:
            yield place
    finally:
        context.close()


_OPEN = {"page": _in_page, "context": _in_context, "browser": _in_browser}


class Within:
    """Sessions in something of Playwright's, where our page is opened when the first one is made.

    Args:
        where: One of `py_ort.testing.marks.WITHIN`.
        fixture: The `page`, `context` or `browser` of Playwright's synchronous API.
        stack: Closes what this object opens.
    """

    def __init__(self, where: str, fixture: Any, stack: ExitStack) -> None:
        self._where, self._fixture, self._stack = where, fixture, stack
        self._place: Place | None = None
        if where == "page":
            fixture.on("framenavigated", self._navigated)

    def options(self) -> BrowserOptions:
        """Return the options of the next session.

        Raises:
            BrowserError: The page's own policies forbid our frame, or it did not answer.
        """
        if self._place is None:
            self._place = self._stack.enter_context(_OPEN[self._where](self._fixture))
        return self._place[0]

    def tell(self, text: str) -> None:
        """Write a line into the console of our page, so that Playwright's trace has it."""
        if self._place is not None:
            self._place[1].evaluate("text => console.info(text)", f"py_ort: {text}")

    def _navigated(self, frame: Any) -> None:
        if frame == self._fixture.main_frame:
            self._place = None  # our frame is gone with the old document


def launch_args(browser_type: Any, webgpu: str | None, channel: str | None = None) -> dict[str, Any]:
    """Return arguments for Playwright's `launch` with which Chromium has WebGPU, as it has for other sessions.

    Args:
        browser_type: Playwright's.
        webgpu: See `BrowserOptions`; None: the default.
        channel: Which Chromium Playwright was asked for, e.g. "chrome" or "msedge", if any: no other stands in for it.
    """
    family = {"chromium": "chromium", "firefox": "firefox"}.get(browser_type.name, "webkit")
    options = BrowserOptions.of(family, webgpu=webgpu)
    args: dict[str, Any] = {}
    if family == "chromium":
        args["args"] = options.flags_for_any_page()
        args["chromium_sandbox"] = True  # the flags decide
        try:
            if channel in (None, "chromium") and not Path(browser_type.executable_path).exists():
                args["executable_path"] = str(find.binary())
        except BrowserNotFound:
            pass  # Playwright says how to get one
    return args
