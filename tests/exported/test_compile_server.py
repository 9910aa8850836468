"""`py-ort compile-server`: models of pages, each compiled once, in a process that may die."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from onnx import helper, numpy_helper
from processes import command_lines

import py_ort
from py_ort.compiler.package.format import begins
from py_ort.exceptions import PyOrtError
from py_ort.serving.compiling.objects import ObjectStore
from py_ort.serving.compiling.sources import Refused, Sources

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


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(*arguments: str) -> Server:
        servers.append(Server(tmp_path / "store", *arguments))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.close()


class Site(http.server.ThreadingHTTPServer):
    """Models of others; /away/URL leads to a URL."""

    def __init__(self, models: dict[str, bytes]) -> None:
        self.asked: list[tuple[str, int]] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/away/"):
                    return self.answer(302, b"", Location=self.path.removeprefix("/away/"))
                model = models.get(self.path)
                if model is None:
                    return self.answer(404, b"none")
                if self.headers["If-None-Match"] == (tag := f'"{sha256(model)}"'):
                    return self.answer(304, b"")
                return self.answer(200, model, ETag=tag)

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

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def start(**models: bytes) -> Site:
        sites.append(Site({f"/{name}.onnx": model for name, model in models.items()}))
        return sites[-1]

    yield start
    for each in sites:
        each.shutdown()
        each.server_close()


def test_fifty_requests_for_ten_models_compile_each_once(serve: Serve) -> None:
    server = serve("--jobs", "2")
    models = [numbered(i) for i in range(10)]
    with ThreadPoolExecutor(50) as pool:
        places = list(pool.map(server.compiled, models * 5))
    assert len(set(places)) == 10 and places == places[:10] * 5
    metrics = server.metrics()
    assert (metrics["requests_total"], metrics["compiled_total"]) == (50, 10)
    assert metrics["compiling"] == metrics["waiting"] == 0
    for place in set(places):
        status, headers, content = server.ask(place)
        assert status == 200 and begins(content)
        assert headers["content-type"] == "application/x-pyort" and "immutable" in headers["cache-control"]


def test_models_are_found_by_their_hash_also_after_a_restart(serve: Serve) -> None:
    server, model = serve(), numbered(1)
    asked = f"/export?sha256={sha256(model)}"
    assert server.ask(asked)[0] == 404
    place = server.compiled(model)
    assert server.ask(asked)[1]["location"] == place
    assert server.ask(f"{asked[:-1]}x")[0] == 400
    wrong = server.ask(f"/export?sha256={sha256(b'')}", model)
    assert wrong[0] == 409 and sha256(model) in wrong[2].decode()
    server.close()
    again = serve()
    assert again.ask(asked)[1]["location"] == place
    assert again.metrics()["compiled_total"] == 0


def test_progress_is_told(serve: Serve) -> None:
    server, model = serve(), numbered(2)
    *before, (last, about) = server.events("/export", model)
    assert last == "done" and begins(server.ask(about["url"])[2])
    assert {kind for kind, _ in before} == {"progress"}
    assert {about["stage"] for _, about in before} & {"waiting", "compiling for wasm", "receiving the model"}
    assert server.events("/export", b"no model")[-1][1] == {
        "status": 422,
        "text": "InvalidProtobuf: the model is not an ONNX model",
    }


def test_models_of_urls(serve: Serve, site: Callable[..., Site]) -> None:
    other, models = site(elsewhere=numbered(4)), site(a=numbered(3))
    server = serve("--source", models.origin)
    asked = f"/export?url={models.origin}/a.onnx"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(server.ask, [asked] * 8))
    assert {status for status, _, _ in answers} == {303}
    assert models.asked.count(("/a.onnx", 200)) == 1 and server.metrics()["compiled_total"] == 1
    # Later it is only asked whether it has changed.
    assert server.ask(asked)[0] == 303 and models.asked[-1] == ("/a.onnx", 304)
    assert server.ask(f"{asked}&sha256={sha256(numbered(3))}")[0] == 303
    wrong = server.ask(f"/export?url={models.origin}/away/{models.origin}/a.onnx&sha256={sha256(b'')}")
    assert wrong[0] == 409
    assert server.ask(f"/export?url={models.origin}/none.onnx")[0] == 502
    for url in (
        f"{other.origin}/elsewhere.onnx",
        f"{models.origin}/away/{other.origin}/elsewhere.onnx",
        "file:///etc/x",
    ):
        status, _, text = server.ask(f"/export?url={url}")
        assert status == 403 and b"--source" in text
    assert other.asked == []


def test_limits(serve: Serve) -> None:
    server = serve("--max-size", "1", "--cors", "https://app.example", "--name", "compiler.example")
    large = server.ask("/export", bytes(2 << 20))
    assert large[0] == 413 and b"--max-size" in large[2]
    assert server.ask("/export", b"")[0] == 400 and server.ask("/export")[0] == 400
    assert server.ask("/export?plan=1")[0] == 409
    assert server.ask("/health", Host="compiler.example")[0] == 200
    assert server.ask("/health", Host="evil.example")[0] == 403
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null", "Sec_Fetch_Site": "cross-site"}):
        assert server.ask("/export", numbered(5), **headers)[0] == 403
    status, headers, _ = server.ask("/export", numbered(5), Origin="https://app.example")
    assert status == 303 and headers["access-control-allow-origin"] == "https://app.example"
    allowed = server.ask("/export", method="OPTIONS", Origin="https://app.example")[1]
    assert "POST" in allowed["access-control-allow-methods"]
    for name in ("..%2f..%2fpyproject.toml", "store.log", f"{'0' * 64}.pyort", ".work"):
        assert server.ask(f"/models/{name}")[0] == 404
    assert server.metrics()["compiled_total"] == 1


def outside(file: Path) -> bytes:
    """A model whose weight is to lie in a file of the server's."""
    from external_models import external

    node = helper.make_node("Add", ["x", "w"], ["y"])
    values = [small_models.floats(name, [4]) for name in ("x", "y")]
    return small_models.model([node], values[:1], values[1:], [external(str(file))])


