"""The HTTP server, with Python's own client."""

import http.client
import random
import socket
import threading
import time
from urllib.parse import unquote

import pytest

from py_ort.browser import http_server
from py_ort.browser.http_server import Blob, HttpServer
from py_ort.exceptions import EngineError
from py_ort.wire.parts import LazyPart

PARTS = [b"0123456789", b"", b"abcdef", bytearray(b"XYZ")]
WHOLE = b"0123456789abcdefXYZ"


@pytest.fixture
def server(tmp_path, monkeypatch):
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "index.html").write_text("<p>page")
    (assets / "core.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret").write_text("secret")
    monkeypatch.setattr(http_server, "ASSETS", assets)
    server = HttpServer()
    yield server
    server.close()


@pytest.fixture
def get(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)

    def get(path: str, method: str = "GET", **headers: str):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        try:
            return response, response.read()
        except http.client.IncompleteRead:
            connection.close()  # so has the server
            raise

    yield get
    connection.close()


def test_nobody_waits_for_its_end():
    before = set(threading.enumerate())
    server = HttpServer()
    socket.create_connection(("127.0.0.1", server.port), 10).close()
    (thread,) = [one for one in threading.enumerate() if one.name == "py_ort-http" and one not in before]
    began = time.monotonic()
    server.close()
    assert time.monotonic() - began < 0.05
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), 10).close()
    thread.join(10)
    assert not thread.is_alive()


def test_assets_are_isolated(get):
    response, body = get("/index.html")
    assert (response.status, body) == (200, b"<p>page")
    assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert response.headers["Content-Type"] == "text/html"
    response, _ = get("/core.wasm?x=1")
    assert response.headers["Content-Type"] == "application/wasm"


@pytest.mark.parametrize("path", ["/nope", "/../secret", "/%2e%2e/secret", "//etc/passwd", "/blob/guess"])
def test_nothing_else_is_served(get, path):
    assert get(path)[0].status == 404


def test_other_host_names_are_refused(get):
    assert get("/index.html", Host="evil.example:80")[0].status == 403


RANGES = [(first, last) for first in range(0, 19, 3) for last in (first, first + 5, 18, 99)]


@pytest.mark.parametrize("first, last", RANGES)
def test_ranges(server, get, first, last):
    path = server.publish(PARTS).removeprefix(server.origin)
    response, body = get(path, Range=f"bytes={first}-{last}")
    assert (response.status, body) == (206, WHOLE[first : last + 1])
    assert response.headers["Content-Range"] == f"bytes {first}-{min(last, 18)}/19"


@pytest.mark.parametrize("header, expected", [("bytes=4-", WHOLE[4:]), ("bytes=-4", WHOLE[-4:]), ("lines=1-2", WHOLE)])
def test_open_ranges(server, get, header, expected):
    assert get(server.publish(PARTS).removeprefix(server.origin), Range=header)[1] == expected


def test_a_range_outside(server, get):
    response, _ = get(server.publish(PARTS).removeprefix(server.origin), Range="bytes=19-")
    assert response.status == 416 and response.headers["Content-Range"] == "bytes */19"


def test_head_and_withdraw(server, get):
    url = server.publish(PARTS)
    path = url.removeprefix(server.origin)
    response, body = get(path, "HEAD")
    assert response.headers["Content-Length"] == "19" and body == b""
    server.withdraw(url)
    assert get(path)[0].status == 404


def test_large_buffers_are_views_and_small_ones_are_joined():
    data = bytearray(1 << 17)
    slices = list(Blob([b"a", b"b", data, b"c"]).slices(0, (1 << 17) + 3))
    assert [part.nbytes for part in slices] == [2, 1 << 17, 1]
    assert slices[1].obj is data and bytes(slices[0]) == b"ab"


@pytest.mark.parametrize("seed", range(5))
def test_any_range_of_any_buffers(seed):
    rng = random.Random(seed)
    sizes = [rng.choice([0, 1, 10, 5000, 65535, 65536, 200_000]) for _ in range(40)]
    parts = [rng.randbytes(size) for size in sizes]
    blob, whole = Blob(parts), b"".join(parts)
    assert blob.size == len(whole)
    for _ in range(20):
        start, end = sorted(rng.randrange(len(whole) + 1) for _ in range(2))
        assert b"".join(blob.slices(start, end)) == whole[start:end]


def test_missing_assets_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "ASSETS", tmp_path)
    with pytest.raises(EngineError, match="make build"):
        http_server.check_assets()


def _fails() -> memoryview:
    raise ValueError("the disk is ä \udcff ghost")


def test_a_part_that_cannot_be_made_is_an_answer_that_says_why(server, get, caplog):
    path = server.publish([LazyPart(10, _fails)]).removeprefix(server.origin)
    response, body = get(path)
    assert response.status == 500 and response.headers["Content-Type"].startswith("text/plain")
    assert body.decode() == "ValueError: the disk is ä \\udcff ghost"
    assert "the disk is" in caplog.text


def test_an_answer_that_broke_off_is_explained_by_the_next_one(server, get):
    path = server.publish([bytes(1 << 17), LazyPart(10, _fails)]).removeprefix(server.origin)
    with pytest.raises(http.client.IncompleteRead):
        get(path)
    response, body = get(path, "HEAD")
    assert (response.status, body) == (200, b"")
    assert unquote(response.headers["Py-Ort-Failure"]) == "ValueError: the disk is ä \\udcff ghost"
    assert get(path, Range="bytes=0-9")[1] == bytes(10)  # the rest is still served
