"""Runs like earlier runs: the page keeps their equal parts, and headers that differ only in numbers are packed once.

Packing a header takes longer than all other work that Python does for a small run. A decoder's step has a feed and an
output for each cache, but only its token and its mask are new.
"""

from __future__ import annotations

import itertools
import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

from py_ort.schema.gen.Message import Message
from py_ort.schema.gen.Run import Run, RunT
from py_ort.wire.messages import Prepared, encode, field_at

#: Number of different runs remembered, here and in the page, and of forms of headers.
_KEPT = 64
# Indices of fields in the tables of messages.fbs.
_ID, _PAYLOAD_SIZE = 0, 3
_SESSION, _KEPT_AS, _REPLACES = 0, 5, 6
_DIMS, _GPU_ID, _OFFSET, _SIZE = 2, 4, 5, 6

_WORD, _LONG = struct.Struct("<I"), struct.Struct("<Q")


@dataclass
class _Kept:
    """A run that the page keeps.

    Attributes:
        number: Its number.
        users: Futures of such runs that are not over.
        known: True if one such run is over, so that the page has it.
    """

    number: int
    users: set[Future[Any]] = field(default_factory=set)
    known: bool = False

    def over(self, future: Future[Any]) -> None:
        self.known |= not future.cancelled() and future.exception() is None
        self.users.discard(future)


class PreparedRuns:
    """The runs of a session that may be repeated; safe to use in several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._forms: OrderedDict[Hashable, _Form] = OrderedDict()
        self._numbers, self._lock = itertools.count(1), Lock()

    def of(
        self,
        key: Hashable,
        session: int,
        own: Sequence[Any],
        whole: Callable[[], RunT],
        payload_size: int,
        future: Future[Any],
    ) -> Prepared:
        """Return the message for a `Run`.

        Args:
            key: Equal for runs that differ only in the feeds on the CPU.
            session: The page's number of the session.
            own: Descriptions of the feeds on the CPU.
            whole: Returns the complete run.
            payload_size: Size of the feeds in bytes.
            future: The answer of this run, before the run is sent. Cancel it if the run is not sent.
        """
        with self._lock:
            kept, replaces = self._kept.get(key), 0
            if kept is None:
                replaces = self._make_room()
                kept = self._kept[key] = _Kept(next(self._numbers))
            self._kept.move_to_end(key)
            future.add_done_callback(kept.over)  # first: a signal handler may raise between the two lines
            kept.users.add(future)
        body = RunT() if kept.known else whole()
        if kept.known:
            body.again, body.feeds = True, own
        body.session, body.kept, body.replaces = session, kept.number, replaces
        return self._packed(body, payload_size)

    def _make_room(self) -> int:
        """Forget the least recently used run and return its number; 0 if no run must be forgotten, or none can be."""
        if len(self._kept) >= _KEPT:
            for key, kept in self._kept.items():
                if not kept.users:
                    return self._kept.pop(key).number
        return 0

    def _packed(self, body: RunT, payload_size: int) -> Prepared:
        names = tuple(body.outputs or ()), tuple(body.outputsOnGpu or ())
        key = body.again, names, body.options, tuple(map(_form_of, body.feeds))
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = _Form(body)
            while len(self._forms) > _KEPT:
                self._forms.popitem(last=False)
        return form.filled(body, payload_size)


def _form_of(feed: Any) -> Hashable:
    """Return the description of a feed in a header: of a tensor without its numbers, of other values complete."""
    if feed.items is None:
        return feed.name, feed.dtype, feed.location, len(feed.dims)
    return feed.name, feed.kind, feed.dtype, tuple(map(_all_of, feed.items))


def _all_of(item: Any) -> Hashable:
    inner = tuple(map(_all_of, item.items or ()))
    return item.kind, item.dtype, tuple(item.dims or ()), item.offset, item.size, inner


class _Places(NamedTuple):
    """Offsets of a feed's numbers in a header."""

    dims: struct.Struct
    dims_at: int
    gpu_id: int
    offset: int
    size: int


class _Form:
    """The header of a `Run`, and the offsets of its numbers."""

    def __init__(self, body: RunT) -> None:
        self._header = encode(1, body, whole=True)
        message = Message.GetRootAs(self._header)
        run = Run()
        run.Init(self._header, message.Body().Pos)
        self._id, self._payload_size = (field_at(message._tab, field) for field in (_ID, _PAYLOAD_SIZE))
        self._session, self._kept, self._replaces = (
            field_at(run._tab, field) for field in (_SESSION, _KEPT_AS, _REPLACES)
        )
        tensors = [(i, run.Feeds(i)._tab) for i, feed in enumerate(body.feeds) if feed.items is None]
        self._feeds = [(i, _places(tab, len(body.feeds[i].dims))) for i, tab in tensors]

    def filled(self, body: RunT, payload_size: int) -> Prepared:
        """Return the message of a run of this form."""
        header = bytearray(self._header)
        for at, number in (
            (self._session, body.session),
            (self._kept, body.kept),
            (self._replaces, body.replaces),
        ):
            _WORD.pack_into(header, at, number)
        _LONG.pack_into(header, self._payload_size, payload_size)
        for i, places in self._feeds:
            feed = body.feeds[i]
            places.dims.pack_into(header, places.dims_at, *feed.dims)
            _WORD.pack_into(header, places.gpu_id, feed.gpuId)
            _LONG.pack_into(header, places.offset, feed.offset)
            _LONG.pack_into(header, places.size, feed.size)
        return Prepared("Run", body.session, header, self._id)


def _places(tab: Any, rank: int) -> _Places:
    dims = tab.Vector(field_at(tab, _DIMS) - tab.Pos)
    gpu_id, offset, size = (field_at(tab, field) for field in (_GPU_ID, _OFFSET, _SIZE))
    return _Places(struct.Struct(f"<{rank}I"), dims, gpu_id, offset, size)
