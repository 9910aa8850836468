"""Access control: pages of this server, by its own name; from the network only with the token of the URL."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlencode, urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_COOKIE = "py_ort_serve"
_TOKEN = "token"


class Access:
    """Decides about requests, and adds access headers to answers.

    Args:
        token: Secret of permitted clients; "": the server is on loopback, and its name is enough.
        origins: Other origins whose pages may fetch.
        names: Names of the server.
        methods: Accepted methods.
        command: The command of `py-ort` that runs it, for messages.
    """

    def __init__(
        self,
        token: str,
        origins: Sequence[str],
        *,
        names: Sequence[str] = LOOPBACK,
        methods: str = "GET, HEAD",
        command: str = "serve",
    ) -> None:
        self._token, self._origins = token, frozenset(origins)
        self._names, self._methods, self._command = frozenset(names), methods, command

    def middleware(self) -> Middleware:
        """Return the middleware to run before all routes."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if refusal := self._refusal(request):
                return refusal
            if request.method == "OPTIONS":
                return web.Response(status=204)
            return await handler(request)

        return check

    async def with_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers to an answer."""
        origin = request.headers.get("Origin")
        response.headers.update(
            {
                "Cross-Origin-Opener-Policy": "same-origin",
                # Pages may embed public files of other servers, fetched without cookies.
                "Cross-Origin-Embedder-Policy": "credentialless",
                "Cross-Origin-Resource-Policy": "cross-origin" if self._origins else "same-origin",
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
            }
        )
        if self._origins:
            response.headers["Vary"] = "Origin, Accept"
        if origin in self._origins:
            sent = "Range, Content-Type" if "POST" in self._methods else "Range"
            response.headers.update(
                {
                    "Access-Control-Allow-Origin": origin,
                    "Access-Control-Allow-Methods": self._methods,
                    "Access-Control-Allow-Headers": sent,
                    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Length, Content-Range, ETag",
                }
            )

    def _refusal(self, request: web.Request) -> web.StreamResponse | None:
        """Return the answer of a refusal; None if the request is permitted."""
        if self._token:
            if self._knows(request.query.get(_TOKEN, "")):
                return self._welcome(request)
            if not self._knows(request.cookies.get(_COOKIE, "")):
                return web.Response(status=403, text="this server asks for the token that its URL was printed with")
        elif _host(request) not in self._names:  # another name that was made to point here
            names = " or ".join(sorted(self._names))
            return web.Response(status=403, text=f"this server is called {names} only")
        # Pages of other origins may link here, but fetch only if they may read the answers.
        site, mode = request.headers.get("Sec-Fetch-Site", "none"), request.headers.get("Sec-Fetch-Mode")
        origin = request.headers.get("Origin")
        foreign = site in ("cross-site", "same-site") and mode != "navigate"
        if request.method == "POST" and origin is not None:  # also for browsers that do not send their site
            foreign = foreign or origin.partition("//")[2] != request.headers.get("Host")
        if foreign and origin not in self._origins:
            text = f"pages of other origins need: py-ort {self._command} --cors ORIGIN"
            return web.Response(status=403, text=text)
        return None

    def _knows(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _welcome(self, request: web.Request) -> web.StreamResponse | None:
        """Move the token from the address, and so from its links, into a cookie."""
        if request.method != "GET" or request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            return None
        rest = urlencode([(key, value) for key, value in request.query.items() if key != _TOKEN])
        response = web.Response(
            status=303, headers={"Location": request.rel_url.raw_path + (f"?{rest}" if rest else "")}
        )
        response.set_cookie(_COOKIE, self._token, httponly=True, samesite="Strict", path="/")
        return response


def _host(request: web.Request) -> str:
    try:
        return urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
    except ValueError:
        return ""
