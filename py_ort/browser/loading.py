"""A plan on its way into a page. What the page reports meanwhile is told in the thread that waits for it.

Whoever is told is the user's own code, which may raise, wait or use other sessions: none of that in the loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from py_ort.boundary import typed_errors
from py_ort.browser.http_server import HttpServer
from py_ort.browser.loop import loop_thread
from py_ort.exceptions import Fail
from py_ort.uninterrupted import wait_for, waiting_for
from py_ort.wire import ProgressReport
from py_ort.wire.parts import Part

T = TypeVar("T")
Report = Callable[[ProgressReport], None]
#: Bytes of a plan that is sent with the request: to fetch it takes another way there and back.
SENT = 1 << 18


class Loading(Generic[T]):
    """A context, which ends the loading if it is left before that is done.

    Args:
        http: Serves plan and weights as long as they are needed.
        plan: The plan.
        weights: Its weights.
        load: Has a page load them: given both URLs, and what to call with the page's reports. A plan with the URL "" is
            sent.
    """

    def __init__(
        self,
        http: HttpServer,
        plan: bytes,
        weights: Sequence[Part],
        load: Callable[[str, str, Report], Coroutine[Any, Any, T]],
    ) -> None:
        self._reports: SimpleQueue[ProgressReport | None] = SimpleQueue()
        self._http = http
        self._urls = http.publish([plan]) if len(plan) > SENT else "", http.publish(weights)
        self._future = loop_thread().submit(load(*self._urls, self._reports.put))
        self._future.add_done_callback(lambda _: self._reports.put(None))

    def reports(self) -> Iterator[ProgressReport]:
        """Yield what the page reports, until it is done."""
        with waiting_for(self._future):
            yield from iter(self._reports.get, None)

    @typed_errors("loading the plan into the page")
    def result(self) -> T:
        """Wait for the end of it, and return what `load` returned.

        Raises:
            PyOrtError: What the page says; of weights that could not be made for it, what was wrong with those.
        """
        try:
            return wait_for(self._future)
        except Fail as e:
            if why := self._http.error_of(self._urls[1]):
                raise why from e
            raise

    def __enter__(self) -> Loading[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self._future.cancel()
        for url in filter(None, self._urls):
            self._http.withdraw(url)
