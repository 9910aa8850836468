"""`py-ort serve`: a web developer's folder, whose models are compiled on request."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models
from onnx import helper
from page_checks import fits

from py_ort.compiler.package.format import begins

PAGE = """<!doctype html><title>mine</title><p id="y"></p>
<script type="module">
  import { InferenceSession, Tensor } from '/py_ort/py_ort.mjs';
  const session = await InferenceSession.create('%s', { executionProviders: ['wasm'], cache: true });
  const shape = session.inputMetadata[0].shape.map((size) => (typeof size === 'number' ? size : 2));
  const x = new Tensor('float32', new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(1), shape);
  const feeds = { x };
  if (session.inputNames.includes('scale')) feeds.scale = new Tensor('float32', [1, 2, 3], [3]);
  const { y } = await session.run(feeds);
  document.getElementById('y').textContent = `${crossOriginIsolated} ${y.data.join(' ')}`;
</script>
"""
KERNEL = "// kernel: served::Scaled\nstore_y(i, 2.0 * load_x(i));\n"


class Server:
    """A running `py-ort serve`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "py_ort.cli", "serve", str(folder), "--port", "0", *arguments]
        self._log = (folder.parent / "serve.log").open("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8")
        assert self.process.stdout
        self.printed: list[str] = []
        while not self.printed or not self.printed[-1].startswith("http"):
            line = self.process.stdout.readline()
            assert line, self.said()
            self.printed.append(line.strip())
        self.url = self.printed[-1]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def said(self) -> str:
        return Path(self._log.name).read_text()

    def ask(
        self, path: str, headers: dict[str, str] | None = None, method: str = "GET"
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request without a client's help: the path is sent unchanged."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        found = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        connection.close()
        return found

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)
        self._log.close()


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(*arguments: str) -> Server:
        servers.append(Server(tmp_path / "site", *arguments))
        return servers[-1]

    (tmp_path / "site").mkdir()
    yield start
    for server in servers:
        server.close()


@pytest.fixture
def site(tmp_path: Path, serve: Serve) -> Path:
    return tmp_path / "site"


def test_files_with_the_right_headers(site: Path, serve: Serve) -> None:
    for name in ("a.mjs", "b.wasm", "c.css", "d ä.json", "e.html"):
        (site / name).write_bytes(b"0123456789")
    (site / "sub").mkdir()
    (site / "sub/index.html").write_text("<p>sub</p>")
    server = serve()
    kinds = {
        "a.mjs": "text/javascript; charset=utf-8",
        "b.wasm": "application/wasm",
        "c.css": "text/css; charset=utf-8",
    }
    for name, kind in {**kinds, "d%20%C3%A4.json": "application/json; charset=utf-8"}.items():
        status, headers, body = server.ask(f"/{name}")
        assert (status, headers["content-type"], body) == (200, kind, b"0123456789")
        assert headers["cross-origin-opener-policy"] == "same-origin" and headers["cache-control"] == "no-cache"
        assert headers["cross-origin-embedder-policy"] == "credentialless"
        assert "access-control-allow-origin" not in headers
    tag = server.ask("/a.mjs")[1]["etag"]
    assert server.ask("/a.mjs", {"If-None-Match": tag})[0] == 304
    for wanted, content in (("bytes=2-4", b"234"), ("bytes=7-", b"789"), ("bytes=-2", b"89"), ("bytes=8-99", b"89")):
        status, headers, body = server.ask("/b.wasm", {"Range": wanted})
        assert (status, body) == (206, content) and headers["content-range"].endswith("/10")
    assert server.ask("/b.wasm", {"Range": "bytes=10-"})[0] == 416
    assert server.ask("/b.wasm", {"Range": "bytes=2-4", "If-Range": '"other"'})[2] == b"0123456789"
    status, headers, body = server.ask("/b.wasm", method="HEAD")
    assert (status, headers["content-length"], body) == (200, "10", b"")
    assert server.ask("/b.wasm", method="POST")[0] == 405
    assert server.ask("/sub")[1]["location"] == "sub/" and b"<p>sub</p>" in server.ask("/sub/")[2]
    (site / "a.mjs").write_bytes(b"other")
    assert server.ask("/a.mjs", {"If-None-Match": tag})[2] == b"other"


