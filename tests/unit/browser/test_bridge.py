"""The websocket server, with clients that are not browsers: admission, and clients that leave."""

import asyncio
import threading
from socket import SO_SNDBUF, SOL_SOCKET
from urllib.request import urlopen

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from py_ort.browser import websocket
from py_ort.browser.bridge import Bridge
from py_ort.browser.loop import LoopThread
from py_ort.exceptions import ConnectionLost, ProtocolError, PyOrtError, Timeout
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.JsepCopy import JsepCopyT
from py_ort.schema.gen.ProtocolVersion import ProtocolVersion
from py_ort.wire import Assembler, Connection, decode, encode, frames


def hello(token: str, version: int = ProtocolVersion.current) -> bytes:
    body = HelloT()
    body.token, body.version = token, version
    (frame,) = frames(encode(0, body))
    return frame


async def open_page(bridge: Bridge):
    url, future, _ = bridge.expect()
    token = url.rpartition("token=")[2]
    socket = await connect(f"ws://127.0.0.1:{bridge.port}/?token={token}", origin=bridge.http.origin)
    await socket.send(hello(token))
    return socket, await asyncio.wait_for(future, 5)


def run(test) -> None:
    async def main() -> None:
        bridge = await Bridge.start()
        try:
            await test(bridge)
        finally:
            await bridge.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_page_comes_in():
    async def test(bridge):
        socket, page = await open_page(bridge)
        assert page.hello.version == ProtocolVersion.current and page.lost is None
        await socket.close()

    run(test)


@pytest.mark.parametrize("change", ["token", "origin", "reuse"])
def test_strangers_are_refused(change):
    async def test(bridge):
        url, *_ = bridge.expect()
        token = url.rpartition("token=")[2]
        if change == "reuse":
            _socket, _ = await open_page(bridge)
            bridge.expect()
            token = "x" + token
        origin = "http://evil.example" if change == "origin" else bridge.http.origin
        with pytest.raises(InvalidStatus):
            await connect(
                f"ws://127.0.0.1:{bridge.port}/?token={'guess' if change == 'token' else token}", origin=origin
            )

    run(test)


def test_garbage_closes_the_connection():
    async def test(bridge):
        socket, page = await open_page(bridge)
        await socket.send(b"garbage" * 3)
        with pytest.raises(ConnectionLost, match="closed"):
            await page.request(GetStatsT(), timeout=5)
        with pytest.raises(ConnectionClosed):
            while True:
                await socket.recv()

    run(test)


@pytest.mark.parametrize(
    "said", [b"garbage" * 3, hello("", version=99), hello("another")], ids=["garbage", "version", "token"]
)
def test_a_page_that_is_refused_is_not_waited_for(said):
    async def test(bridge):
        url, future, _ = bridge.expect()
        token = url.rpartition("token=")[2]
        socket = await connect(f"ws://127.0.0.1:{bridge.port}/?token={token}", origin=bridge.http.origin)
        await socket.send(said)
        with pytest.raises(ProtocolError, match="refused"):
            await asyncio.wait_for(future, 5)

    run(test)


def test_neither_is_one_whose_hello_we_cannot_take(monkeypatch):
    async def test(bridge):
        url, future, _ = bridge.expect()
        monkeypatch.setattr(Connection, "receive", lambda connection, part: missing)  # noqa: F821
        token = url.rpartition("token=")[2]
        socket = await connect(f"ws://127.0.0.1:{bridge.port}/?token={token}", origin=bridge.http.origin)
        await socket.send(hello(token))
        with pytest.raises(ConnectionLost, match=r"refused.*NameError"):
            await asyncio.wait_for(future, 5)

    run(test)


def test_a_page_that_leaves_fails_what_waits():
    async def test(bridge):
        socket, page = await open_page(bridge)
        waiting = [asyncio.ensure_future(page.request(GetStatsT())) for _ in range(3)]
        await socket.recv()
        await socket.close()
        results = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 5)
        assert [type(r) for r in results] == [ConnectionLost] * 3
        assert len({id(r) for r in results}) == 3
        with pytest.raises(ConnectionLost):
            await page.request(GetStatsT())

    run(test)


def test_a_bug_in_the_receiving_end_does_not_hang_anybody(monkeypatch):
    async def test(bridge):
        socket, page = await open_page(bridge)
        monkeypatch.setattr(page._connection, "receive", lambda part: missing)  # noqa: F821
        waiting = asyncio.ensure_future(page.request(GetStatsT()))
        await socket.recv()
        await socket.send(hello("again"))
        with pytest.raises(ConnectionLost, match="NameError"):
            await asyncio.wait_for(waiting, 5)

    run(test)


def test_a_request_that_cannot_be_packed_is_its_callers_error():
    async def test(bridge):
        _socket, page = await open_page(bridge)
        body = GetStatsT()
        body.session = "seven"
        with pytest.raises(TypeError):
            await page.request(body)
        assert page.lost is None

    run(test)


