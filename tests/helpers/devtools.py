"""A Chromium that py_ort did not start, with its debugging port open."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websockets.sync.client

from py_ort.browser import find
from py_ort.browser.browser_options import BrowserOptions


@contextmanager
def chromium_with_devtools(profile: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Start one; yield the websocket of its DevTools, and its process, which is ended afterwards."""
    flags = [*BrowserOptions(webgpu="software").command_line(), "--headless=new", "--remote-debugging-port=0"]
    command = [str(find.binary()), *flags, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "DevTools listening" in line)
            yield line.split()[-1], process
        finally:
            process.terminate()


def in_workers(devtools: str, script: str) -> int:
    """Evaluate a script in the workers of a browser's pages; return their number."""
    with websockets.sync.client.connect(devtools, max_size=None) as connection:
        numbers = itertools.count(1)
        workers: list[str] = []

        def ask(method: str, session: str = "", **params: Any) -> Any:
            number = next(numbers)
            where = {"sessionId": session} if session else {}
            connection.send(json.dumps({"id": number, "method": method, "params": params, **where}))
            while (message := json.loads(connection.recv(timeout=60))).get("id") != number:
                told = message.get("params", {})
                if message["method"] == "Target.attachedToTarget" and told["targetInfo"]["type"] == "worker":
                    workers.append(told["sessionId"])
            assert "error" not in message and "exceptionDetails" not in message["result"], message
            return message["result"]

        pages = [target for target in ask("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        for page in pages:
            session = ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
            attach = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
            ask("Target.setAutoAttach", session, **attach)
        for worker in workers:
            ask("Runtime.evaluate", worker, expression=script)
        return len(workers)
