"""Runs like earlier ones are sent as a reference, with the same meaning."""

from concurrent.futures import Future
from typing import Any

import numpy as np

from py_ort.schema.gen.Run import RunT
from py_ort.wire import Layout, decode, encode
from py_ort.wire.messages import Prepared
from py_ort.wire.prepared_runs import PreparedRuns
from py_ort.wire.tensors import on_gpu
from py_ort.wire.values import pack_value

TYPES = {"ids": "tensor(int64)", "parts": "seq(tensor(float))"}


class Session:
    """A session's runs, each with a cache on the GPU and feeds on the CPU."""

    def __init__(self) -> None:
        self.prepared = PreparedRuns()

    def run(self, cache: int, **feeds: Any) -> tuple[Prepared, Future[None], RunT, int]:
        """Return the message, the future of its answer, the run in full, and its payload's size."""
        layout, future = Layout(), Future[None]()
        own = [pack_value(name, value, TYPES[name], layout) for name, value in feeds.items()]

        def whole() -> RunT:
            body = RunT()
            body.outputs, body.outputsOnGpu, body.options = ["logits", "present"], ["present"], "{}"
            body.feeds = [*own, on_gpu("past", 1, [1, 2, cache, 4], cache)]
            return body

        message = self.prepared.of((cache,), 5, own, whole, layout.size, future)
        return message, future, whole(), layout.size

    def finish(self, future: Future[None], error: Exception | None = None) -> None:
        if error:
            future.set_exception(error)
        else:
            future.set_result(None)


def read(message: Prepared, request: int = 9) -> Any:
    received = decode(message.header(request), memoryview(bytes(1 << 16)))
    assert (received.id, received.kind) == (request, "Run")
    return received


def test_the_first_is_told_whole_and_later_ones_by_what_is_new() -> None:
    session = Session()
    first, future, _, _ = session.run(3, ids=np.arange(4))
    told = read(first).body
    assert (told.session, told.again, told.outputs, told.outputsOnGpu) == (5, False, ["logits", "present"], ["present"])
    assert [feed.name for feed in told.feeds] == ["ids", "past"] and told.feeds[1].gpuId == 3
    session.finish(future)
    second, future, _, size = session.run(3, ids=np.arange(7))
    again = read(second)
    assert again.body.again and again.body.kept == told.kept > 0 and not again.body.outputs
    assert [(feed.name, feed.dims, feed.size) for feed in again.body.feeds] == [("ids", [7], 56)]
    assert len(again.payload) == size
    session.finish(future)


def test_a_header_made_by_its_form_says_what_a_packed_one_says() -> None:
    session = Session()
    for cache, ids in ((3, np.arange(4)), (4, np.arange(9)), (900000, np.zeros(0, np.int64)), (5, np.arange(1))):
        parts = [np.zeros((cache % 7, 2), np.float32)]
        message, future, body, size = session.run(cache, ids=ids, parts=parts)
        made = read(message).body
        body.session, body.kept, body.replaces = made.session, made.kept, made.replaces
        expected = decode(encode(9, body, size), memoryview(bytes(1 << 16))).body
        assert _plain(made) == _plain(expected)
        session.finish(future)


def _plain(thing: Any) -> Any:
    if isinstance(thing, list):
        return [_plain(item) for item in thing]
    return {name: _plain(value) for name, value in vars(thing).items()} if hasattr(thing, "__dict__") else thing


def test_what_the_page_may_not_have_is_told_whole() -> None:
    session = Session()
    _, first, _, _ = session.run(3, ids=np.arange(4))
    second, future, _, _ = session.run(3, ids=np.arange(4))
    assert not read(second).body.again
    session.finish(first, ValueError("it failed"))
    session.finish(future, ValueError("it failed"))
    third, future, _, _ = session.run(3, ids=np.arange(4))
    assert not read(third).body.again
    session.finish(future)
    fourth, _, _, _ = session.run(3, ids=np.arange(4))
    assert read(fourth).body.again


def test_old_ones_make_room_but_for_those_under_way() -> None:
    session = Session()
    kept, futures = [], []
    for cache in range(1, 65):
        message, future, _, _ = session.run(cache, ids=np.arange(4))
        kept.append(read(message).body.kept)
        futures.append(future)
    for future in futures[1:]:
        session.finish(future)
    replaced = [read(session.run(cache, ids=np.arange(4))[0]).body.replaces for cache in (100, 101)]
    assert replaced == kept[1:3]
