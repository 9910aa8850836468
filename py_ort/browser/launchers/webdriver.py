"""A browser that a WebDriver server starts: `webdriver:URL#BROWSER`, mostly of Selenium Grid's hub.

The standard needs few, simple requests, and the page reports by its own websocket, so aiohttp is enough.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from yarl import URL

from py_ort.browser.launchers import firefox
from py_ort.browser.launchers.launcher import Launcher
from py_ort.exceptions import BrowserCrashed, BrowserNotFound, InvalidArgument

if TYPE_CHECKING:
    from py_ort.browser.browser_options import BrowserOptions

SCHEME = "webdriver:"
#: Names of browsers in the standard.
_NAMES = {"": "chrome", "chromium": "chrome", "edge": "MicrosoftEdge", "webkit": "MiniBrowser"}
#: Seconds between requests that keep a session alive: servers end sessions without requests.
KEEPING = 20.0


class WebDriverLauncher(Launcher):
    """Starts a browser by a WebDriver server, and opens the page. The URL's parameter `capabilities` is JSON."""

    name: ClassVar[str] = "webdriver"
    _session: URL | None = None
    _keeping: asyncio.Task[None] | None = None

    async def start(self, url: str) -> None:
        server = URL(self.options.browser.removeprefix(SCHEME))
        asked = {"capabilities": {"alwaysMatch": capabilities(self.options, server)}}
        server = server.with_query(None).with_fragment(None)
        try:
            # A server without a free browser delays its answer.
            told = await _ask("POST", server / "session", asked)
        except OSError as e:  # also aiohttp's errors
            raise BrowserNotFound(f"no WebDriver server answers at {self.options.name}: {e}") from e
        except _Refused as e:
            raise BrowserNotFound(f"{self.options.name} has no such browser: {e}") from e
        self._session = server / "session" / str(told["sessionId"])
        found = told["capabilities"]
        self.description = f"{found.get('browserName')} {found.get('browserVersion', '')}".strip()
        self.system = str(found.get("platformName", ""))
        try:
            await _ask("POST", self._session / "url", {"url": url})
        except (OSError, _Refused) as e:
            raise BrowserCrashed(f"{self.description} did not open the page: {e}") from e
        self._keeping = asyncio.ensure_future(self._keep(self._session))

    async def _keep(self, session: URL) -> None:
        """Send a request at intervals. Errors of the connection are ignored: the page's websocket reports a loss."""
        while True:
            await asyncio.sleep(KEEPING)
            try:
                await _ask("GET", session / "url")
            except _Refused as e:
                self.on_lost(BrowserCrashed(f"the session of {self.description} ended: {e}"))
                return
            except OSError:
                continue

    async def close(self) -> None:
        if self._keeping:
            self._keeping.cancel()
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(OSError, _Refused, TimeoutError):
                async with asyncio.timeout(10):
                    await _ask("DELETE", session)


def capabilities(options: BrowserOptions, server: URL) -> dict[str, Any]:
    """Return the capabilities for the request of a browser.

    Raises:
        InvalidArgument: The URL's parameter `capabilities` is no JSON object.
    """
    name = _NAMES.get(server.fragment, server.fragment)
    asked: dict[str, Any] = {"browserName": name, "pageLoadStrategy": "none"}
    if name in _CHROMIUM:
        headless = ["--headless=new"] if options.headless else []
        asked[_CHROMIUM[name]] = {"args": [*headless, *options.flags_elsewhere()]}
    elif name == "firefox":
        headless = ["-headless"] if options.headless else []
        asked["moz:firefoxOptions"] = {
            "args": [*headless, *options.flags],
            "prefs": {**firefox.UNTHROTTLED, **firefox.devices(options)},
        }
    try:
        more = json.loads(server.query.get("capabilities", "{}"))
    except ValueError as e:
        raise InvalidArgument(f"{options.name}: the parameter capabilities is no JSON: {e}") from e
    if not isinstance(more, dict):
        raise InvalidArgument(f"{options.name}: the parameter capabilities is no object of JSON")
    return _merged(asked, more)


#: Headers of requests; Grid refuses JSON without its charset.
_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
_CHROMIUM = {"chrome": "goog:chromeOptions", "MicrosoftEdge": "ms:edgeOptions"}


def _merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return both mappings merged: objects recursively, lists joined."""
    both = {**ours, **theirs}
    for name in ours.keys() & theirs.keys():
        mine, other = ours[name], theirs[name]
        if isinstance(mine, dict) and isinstance(other, dict):
            both[name] = _merged(mine, other)
        elif isinstance(mine, list) and isinstance(other, list):
            both[name] = [*mine, *other]
    return both


class _Refused(Exception):
    """The server answered with an error."""


async def _ask(method: str, url: URL, body: Any = None) -> Any:
    """Send a request to a WebDriver server; return its answer.

    Raises:
        OSError: The server cannot be reached.
        _Refused: The server answered with this error.
    """
    from aiohttp import ClientError, ClientSession, ClientTimeout

    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=None, sock_connect=10)) as client,
            client.request(method, url, json=body, headers=_HEADERS) as answer,
        ):
            told = await answer.json(content_type=None)
    except (ClientError, ValueError) as e:
        raise OSError(str(e) or type(e).__name__) from e
    value = told.get("value") if isinstance(told, dict) else None
    if answer.status >= 400:
        words = value if isinstance(value, dict) else {}
        raise _Refused(f"{words.get('error', answer.status)}: {str(words.get('message', '')).partition(chr(10))[0]}")
    return value
