"""Server-sent events to open pages: progress, errors, changes."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from aiohttp import web

#: Seconds without an event after which a comment is sent, to detect closed pages.
_QUIET = 15.0
#: Number of events kept for a page that does not read; older ones are useless to it.
_MOST = 256


class Events:
    """The events; used in the server's loop."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._server = secrets.token_hex(8)

    def tell(self, kind: str, **about: Any) -> None:
        """Send an event to all pages; the kinds are in web/src/dev_server/overlay.ts."""
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait({"kind": kind, **about})

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Answer a page, as long as it is open."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_MOST)
        queue.put_nowait({"kind": "hello", "server": self._server})
        self._listeners.add(queue)
        try:
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), _QUIET)
                except TimeoutError:
                    await response.write(b":\n\n")
                    continue
                if event is None:
                    return response
                await response.write(f"data: {json.dumps(event)}\n\n".encode())
        except ConnectionResetError:
            return response
        finally:
            self._listeners.discard(queue)

    def close(self) -> None:
        """End all connections."""
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)