def test_nothing_outside_the_folder(site: Path, serve: Serve, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "secret.onnx").write_bytes(small_models.add())
    (site / "link.txt").symlink_to(secret)
    (site / "link.onnx").symlink_to(tmp_path / "secret.onnx")
    (site / "out").symlink_to(tmp_path)
    (site / "inside.txt").write_text("inside")
    (site / "good.txt").symlink_to(site / "inside.txt")
    (site / ".env").write_text("secret")
    (site / "circle").symlink_to(site / "circle")
    server = serve()
    assert server.ask("/good.txt")[2] == b"inside"
    climbing = ("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/sub/../../secret.txt", "//../secret.txt")
    hidden = ("/.env", "/link.txt", "/link.pyort", "/link.onnx", "/out/secret.txt", "/out/secret.pyort", "/out/")
    odd = ("/circle", "/%00", "/" + "a" * 5000, "/py_ort/../../secret.txt", "/py_ort/index.html", "/..%5csecret.txt")
    for path in (*climbing, *hidden, *odd):
        status, _, body = server.ask(path)
        assert status in (400, 404) and b"secret" not in body, path
    listing = server.ask("/")[2]
    assert b"secret" not in listing and b"link" not in listing and b"inside.txt" not in listing


def test_who_is_let_in(site: Path, serve: Serve) -> None:
    (site / "a.txt").write_text("a")
    server = serve("--cors", "https://app.example")
    for host in ("127.0.0.1", f"localhost:{server.port}", f"127.0.0.1:{server.port}", "[::1]:80"):
        assert server.ask("/a.txt", {"Host": host})[0] == 200
    for host in ("evil.example", "", "127.0.0.1.evil.example:80", "[x", "localhost@evil.example"):
        assert server.ask("/a.txt", {"Host": host})[0] in (400, 403), host
    status, headers, _ = server.ask("/a.txt", {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"})
    assert (status, headers["access-control-allow-origin"]) == (200, "https://app.example")
    assert headers["cross-origin-resource-policy"] == "cross-origin"
    status, headers, _ = server.ask("/a.txt", {"Origin": "https://app.example"}, "OPTIONS")
    assert (status, headers["access-control-allow-headers"]) == (204, "Range")
    for others in ({"Origin": "https://evil.example"}, {}):
        status, headers, body = server.ask("/a.txt", {**others, "Sec-Fetch-Site": "cross-site"})
        assert status == 403 and "access-control-allow-origin" not in headers and b"--cors" in body
    assert server.ask("/a.txt", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200


def test_in_a_network_only_with_the_token(site: Path, serve: Serve) -> None:
    (site / "index.html").write_text("<p>mine</p>")
    (site / "model.onnx").write_bytes(small_models.add())
    server = serve("--host", "0.0.0.0")
    token = server.url.partition("token=")[2]
    assert len(token) >= 24 and len(server.printed) > 10 and "▀" in "".join(server.printed)
    assert "secure contexts" in server.said()
    for path, headers in (
        ("/", {}),
        ("/?token=", {}),
        (f"/?token={token[:-1]}", {}),
        ("/model.pyort", {"Cookie": "py_ort_serve=x"}),
        ("/py_ort/py_ort.mjs", {}),
        ("/py_ort/events", {}),
    ):
        status, _, body = server.ask(path, headers)
        assert status == 403 and b"token" in body, path
    status, headers, _ = server.ask(f"/?a=b&token={token}")
    assert (status, headers["location"]) == (303, "/?a=b")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    known = {"Cookie": cookie.partition(";")[0], "Host": "phone.example:1"}
    assert b"mine" in server.ask("/", known)[2]
    assert begins(server.ask("/model.pyort", known)[2])
    assert begins(server.ask(f"/model.pyort?token={token}", {"Sec-Fetch-Mode": "cors"})[2])


def test_models_are_compiled_when_they_are_asked_for(site: Path, serve: Serve) -> None:
    (site / "sub").mkdir()
    (site / "sub/my net.onnx").write_bytes(small_models.two_products())
    (site / "own.onnx").write_bytes(small_models.add())
    (site / "own.pyort").write_bytes(b"as it is")
    (site / "bad.onnx").write_bytes(small_models.unknown_operator())
    server = serve()
    status, headers, body = server.ask("/sub/my%20net.pyort")
    assert status == 200 and begins(body) and headers["content-type"] == "application/x-pyort"
    assert headers["cache-control"] == "no-store"
    assert server.ask("/sub/my%20net.pyort", {"If-None-Match": headers["etag"]})[0] == 304
    assert server.said().count("sub/my net.onnx: compiled in") == 1
    assert server.ask("/sub/my%20net.onnx")[2] == small_models.two_products()
    status, headers, _ = server.ask("/sub/my%20net.onnx", {"Accept": "application/x-pyort, */*"})
    assert (status, headers["location"]) == (307, "./my%20net.pyort")
    assert server.ask("/own.pyort")[2] == b"as it is"
    status, headers, body = server.ask("/bad.pyort")
    assert status == 500 and b"Frobnicate" in body and headers["content-type"].startswith("text/plain")
    assert "bad.onnx" in server.said() and "Frobnicate" in server.said()
    for path in ("/none.pyort", "/sub/my%20net.pyort.1", "/sub/my%20net.pyort.x", "/.pyort", "/sub.pyort"):
        assert server.ask(path)[0] == 404, path


def test_pages_are_told_how_far_a_model_is(site: Path, serve: Serve) -> None:
    (site / "net.onnx").write_bytes(small_models.two_products())
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/py_ort/events")
    stream = connection.getresponse()

    def event() -> dict[str, Any]:
        line = stream.readline()
        assert line.startswith(b"data: ") and stream.readline() == b"\n", line
        return json.loads(line.removeprefix(b"data: "))

    assert event()["kind"] == "hello"
    assert server.ask("/net.pyort")[0] == 200
    told = [event()]
    while told[-1]["kind"] == "progress":
        told.append(event())
    assert told[-1] == {"kind": "compiled", "file": "net.onnx"}
    assert {"compiling for webgpu + wasm", "writing"} <= {each.get("text") for each in told}
    (site / "net.onnx").write_bytes(b"no model")
    assert event() == {"kind": "changed", "file": "net.onnx"}
    assert server.ask("/net.pyort")[0] == 500
    while (failed := event())["kind"] == "progress":
        pass
    assert failed["kind"] == "failed" and failed["text"].startswith("InvalidProtobuf")
    connection.close()


@pytest.mark.browser
def test_a_page_of_ones_own(site: Path, serve: Serve, open_url: Any) -> None:
    """It loads the ONNX file, shows its error, and is loaded again after the file is repaired."""
    (site / "index.html").write_text(PAGE % "model.onnx")
    (site / "model.onnx").write_bytes(b"no model")
    server = serve()
    expected = open_url("about:blank").context.new_page()  # its errors are intended
    expected.goto(server.url)
    expected.locator("#py-ort-serve").get_by_text("InvalidProtobuf").wait_for(timeout=60_000)
    (site / "model.onnx").write_bytes(small_models.add())
    expected.locator("#y", has_text="true 2 3 4 2 3 4").wait_for(timeout=60_000)
    (site / "model.onnx").write_bytes(small_models.add().replace(b"Add", b"Sub"))
    expected.locator("#y", has_text="true 0 -1 -2 0 -1 -2").wait_for(timeout=60_000)
    (site / "index.html").write_text("<p id='y'>other</p>")
    expected.locator("#y", has_text="other").wait_for(timeout=60_000)


@pytest.mark.browser
def test_kernels_that_change(site: Path, serve: Serve, open_url: Any, tmp_path: Path) -> None:
    kernel = tmp_path / "scaled.wgsl"
    kernel.write_text(KERNEL)
    (site / "model.onnx").write_bytes(
        small_models.model(
            [helper.make_node("Scaled", ["x"], ["y"], domain="served")],
            [small_models.floats("x", [3])],
            [small_models.floats("y", [3])],
            domains=["served"],
        )
    )
    (site / "index.html").write_text(PAGE.replace("['wasm']", "['webgpu']") % "model.pyort")
    server = serve("--kernels", str(kernel), "--provider", "webgpu")
    page = open_url(server.url)
    page.locator("#y", has_text="true 2 2 2").wait_for(timeout=60_000)
    kernel.write_text(KERNEL.replace("2.0", "5.0"))
    page.locator("#y", has_text="true 5 5 5").wait_for(timeout=60_000)
    assert "scaled.wgsl: loaded again" in server.said()
    kernel.write_text(KERNEL.replace("kernel:", "colonel:"))
    page.locator("#py-ort-serve").get_by_text("has no line '// kernel: domain::Operator'").wait_for(timeout=60_000)
    kernel.write_text(KERNEL.replace("2.0", "7.0"))
    page.locator("#y", has_text="true 7 7 7").wait_for(timeout=60_000)


def test_nobody_else_pays_for_the_server() -> None:
    names = "aiohttp", "segno"
    code = f"import sys, py_ort.cli.group; py_ort.check_export; print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.browser
def test_the_list_of_models_runs_them(site: Path, serve: Serve, open_url: Any) -> None:
    (site / "sub").mkdir()
    (site / "sub/net.onnx").write_bytes(small_models.two_products())
    server = serve("--no-reload")
    page = open_url(server.url, width=380)
    assert fits(page) and "sub/net.onnx" in page.locator("table").inner_text()
    page.get_by_text("run it").click()
    page.locator("body[data-state=ready]").wait_for(timeout=60_000)
    page.get_by_role("button", name="Run").click()
    page.locator("body[data-state=done]").wait_for(timeout=60_000)
    assert page.locator("#outputs td").first.inner_text() == "y"
    assert "as many as there are cores" in page.locator("#facts").inner_text()


@pytest.mark.browser
def test_pages_of_another_origin(site: Path, serve: Serve, open_url: Any, plainly_served: Any, tmp_path: Path) -> None:
    """With --cors they run the model and the runtime of this server; without it they run neither."""
    other = tmp_path / "other"
    other.mkdir()
    origin = plainly_served(other).rstrip("/")
    (site / "model.onnx").write_bytes(small_models.add())
    server = serve("--cors", origin)
    page = PAGE.replace("'/py_ort/", f"'{server.url}py_ort/") % f"{server.url}model.onnx"
    (other / "index.html").write_text(page)
    shown = open_url(origin)
    shown.locator("#y", has_text="false 2 3 4 2 3 4").wait_for(timeout=60_000)


def test_an_interrupt_ends_it(site: Path, serve: Serve) -> None:
    """At once, and without a trace, even while a page is connected."""
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", "/py_ort/events")
    assert connection.getresponse().readline().startswith(b"data: ")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(timeout=60) == 130
    assert "Traceback" not in server.said()
    connection.close()


def test_a_taken_port(site: Path, serve: Serve) -> None:
    server = serve()
    command = [sys.executable, "-m", "py_ort.cli", "serve", str(site), "--port", str(server.port)]
    taken = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert taken.returncode == 1 and "--port 0" in taken.stderr and "Traceback" not in taken.stderr


@pytest.mark.parametrize("wrong", [["none"], [".", "--cors", "*"], [".", "--cors", "http://a/b"]], ids=" ".join)
def test_wrong_folders_and_origins(py_ort_command: Any, tmp_path: Path, wrong: list[str]) -> None:
    folder, *options = wrong
    status, out, said = py_ort_command("serve", tmp_path / folder, *options)
    assert status == 2 and not out and ("no origin" if options else "none") in said
