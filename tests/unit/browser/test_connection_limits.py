"""Connections without a token: they are closed soon, they are limited in number, and they do not block others."""

import asyncio
import contextlib
import http.client
import socket
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect

from py_ort.browser.bridge import Bridge
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.connection_limits import MOST, Strangers
from py_ort.browser.http_server import HttpServer
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.ProtocolVersion import ProtocolVersion
from py_ort.wire import encode, frames

#: Many more than permitted.
CROWD = 4 * MOST


def test_the_first_makes_room_for_the_last():
    closed = []
    few = Strangers(most=2)
    for name in "abc":
        few.enter(name, lambda name=name: closed.append(name))
    assert closed == ["a"] and len(few) == 2
    few.enter("b", lambda: closed.append("b"))  # its time starts again
    few.enter("d", lambda: closed.append("d"))
    assert closed == ["a", "c"]
    few.leave("b")
    few.enter("e", lambda: closed.append("e"), seconds=0)
    few.close_overdue()
    assert closed == ["a", "c", "e"] and len(few) == 1


def crowd(port: int, says: bytes = b"") -> list[socket.socket]:
    """Connect often, send `says`, and wait."""
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CROWD)]
    for one in sockets:
        with contextlib.suppress(OSError):  # it was closed already
            one.sendall(says)
    return sockets


def still_open(sockets: list[socket.socket]) -> int:
    count = 0
    for one in sockets:
        one.settimeout(0.01)
        try:
            while one.recv(1 << 16):
                pass
        except TimeoutError:
            count += 1
        except OSError:
            pass
    return count


def within(seconds: float, condition) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def server():
    made = HttpServer()
    yield made
    made.close()


def http_threads() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


#: Nothing, half a request, and repeated requests for a public file.
WORDS = [
    b"",
    b"GET /index.html HTTP/1.1\r\nHost: 127.0.0.1:1\r\n",
    b"GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
]


@pytest.mark.parametrize("words", WORDS)
def test_http_threads_are_bounded(server, words):
    before = http_threads()
    url = server.publish([b"weights"]).removeprefix(server.origin)
    page = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)

    def fetch() -> bytes:
        page.request("GET", url)
        return page.getresponse().read()

    assert fetch() == b"weights"
    sockets = crowd(server.port, words)
    assert within(10, lambda: http_threads() - before <= MOST + 1)
    assert within(10, lambda: still_open(sockets) <= MOST)
    # A page keeps its connection, and another page can connect.
    kept = page.sock
    assert fetch() == b"weights" and page.sock is kept
    other = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    other.request("GET", url)
    assert other.getresponse().read() == b"weights"
    for one in (*sockets, page, other):
        one.close()


@pytest.mark.parametrize("words", WORDS)
def test_http_strangers_have_little_time(server, words):
    server._server.strangers.patience = 0.5
    url = server.publish([b"weights"]).removeprefix(server.origin)
    page = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    page.request("GET", url)
    page.getresponse().read()
    kept = page.sock
    three = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
    stranger, before = three[0], time.monotonic()
    stranger.sendall(words)
    stranger.settimeout(20)
    with contextlib.suppress(OSError):
        while stranger.recv(1 << 16):
            stranger.sendall(b"X" if words else b"")  # slowly, byte by byte
    assert time.monotonic() - before < 15
    time.sleep(1)
    page.request("GET", url)
    assert page.getresponse().read() == b"weights" and page.sock is kept, "who knows a secret may wait"
    for one in (*three, page):
        one.close()