def test_a_hostile_model_ends_its_process_only(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(16))
    server = serve("--jobs", "1")
    for place in (tmp_path / "secret", Path("../../../secret")):
        status, _, text = server.ask("/export", outside(place))
        assert status == 422, text
    slow = small_models.slow(1024, 400)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.ask, "/export", slow)
        while not (workers := server.workers()):
            assert not waiting.done(), waiting.result()
            time.sleep(0.02)
        os.kill(workers[0], signal.SIGKILL)
        status, _, text = waiting.result()
    assert status == 422 and text.startswith(b"OutOfMemory: model.onnx: the process that compiled it was killed")
    # It is not tried again and again.
    assert server.ask(f"/export?sha256={sha256(slow)}")[0] == 422
    assert server.metrics()["failed_total"] == 3
    server.compiled(numbered(6))
    assert server.ask("/health")[0] == 200


def test_a_model_that_takes_too_long(serve: Serve) -> None:
    server = serve("--timeout", "2")
    status, _, text = server.ask("/export", small_models.slow(8, 20_000))
    assert status == 422 and b"took longer to compile than 2 s" in text


def test_the_store_is_bounded(serve: Serve) -> None:
    server = serve("--keep", "1")  # MiB: one of two
    first, second = server.compiled(two_thirds_of_a_megabyte(1)), server.compiled(two_thirds_of_a_megabyte(2))
    assert server.ask(first)[0] == 404 and server.ask(second)[0] == 200
    assert server.metrics()["evicted_total"] == 1
    assert server.compiled(two_thirds_of_a_megabyte(1)) == first and server.ask(first)[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_nothing_is_left_of_a_server(serve: Serve, tmp_path: Path, number: int) -> None:
    server = serve("--jobs", "1")
    with ThreadPoolExecutor(1) as pool:
        asked = functools.partial(server.ask, "/export", small_models.slow(1024, 400))
        waiting = pool.submit(asked)
        while not (workers := server.workers()):
            time.sleep(0.02)
        server.close(number)
        assert waiting.exception() is not None or waiting.result()[0] != 303
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers) or list((tmp_path / "store").iterdir()):
        assert time.monotonic() < deadline, list((tmp_path / "store").iterdir())
        time.sleep(0.05)


def test_servers_share_an_object_store(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    objects = tmp_path / "objects" / "models"
    servers = [Server(tmp_path / f"server{i}", "--store", objects.as_uri(), "--keep", "1") for i in range(2)]
    try:
        first, second = servers
        model, other = two_thirds_of_a_megabyte(1), two_thirds_of_a_megabyte(2)
        place = first.compiled(model)
        content = first.ask(place)[2]
        # The other server is asked by another page, and at the same time by those whom the first one led on.
        asked = [place, f"/export?sha256={sha256(model)}"] * 4
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(second.ask, asked))
        assert [status for status, _, _ in answers] == [200, 303] * 4 and answers[0][2] == content
        metrics = second.metrics()
        assert (metrics["brought_total"], metrics["compiled_total"], metrics["evicted_total"]) == (1, 0, 0)
        # A model that had to make room is brought again.
        second.compiled(other)
        assert second.ask(place)[0] == 200 and second.metrics()["brought_total"] == 2
        # One that is damaged there is compiled again, and mended.
        (objects / f"{Path(first.compiled(numbered(1))).name}").write_bytes(content[:100])
        second.compiled(numbered(1))
        assert second.metrics()["compiled_total"] == 2 and "could not" not in second.log() and ".pyort" in second.log()
        # Without the object store models are compiled as ever.
        shutil.rmtree(objects.parent)
        objects.parent.write_bytes(b"a file")
        assert begins(second.ask(second.compiled(numbered(2)))[2]) and "could not be stored" in second.log()
    finally:
        for server in servers:
            server.close()


