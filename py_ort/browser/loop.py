"""The background thread, with an asyncio loop that does all of py_ort's I/O.

No I/O runs in the caller's thread, so sessions work the same in scripts, in Jupyter and in asyncio programs.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from py_ort.exceptions import PyOrtError
from py_ort.signal_handlers import suppress
from py_ort.uninterrupted import wait_for

T = TypeVar("T")
_log = logging.getLogger("py_ort.browser")


class _Loop(asyncio.SelectorEventLoop):
    """A loop that does not disturb its callers.

    A thread that wakes the loop does not lose an OSError that a signal handler raises meanwhile. A terminal's signals
    do not reach processes that the loop starts: Playwright's driver ends with this process, and then removes its
    browsers' folders.
    """

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        return await super().subprocess_exec(*args, **options, start_new_session=True)

    def _write_to_self(self) -> None:
        bell: socket.socket | None = self._csock  # type: ignore[attr-defined]
        if bell is not None:
            with suppress(OSError):  # its buffer is full: the loop is awake
                bell.send(b"\0")


class LoopThread:
    """An asyncio loop in a daemon thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop() if sys.platform == "win32" else _Loop()
        self._thread = threading.Thread(target=self._main, name="py_ort", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(_unheard)
        self.loop.run_forever()
        self.loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the loop; return a future for other threads."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it. An interrupt (Ctrl-C) of the waiting thread cancels it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise PyOrtError("a synchronous call of py_ort inside its own event loop would wait for itself")
        future = self.submit(coroutine)
        try:
            return wait_for(future)
        except BaseException:
            future.cancel()
            raise


#: Predicates of unfetched exceptions: true if the exception only reports a deliberate end.
_ends: list[Callable[[BaseException], bool]] = []


def end_of(tell: Callable[[BaseException], bool]) -> None:
    """Log unfetched exceptions as details, without a traceback, if this predicate is true for them."""
    _ends.append(tell)


def _unheard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if error is not None and any(tell(error) for tell in _ends):
        _log.debug("%s: %s", context.get("message", "nobody was told"), error)
    else:
        loop.default_exception_handler(context)


_instance: LoopThread | None = None
_lock = threading.Lock()
_at_exit: list[Callable[[], Coroutine[Any, Any, None]]] = []


def loop_thread() -> LoopThread:
    """Return the loop, started at the first call."""
    global _instance
    with _lock:
        if _instance is None:
            _instance = LoopThread()
            atexit.register(_at_end, os.getpid())
        return _instance


def soon(callback: Callable[[], object]) -> None:
    """Call a function in the loop later; never fails, even while Python shuts down.

    Without a loop it does nothing: a forked child has no loop until it makes its own session.
    """
    if _instance is not None:
        with suppress(RuntimeError):  # the loop is closed
            _instance.loop.call_soon_threadsafe(callback)


def at_exit(closing: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Register a coroutine function to run in the loop when Python ends."""
    _at_exit.append(closing)


def _at_end(pid: int) -> None:
    if os.getpid() == pid:
        shut_down()


def shut_down() -> None:
    """Run the functions registered with `at_exit`, and wait for them; Python calls this at its end."""
    if _instance is None:
        return
    for closing in reversed(_at_exit):
        with suppress(Exception):  # no one is left to handle it
            _instance.submit(closing()).result(10)


def _forget() -> None:
    """Forget the loop in a forked child: its thread stayed with the parent."""
    global _instance, _lock
    _instance, _lock = None, threading.Lock()
    _at_exit.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
