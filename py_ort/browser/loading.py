"""The loading of a plan into a page, with its progress reported in the thread that waits.

The receiver of reports is the user's own code, which may raise, wait or use other sessions. The loop's thread must do
none of these.
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
#: Largest plan in bytes that is sent with the request; a fetch would cost another round trip.
SENT = 1 << 18


class Loading(Generic[T]):
    """A context that cancels the loading if it is left early.

    Args:
        http: Serves plan and weights until the context is left.
        plan: The plan.
        weights: The plan's weights.
        load: Loads them in a page; arguments: the URLs of plan and weights, and a function for the page's reports. The
            plan with the URL "" is sent.
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
        """Yield the page's reports until the loading ends."""
        with waiting_for(self._future):
            yield from iter(self._reports.get, None)

    @typed_errors("loading the plan into the page")
    def result(self) -> T:
        """Wait for the end of the loading, and return the result of `load`.

        Raises:
            PyOrtError: The page's error, or the error of weights that could not be made.
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
