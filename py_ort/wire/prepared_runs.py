"""Runs like the last ones: a header that differs in the request's number only is packed once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from py_ort.wire.messages import Prepared

#: Packing takes longer than all else that Python does for a small run; this many different runs are remembered.
_KEPT = 64


class PreparedRuns:
    """The headers of a session's runs. Several threads may ask: at worst, one is packed twice."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, Prepared] = OrderedDict()

    def of(self, body: Any, payload_size: int) -> Prepared:
        """Return the message for a `Run`."""
        key = _key(body, payload_size)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = Prepared(body, payload_size)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _key(body: Any, payload_size: int) -> Any:
    feeds = tuple(_feed(feed) for feed in body.feeds)
    return body.session, tuple(body.outputs), tuple(body.outputsOnGpu), body.options, feeds, payload_size


def _feed(feed: Any) -> Any:
    fixed = feed.name, feed.kind, feed.dtype, feed.location, feed.offset, feed.size, feed.gpuId, tuple(feed.dims or ())
    return (*fixed, tuple(_feed(item) for item in feed.items)) if feed.items else fixed