def test_object_stores_that_cannot_be_used(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "file").write_bytes(b"")
    for url, why in (("nothing://models", "Protocol not known"), ((tmp_path / "file/x").as_uri(), "cannot be used")):
        command = [sys.executable, "-m", "py_ort.cli", "compile-server", str(tmp_path / "s"), "--store", url]
        done = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and why in done.stderr and "Traceback" not in done.stderr


def test_a_model_in_parts_in_memory(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "m.onnx").write_bytes(two_thirds_of_a_megabyte(1))
    files = py_ort.export(tmp_path / "m.onnx", tmp_path / f"{'a' * 64}.pyort", providers=["wasm"], part_size=1 << 18)
    assert len(files) > 2
    objects = ObjectStore("memory://models")
    for name in ("to", "again"):
        (tmp_path / name).mkdir()
    assert objects.fetch("a" * 64, tmp_path / "to") == []
    objects.put(files)
    found = objects.fetch("a" * 64, tmp_path / "to")
    assert [file.read_bytes() for file in found] == [file.read_bytes() for file in files]
    fsspec.filesystem("memory").rm_file(f"/models/{'a' * 64}.pyort.1")
    with pytest.raises(PyOrtError):
        objects.fetch("a" * 64, tmp_path / "again")


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_names_of_private_addresses(
    site: Callable[..., Site], tmp_path: Path, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that are made to point at this machine, or at its network, lead nowhere."""
    models, real = site(a=numbered(1)), socket.getaddrinfo
    addresses = {"models.example": "127.0.0.1", "metadata.example": "169.254.169.254", "intranet.example": "10.0.0.1"}

    def looked_up(host: str, *more: Any, **options: Any) -> Any:
        return real(addresses.get(host, host), *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    origins = [f"http://{host}:{models.server_port}" for host in (*addresses, "localhost")]
    sources = Sources([models.origin, *origins], 1 << 20, 60, private)

    def fetched(url: str) -> str:
        try:
            return asyncio.run(sources.fetch(url, tmp_path / "m.onnx")).sha256
        except Refused as e:
            return f"{e.status}: {e}"

    for origin in (models.origin, origins[-1]):  # an address, and localhost, mean what they say
        assert fetched(f"{origin}/a.onnx") == sha256(numbered(1))
    asked = len(models.asked)
    if private:
        assert fetched(f"{origins[0]}/a.onnx") == sha256(numbered(1))
        return
    for host, origin in zip(addresses, origins, strict=False):
        for url in (f"{origin}/a.onnx", f"{models.origin}/away/{origin}/a.onnx"):
            assert fetched(url) == (
                f"403: {host} has the private address {addresses[host]}: "
                "py-ort compile-server --private-sources allows such addresses"
            )
    assert len(models.asked) == asked + len(addresses)


def test_urls_are_read_once(site: Callable[..., Site], tmp_path: Path) -> None:
    models = site(a=numbered(1))
    sources = Sources([models.origin, "https://hub.example"], 1 << 20, 60)

    def status(url: str) -> int:
        try:
            asyncio.run(sources.fetch(url, tmp_path / "m.onnx"))
        except Refused as e:
            return e.status
        return 200

    port = models.server_port
    refused = (
        *(f"http://127.0.0.1:{port}\\@evil.example/a.onnx", f"http://127.0.0.1:{port}@evil.example/a.onnx"),
        *(f"http://user:word@127.0.0.1:{port}/a.onnx", f"http://2130706433:{port}/a.onnx", f"http://[::1]:{port}/a"),
        *("http://[", "http://", "a.onnx", "", "file:///etc/passwd", "ftp://hub.example/a", "http://hub.example/a"),
    )
    assert {status(url) for url in refused} == {403} and models.asked == []
    assert status(f"HTTP://127.0.0.1:{port}/a.onnx#part") == 200
    assert status(f"{models.origin}/away//a.onnx") == 200


def test_what_is_told_of_a_model_is_short(serve: Serve) -> None:
    server = serve()
    node = helper.make_node("Frobnicate" + "z" * 1_000_000, ["x"], ["y"])
    model = small_models.model([node], [small_models.floats("x", [1])], [small_models.floats("y", [1])])
    status, _, text = server.ask("/export", model)
    assert status == 422 and b"Frobnicatezz" in text and len(text) < 5000 and len(server.log()) < 5000
    packed = server.ask("/export", numbered(1), Content_Encoding="gzip")
    assert packed[0] == 400 and b"cannot be decoded" in packed[2]
