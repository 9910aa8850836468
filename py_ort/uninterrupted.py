"""Work that an interrupt (Ctrl-C) cannot break half way: another thread does it, and the main thread only waits.

Python raises KeyboardInterrupt in the main thread, at any place. In the middle of an import it leaves packages
incomplete, for the rest of the process. Between the creation of an object and its assignment it leaks the object.
"""

from __future__ import annotations

import _thread
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")
#: False if Python is WebAssembly in a page, without threads and processes.
HAS_THREADS = sys.platform != "emscripten"


class NotYet(Exception):
    """Work continues, and no caller waits for it any longer."""


class Waiting:
    """Waits for a future without `Future`'s own locks, which a signal handler's exception may leave held.

    Args:
        future: Preferably one that cannot have ended yet.
    """

    def __init__(self, future: Future[Any]) -> None:
        self._under_way = under_way = threading.Lock()
        under_way.acquire()
        future.add_done_callback(lambda _: under_way.release())

    def wait(self, patience: float | None = None) -> bool:
        """Wait once, up to this number of seconds; return True if the future has ended."""
        return self._under_way.acquire(timeout=-1 if patience is None else patience)


def start(thread: threading.Thread) -> None:
    """Start a thread without waiting until it runs, which `Thread.start` does with locks like those of `Future`."""
    _thread.start_new_thread(thread.start, ())


class Work:
    """Work that one thread does for another, which may stop waiting for it."""

    def __init__(self) -> None:
        self._future: Future[Any] = Future()
        self._end = Waiting(self._future)
        self._waits: list[Future[Any]] = []
        self._lock = threading.Lock()
        self.abandoned = False

    def start(self, work: Callable[[], object]) -> None:
        """Do it, in a thread that ends with the program, like the waiting one."""
        context = contextvars.copy_context()
        context.run(_current.set, self)

        def target() -> None:
            try:
                self._future.set_result(context.run(work))
            except BaseException as e:
                self._future.set_exception(e)

        start(threading.Thread(target=target, name="py_ort-work"))

    def result(self, patience: float | None) -> Any:
        """Wait for it, up to this number of seconds; None: until it is done."""
        if not self._end.wait(patience):
            raise NotYet
        return self._future.result()

    def abandon(self, undo: Callable[[Any], object]) -> None:
        """Stop waiting: cancel the futures that the work waits for, and undo a result that arrives nevertheless."""
        with self._lock:
            self.abandoned = True
            waits = list(self._waits)
        for future in waits:
            future.cancel()
        self._future.add_done_callback(lambda done: None if done.exception() else undo(done.result()))

    @contextmanager
    def waits_for(self, future: Future[Any]) -> Iterator[None]:
        """The work waits for this future inside the context."""
        with self._lock:
            self._waits.append(future)
            if self.abandoned:
                future.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._waits.remove(future)


_current: contextvars.ContextVar[Work | None] = contextvars.ContextVar("py_ort_work", default=None)


def uninterrupted(
    work: Callable[[], T], undo: Callable[[T], object] = lambda result: None, patience: float | None = None
) -> T:
    """Do some work in another thread, and wait for it.

    Args:
        work: The work.
        undo: Called with the result if no caller waits for it any more.
        patience: Seconds to wait; then the work continues as if the caller waited.

    Raises:
        NotYet: It took longer.

    An interrupt of the wait cancels the future that the work itself waits for (`wait_for`), and is raised at once. The
    work ends at its next `check`. If it succeeds after all, `undo` receives its result.
    """
    if _current.get() is not None or not HAS_THREADS:
        return work()
    under_way = Work()
    try:
        under_way.start(work)
        result: T = under_way.result(patience)
    except NotYet:
        raise
    except BaseException:
        under_way.abandon(undo)
        raise
    return result


def wait_for(future: Future[T]) -> T:
    """Wait for a future, as a part of such work or without any.

    Raises:
        CancelledError: No caller waits for the work.
    """
    with waiting_for(future):
        Waiting(future).wait()
        return future.result()


def waiting_for(future: Future[Any]) -> AbstractContextManager[None]:
    """A context in which the work waits for this future; it is cancelled if no caller waits for the work."""
    work = _current.get()
    return nullcontext() if work is None else work.waits_for(future)


def check() -> None:
    """End work that no caller waits for, or that exceeds its `time_limit`. Long loops call this.

    Raises:
        CancelledError: No caller waits for the work.
    """
    work = _current.get()
    if work is not None and work.abandoned:
        raise CancelledError
    limit = _limit.get()
    if limit is not None and time.monotonic() > limit[0]:
        raise limit[1]()


_limit: contextvars.ContextVar[tuple[float, Callable[[], Exception]] | None] = contextvars.ContextVar(
    "py_ort_time_limit", default=None
)


@contextmanager
def time_limit(seconds: float | None, error: Callable[[], Exception]) -> Iterator[None]:
    """Let `check` raise an error once the work inside has taken this number of seconds; None: no limit."""
    token = _limit.set(None if seconds is None else (time.monotonic() + seconds, error))
    try:
        yield
    finally:
        _limit.reset(token)


def time_left() -> float:
    """Return the remaining seconds of the innermost `time_limit`; infinity without one."""
    limit = _limit.get()
    return float("inf") if limit is None else max(limit[0] - time.monotonic(), 0.0)


def interruptible() -> bool:
    """Return True if an interrupt may be raised here, outside of imports: an import may hold locks others need."""
    if threading.current_thread() is not threading.main_thread():
        return False
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "exec_module" and code.co_filename.startswith("<frozen importlib"):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return True