@pytest.mark.parametrize("size", [0, 1, 5, 125, 126, 127, 65_535, 65_536, 300_001, 1 << 20])
def test_frames_of_any_size_come_through(size):
    """Masked by the client, and cut in any way."""
    import numpy as np

    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()

    async def test(bridge):
        socket, page = await open_page(bridge)
        came = bytearray()
        page._socket.on_bytes = came.extend
        for cut in (data, [data[: size // 3], data[size // 3 :]]):
            came.clear()
            await socket.send(cut)
            async with asyncio.timeout(5):
                while len(came) < size:
                    await asyncio.sleep(0.01)
            assert bytes(came) == data
        page._socket.send([data, b"end"])
        assert await socket.recv() == data and await socket.recv() == b"end"

    run(test)


@pytest.mark.parametrize("wrong", ["text", "too long"])
def test_frames_that_are_refused(wrong):
    async def test(bridge):
        socket, page = await open_page(bridge)
        await socket.send("text" if wrong == "text" else bytes((1 << 20) + 1))
        with pytest.raises(ConnectionLost):
            await page.request(GetStatsT(), timeout=5)

    run(test)


def test_much_may_be_sent_before_anything_is_read():
    async def test(bridge):
        socket, page = await open_page(bridge)
        page._socket.send(bytes([i]) * (1 << 20) for i in range(40))
        page._socket.send([b"end"])
        sizes = [len(await socket.recv()) for _ in range(41)]
        assert sizes == [1 << 20] * 40 + [3]

    run(test)


def copied(size: int) -> tuple[JsepCopyT, list[bytes], int]:
    """Return a request with its data: the page's answer does not come, as nobody reads it."""
    return JsepCopyT(), [bytes(size)], size


@pytest.mark.parametrize("small", [False, True])
def test_threads_send_in_the_order_of_numbers_what_the_socket_does_not_take_at_once(small):
    sizes = [60_000] if small else [10, 60_000, 70_000, 1 << 20]

    async def test(bridge):
        socket, page = await open_page(bridge)
        page._socket._direct.setsockopt(SOL_SOCKET, SO_SNDBUF, 100_000)

        def ask() -> None:
            for i in range(60):
                page.start(*copied(sizes[i % len(sizes)]))

        await asyncio.gather(*(asyncio.to_thread(ask) for _ in range(3)))
        assembler, came = Assembler(), []
        while len(came) < 180:
            whole = assembler.receive(await asyncio.wait_for(socket.recv(), 5))
            came += [decode(*whole)] if whole else []
        assert [request.id for request in came] == sorted(page._waiting)
        assert sorted(len(request.payload) for request in came) == sorted(sizes * (180 // len(sizes)))

    run(test)


@pytest.mark.parametrize("sent", [False, True])
def test_an_interrupt_leaves_a_request_sent_or_not_begun(sent, monkeypatch):
    class Interrupted(int):
        """A counter of sent bytes: an interrupt comes before it counts."""

        def __add__(self, size: int) -> int:
            raise KeyboardInterrupt

    def interrupted(frame: bytes) -> None:
        raise KeyboardInterrupt

    async def test(bridge):
        socket, page = await open_page(bridge)
        with monkeypatch.context() as change:
            if sent:
                change.setattr(page._socket, "sent", Interrupted())
            else:
                change.setattr(websocket, "framed", interrupted)
            with pytest.raises(KeyboardInterrupt):
                page.start(*copied(10))
        page.start(*copied(20))
        sizes = {len(decode(*Assembler().receive(await socket.recv())).payload) for _ in page._waiting}
        assert sizes == ({10, 20} if sent else {20}) and page._waiting.keys() == page._connection.pending.keys()

    run(test)


def test_a_page_that_says_nothing_times_out():
    async def test(bridge):
        _socket, page = await open_page(bridge)
        with pytest.raises(Timeout, match="GetStats"):
            await page.request(GetStatsT(), timeout=0.1)
        assert page.lost is None

    run(test)


def test_the_loop_does_not_wait_for_itself():
    loop = LoopThread()

    async def nothing() -> int:
        return 7

    async def inside() -> None:
        loop.call(nothing())

    assert loop.call(nothing()) == 7
    with pytest.raises(PyOrtError, match="wait for itself"):
        loop.call(inside())
    assert threading.current_thread().name != "py_ort"
    loop.loop.call_soon_threadsafe(loop.loop.stop)


def test_it_says_what_it_waits_for():
    async def test(bridge):
        url, future, _ = bridge.expect()
        assert bridge.waits_for(future) == "the browser to ask for it"
        query = url.partition("?")[2]
        for file, wanting in (("index.html", "the page to connect"), ("worker.js", "the worker to connect")):
            await asyncio.to_thread(lambda file=file: urlopen(f"{bridge.http.origin}/{file}?{query}").close())
            assert wanting in bridge.waits_for(future)
        token = url.rpartition("token=")[2]
        socket = await connect(f"ws://127.0.0.1:{bridge.port}/?token={token}", origin=bridge.http.origin)
        assert "hello" in bridge.waits_for(future)
        await socket.close()

    run(test)
