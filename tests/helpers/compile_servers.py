"""Compile servers that run, sites with models for them, and such models."""

from __future__ import annotations

import hashlib
import http.client
import http.server
import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import small_models
from onnx import helper, numpy_helper
from processes import command_lines

Answer = tuple[int, dict[str, str], bytes]


def numbered(number: int) -> bytes:
    """A model like no other."""
    weight = numpy_helper.from_array(np.full(3, number, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return small_models.model([node], [small_models.floats("x", [3])], [small_models.floats("y", [3])], [weight])


def two_thirds_of_a_megabyte(number: int) -> bytes:
    """A model like no other, of which a store of 1 MiB holds one."""
    weight = numpy_helper.from_array(np.full((400, 400), number, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    values = [small_models.floats(name, [400, 400]) for name in ("x", "y")]
    return small_models.model([node], values[:1], values[1:], [weight])


def sha256(model: bytes) -> str:
    return hashlib.sha256(model).hexdigest()


class Server:
    """A running `py-ort compile-server`."""

    def __init__(self, store: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "py_ort.cli", "compile-server", str(store), "--port", "0"]
        self._log = (store.parent / f"{store.name}.log").open("w+")
        self.process = subprocess.Popen(
            [*command, "--provider", "wasm", *arguments], stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), self.log()
        self.port = int(line.strip(" /\n").rpartition(":")[2])

    def ask(self, path: str, body: bytes | None = None, method: str = "", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, given)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def compiled(self, model: bytes) -> str:
        """Have a model compiled; return the path of its file."""
        status, headers, body = self.ask("/export", model)
        assert status == 303, body
        return headers["location"]

    def events(self, path: str, body: bytes | None = None) -> list[tuple[str, dict[str, Any]]]:
        status, headers, text = self.ask(path, body, Accept="text/event-stream")
        assert status == 200 and headers["content-type"] == "text/event-stream"
        found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text.decode())
        return [(kind, json.loads(data)) for kind, data in found]

    def metrics(self) -> dict[str, float]:
        lines = self.ask("/metrics")[2].decode().splitlines()
        return {
            name.removeprefix("py_ort_compile_server_"): float(value)
            for name, value in (line.split() for line in lines if not line.startswith("#"))
        }

    def log(self) -> str:
        return Path(self._log.name).read_text()

    def workers(self) -> list[int]:
        lines = command_lines()
        return [pid for pid, (up, line) in lines.items() if up == self.process.pid and "compile_worker" in line]

    def close(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        self._log.close()


class Site(http.server.ThreadingHTTPServer):
    """Models of others; /away/URL leads to a URL.

    Attributes:
        asked: Paths, with the statuses of the answers.
        validator: The header by which clients ask for changes; "": they cannot.
    """

    def __init__(self, models: dict[str, bytes]) -> None:
        self.asked: list[tuple[str, int]] = []
        self.validator = "ETag"
        #: Changes so far, by path.
        self._changes: Counter[str] = Counter()
        self._models = models
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/away/"):
                    return self.answer(302, b"", Location=self.path.removeprefix("/away/"))
                model = models.get(self.path)
                if model is None:
                    return self.answer(404, b"none")
                dated = formatdate(1e9 + 10 * site._changes[self.path], usegmt=True)
                name, value = {
                    "ETag": ("If-None-Match", f'"{sha256(model)}"'),
                    "Last-Modified": ("If-Modified-Since", dated),
                }.get(site.validator, ("", ""))
                if name and self.headers[name] == value:
                    return self.answer(304, b"")
                return self.answer(200, model, **({site.validator: value} if name else {}))

            def answer(self, status: int, body: bytes, **headers: str) -> None:
                site.asked.append((self.path, status))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def replace(self, path: str, model: bytes) -> None:
        self._models[path] = model
        self._changes[path] += 1

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"
