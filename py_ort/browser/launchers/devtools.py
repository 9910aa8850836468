"""A page opened by the browser's debugging protocol, which Playwright does not know.

Playwright receives every websocket frame of its own pages, and copies each frame twice. With 64 MiB in a run, that
costs more than the run. A page in the default context is not one of Playwright's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

#: Receives (kind, text); kinds are "log", "info", "warning" and "error" of the console, "crash" and "close".
Tell = Callable[[str, str], None]
_KINDS = {"assert": "error"}


async def open_page(browser: Any, url: str, tell: Tell) -> Any:
    """Open a URL in the default context of one of Playwright's browsers; return Playwright's session with that browser.

    Args:
        browser: Playwright's `Browser`, a Chromium that it launched.
        url: The URL.
        tell: Called with events of the page, until the browser ends.
    """
    session = await browser.new_browser_cdp_session()
    # Opened empty first, so that no message of the page is missed.
    target = (await session.send("Target.createTarget", {"url": "about:blank"}))["targetId"]
    attached = (await session.send("Target.attachToTarget", {"targetId": target}))["sessionId"]

    def of_this(event: Any) -> bool:
        return bool(event.get("targetId") == target)

    session.on("Target.targetCrashed", lambda event: tell("crash", "the page crashed") if of_this(event) else None)
    session.on("Target.targetDestroyed", lambda event: tell("close", "the page was closed") if of_this(event) else None)
    session.on("Target.receivedMessageFromTarget", lambda event: _read(json.loads(event["message"]), tell))
    await session.send("Target.setDiscoverTargets", {"discover": True})
    for number, (method, parameters) in enumerate((("Runtime.enable", {}), ("Page.navigate", {"url": url})), 1):
        message = json.dumps({"id": number, "method": method, "params": parameters})
        await session.send("Target.sendMessageToTarget", {"sessionId": attached, "message": message})
    return session


def _read(message: Any, tell: Tell) -> None:
    parameters = message.get("params", {})
    if message.get("method") == "Runtime.consoleAPICalled":
        words = (str(arg.get("value", arg.get("description", ""))) for arg in parameters["args"])
        tell(_KINDS.get(parameters["type"], parameters["type"]), " ".join(words))
    elif message.get("method") == "Runtime.exceptionThrown":
        details = parameters["exceptionDetails"]
        tell("error", details.get("exception", {}).get("description") or details.get("text", ""))
