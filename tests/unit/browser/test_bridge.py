"""The websocket server, with clients that are not browsers: who may come in, and what happens when one leaves."""

import asyncio
import threading

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from py_ort.browser.bridge import Bridge
from py_ort.browser.loop import LoopThread
from py_ort.exceptions import ConnectionLost, PyOrtError, Timeout
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.Hello import HelloT
from py_ort.wire import encode, frames


def hello(token: str) -> bytes:
    body = HelloT()
    body.token, body.version = token, 1
    (frame,) = frames(encode(0, body))
    return frame


async def open_page(bridge: Bridge):
    url, future = bridge.expect()
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
        assert page.hello.version == 1 and page.lost is None
        await socket.close()

    run(test)


@pytest.mark.parametrize("change", ["token", "origin", "reuse"])
def test_strangers_are_refused(change):
    async def test(bridge):
        url, _ = bridge.expect()
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
    loop.soon(loop.loop.stop)