def test_four_ranges_at_once_from_many_pages(server):
    """Pages' usual requests never meet the bound."""
    data = bytes(range(256)) * 4096
    url = server.publish([data]).removeprefix(server.origin)
    got, lock = [], threading.Lock()

    def fetch(quarter: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        size = len(data) // 4
        for _ in range(5):
            connection.request("GET", url, headers={"Range": f"bytes={quarter * size}-{(quarter + 1) * size - 1}"})
            body = connection.getresponse().read()
            with lock:
                got.append(body == data[quarter * size : (quarter + 1) * size])
        connection.close()

    threads = [threading.Thread(target=fetch, args=(i % 4,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 500 and all(got)


def run(test) -> None:
    async def main() -> None:
        made = await Bridge.start()
        try:
            await test(made)
        finally:
            await made.close()

    asyncio.run(asyncio.wait_for(main(), 60))


async def hello(made: Bridge):
    url, future, _ = made.expect()
    token = url.rpartition("token=")[2]
    socket = await connect(f"ws://127.0.0.1:{made.port}/?token={token}", origin=made.http.origin)
    body = HelloT()
    body.token, body.version = token, ProtocolVersion.current
    for frame in frames(encode(0, body)):
        await socket.send(frame)
    return socket, await asyncio.wait_for(future, 10)


def test_websocket_strangers_keep_nobody_out():
    async def test(made):
        first, page = await hello(made)
        sockets = await asyncio.to_thread(crowd, made.port)
        assert await asyncio.to_thread(within, 10, lambda: len(made._sockets) <= MOST + 1)
        assert await asyncio.to_thread(within, 10, lambda: still_open(sockets) <= MOST)
        second, other = await hello(made)
        assert page.lost is None and other.lost is None
        for one in (first, second):
            await one.close()
        for one in sockets:
            one.close()

    run(test)


def test_websocket_strangers_have_little_time():
    async def test(made):
        made._strangers.patience = 0.3
        socket, page = await hello(made)
        silent = await asyncio.open_connection("127.0.0.1", made.port)
        slow = await asyncio.open_connection("127.0.0.1", made.port)
        slow[1].write(b"GET / HTTP/1.1\r\nHost:")
        for reader, writer in (silent, slow):
            assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(0.5)
        assert page.lost is None, "a page stays as long as it likes"
        await socket.close()

    run(test)


TLS = Path(__file__).parents[2] / "helpers/tls"
CERTIFICATE = (TLS / "certificate.pem", TLS / "key.pem")
#: All but the first, and half a TLS handshake.
SAID_TO_A_GATEWAY = [*WORDS, b"\x16\x03\x01", b"nothing of HTTP\r\n\r\n"]


@pytest.mark.parametrize("certificate", [None, CERTIFICATE], ids=["plain", "tls"])
@pytest.mark.parametrize("words", SAID_TO_A_GATEWAY)
def test_strangers_at_a_gateway(words, certificate, caplog):
    """Beyond loopback: few at one time, none for long, logged once; and a page with the secret is served."""

    async def test(made):
        gateway = await made.gateway(BrowserOptions(host="127.0.0.1", certificate=certificate))
        gateway._port.strangers.patience = 2.0
        url = urlsplit(gateway.url(made.http.publish([b"weights"])))
        port, path = url.port, url.path

        def connected():
            if certificate is None:
                return http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            return http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=ssl._create_unverified_context())

        def fetch(page) -> bytes:
            page.request("GET", path)
            return page.getresponse().read()

        def others() -> None:
            page = connected()
            assert fetch(page) == b"weights"
            kept = page.sock
            sockets = crowd(port, words)
            assert within(10, lambda: still_open(sockets) <= MOST)
            other = connected()
            assert fetch(page) == fetch(other) == b"weights" and page.sock is kept
            assert within(10, lambda: still_open(sockets) == 0)
            assert fetch(page) == fetch(other) == b"weights" and page.sock is kept, "who knows a secret may wait"
            for one in (*sockets, page, other):
                one.close()

        await asyncio.to_thread(others)

    with caplog.at_level("WARNING"):
        run(test)
    told = [record.getMessage() for record in caplog.records]
    assert sum("do not show the secret" in text for text in told) == 1
    assert all(record.name.startswith("py_ort") for record in caplog.records), told
