"""One run of a session: from the caller's feeds to the page, and back to outputs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

from py_ort.exceptions import Cancelled, InvalidArgument
from py_ort.feeds import as_feed, check_feed, check_names
from py_ort.options import RunOptions

if TYPE_CHECKING:
    from py_ort.opening import Opened

T = TypeVar("T")


class Run:
    """A run under way; made with it started.

    Args:
        opened: The session.
        names: Outputs wanted.
        input_feed: By the name of the input.
        run_options: See `RunOptions`.
        timeout: Seconds, where the run's options name none.
        on_gpu: Outputs to leave on the GPU, as `DeviceTensor`s.

    Attributes:
        future: Of the page's answer; cancelling it ends the run.
        info: The page's account of the run, once it is over.

    Raises:
        InvalidArgument: A feed does not fit the model.
        Cancelled: `run_options.terminate` is set.
    """

    def __init__(
        self,
        opened: Opened,
        names: Sequence[str],
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        timeout: float | None,
        on_gpu: Collection[str] = (),
    ) -> None:
        self._began = time.perf_counter()
        self._backend, self._names = opened.backend, names
        self._options = run_options or RunOptions()
        self.info: dict[str, Any] = {}
        check_names(opened.inputs, input_feed)
        feeds, types = {}, {}
        for arg in opened.inputs:
            types[arg.name] = arg.type
            feeds[arg.name] = as_feed(arg.name, input_feed.get(arg.name), arg.type, self._backend.lease.page)
            check_feed(arg, feeds[arg.name])
        if self._options.terminate:
            raise Cancelled("run_options.terminate is set")
        if self._options.timeout is not None:
            timeout = self._options.timeout
        self.future = self._backend.start_run(names, feeds, types, on_gpu=on_gpu, timeout=timeout)
        self._options._cancel.append(self.future.cancel)

    def wait(self) -> list[Any]:
        """Wait for the outputs."""
        try:
            self.future.result()
        except CancelledError:
            pass
        except BaseException:
            self.future.cancel()
            self._over()
            raise
        return self.outputs()

    def outputs(self) -> list[Any]:
        """Return the outputs of a run that is over, in the order of their names."""
        self._over()
        try:
            answer = self.future.result()
        except CancelledError:
            raise Cancelled("the run was ended by run_options.terminate") from None
        outputs, self.info = self._backend.outputs_of(answer, self._names)
        self.info["total_ms"] = (time.perf_counter() - self._began) * 1000
        return outputs

    def _over(self) -> None:
        if self.future.cancel in self._options._cancel:
            self._options._cancel.remove(self.future.cancel)


def output_names(opened: Opened, wanted: Sequence[str] | None) -> list[str]:
    """Return the names of the outputs to compute; all of them by default.

    Raises:
        InvalidArgument: The model has no such output.
    """
    names = [arg.name for arg in opened.outputs]
    if unknown := [name for name in wanted or () if name not in names]:
        raise InvalidArgument(f"the model has no output {unknown[0]!r}: it has {', '.join(map(repr, names))}")
    return list(wanted) if wanted else names


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Run something in a thread of its own, whose number is not limited: each only waits for the page."""
    future: Future[T] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=target, name="py_ort-run", daemon=True).start()
    return future
