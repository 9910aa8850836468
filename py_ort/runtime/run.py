"""A run of a session: from the caller's feeds to the page's answer, and to outputs."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from py_ort.boundary import typed_errors
from py_ort.exceptions import Cancelled, InvalidArgument, PyOrtError, Timeout, WrongType
from py_ort.log import SessionLog
from py_ort.runtime.options import RunOptions
from py_ort.runtime.values.device_tensor import DeviceTensor
from py_ort.runtime.values.feeds import SPARSE, as_feed, check_feed, check_names, is_fit, tensor_of_sparse
from py_ort.runtime.values.maps import maps_of_tensor, tensor_of_map
from py_ort.runtime.values.output_location import OnGpu
from py_ort.runtime.values.sparse_tensor import SparseTensor
from py_ort.signal_handlers import from_handler
from py_ort.suggestion import did_you_mean
from py_ort.uninterrupted import Waiting, start
from py_ort.wire.json_fields import RunInfo, Timed

if TYPE_CHECKING:
    from py_ort.profiling.profile import RunTimes
    from py_ort.runtime.opened import Opened
    from py_ort.runtime.session_creation import Progress
    from py_ort.wire import Answer, ProgressReport

T = TypeVar("T")


def _tell(progress: Progress, report: ProgressReport, log: SessionLog) -> None:
    """Call a `progress`; its errors are warnings, since the run is not at fault."""
    try:
        progress(report.stage, report.done, report.total)
    except Exception as e:
        log.warning("progress raised %s: %s", type(e).__name__, e)


class Run:
    """A run of a session; `start` starts it, once.

    Args:
        opened: The session.
        names: Outputs wanted.
        run_options: See `RunOptions`.
        timeout: Seconds that the run may take; None: no limit.
        log: The run's log.
        on_gpu: Outputs to leave on the device, as `DeviceTensor`s, or to write into tensors there.
        profile: Detail of the page's account of the GPU's time, unless `run_options` have their own.
        progress: Called in the loop's thread while the page compiles shaders.

    Attributes:
        repeatable: True if another try has the same effect: the run reads and writes nothing on the device.
        future: The page's answer; cancelling it ends the run.
        info: The page's account of the run, once it is over.
    """

    def __init__(
        self,
        opened: Opened,
        names: Sequence[str],
        run_options: RunOptions,
        timeout: float | None,
        log: SessionLog,
        on_gpu: OnGpu | None = None,
        profile: Timed | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._opened, self._runtime, self._session, self._names = opened, opened.runtime, opened.session, names
        self._options, self._timeout, self._log, self._on_gpu = run_options, timeout, log, on_gpu
        self._profile, self._progress = run_options._profile or profile, progress
        self._maps = {arg.name: arg for arg in opened.outputs if arg.keys is not None}
        self._sparse = {arg.name for arg in opened.outputs if arg.type.startswith(SPARSE)}
        self.future: Future[Answer] = Future()
        self._waits = Waiting(self.future)
        self.repeatable = True
        self.info: dict[str, Any] = {}

    @typed_errors("starting the run")
    def start(self, input_feed: Mapping[str, Any], spent: float = 0.0) -> None:
        """Send the run to the page.

        Args:
            input_feed: By the name of the input.
            spent: Seconds of the timeout that an earlier try took, and the wait for a worker.

        Raises:
            InvalidArgument: A feed does not fit the model.
            Cancelled: `run_options.terminate` is set.
            Timeout: No time is left.
            WorkerEnded: A value on the GPU was lost with its worker.
        """
        self._began = time.perf_counter()
        options, timeout, main = self._options, self._timeout, self._session
        feeds, types = self._feeds(input_feed)
        graph_id = options.graph_id
        bound = self._check_bound()
        self.repeatable = not bound and not any(isinstance(feed, DeviceTensor) for feed in feeds.values())
        if options.terminate:
            raise Cancelled("the run did not begin: run_options.terminate is set")
        if timeout is not None and spent >= timeout:
            raise Timeout(
                f"the run was not done within its {timeout:g} s, of which it waited {spent:.3g} s because of workers "
                "that had to be ended: give it a longer timeout"
            )
        self._sent = time.perf_counter()
        # Not a method: the future would hold this run, with its feeds and outputs, in a cycle.
        heard = self._heard = [self._sent]
        if self._profile:
            self.future.add_done_callback(lambda _: heard.append(time.perf_counter()))
        plans, progress, log = self._opened.shape_plans, self._progress, self._log
        try:
            session = plans.enter(feeds, self.future) if plans else None
            self._runtime.start_run(
                session if session is not None and session.page is main.page else main,
                self._names,
                feeds,
                types,
                self.future,
                on_gpu=self._on_gpu,
                graph_id=graph_id,
                timeout=None if timeout is None else timeout - spent,
                profile=self._profile,
                progress=None if progress is None else lambda report: _tell(progress, report, log),
            )
        except BaseException:
            self.future.cancel()
            raise
        options._cancel.append(self.future.cancel)
        if options.terminate:  # another thread has set it meanwhile, when there was no future to cancel
            self.future.cancel()

    def _feeds(self, input_feed: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the feeds in the page's form, and their types, both by name."""
        inputs, page = self._opened.inputs, self._session.page
        check_names(inputs, input_feed)
        feeds, types = {}, {}
        for arg in inputs:
            value: Any = input_feed.get(arg.name)
            if is_fit(arg, value, page):
                types[arg.name], feeds[arg.name] = arg.type, value.on_device
                continue
            if arg.keys is not None:
                arg, value = tensor_of_map(arg, value)
            elif arg.type.startswith(SPARSE):
                arg, value = tensor_of_sparse(arg, value)
            types[arg.name] = arg.type
            feeds[arg.name] = as_feed(arg.name, value, arg.type, page)
            check_feed(arg, feeds[arg.name])
        return feeds, types

    def _check_bound(self) -> bool:
        """Return True if outputs are bound to tensors on the device; check that these are in the session's page."""
        page, bound = self._session.page, False
        for name, tensor in (self._on_gpu or {}).items():
            if tensor is None:
                continue
            bound = True
            tensor.live(f"the value bound to output {name!r}")
            if tensor.page is not page:
                lost = InvalidArgument(f"the value bound to output {name!r} is in another page than the session")
                raise tensor.page.lost.again() if tensor.page.lost else lost
        return bound

    def wait(self) -> None:
        """Wait for the page's answer or error. A signal handler's exception (Ctrl-C) ends the run."""
        try:
            self._waits.wait()
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """End the run; outputs on the GPU are freed, even if the run is over already."""
        self.over()
        if not self.future.cancel() and not self.future.exception():
            with contextlib.suppress(PyOrtError):
                self._received()

    @typed_errors("reading the outputs")
    def outputs(self) -> list[Any]:
        """Return the outputs of a finished run, in the order of their names."""
        self.over()
        outputs, told = self._received()
        self._ended = time.perf_counter()
        self.info = {**told, "total_ms": (self._ended - self._began) * 1000}
        if self._log.enabled(logging.DEBUG):
            in_page = self.info.get("run_ms", 0.0)
            self._log.debug("run: %.3f ms, of them %.3f in the page", self.info["total_ms"], in_page)
        return [self._as_typed(name, value) for name, value in zip(self._names, outputs, strict=True)]

    def _as_typed(self, name: str, value: Any) -> Any:
        if name in self._maps:
            return maps_of_tensor(self._maps[name], value)
        return SparseTensor.of_dense(value) if name in self._sparse and isinstance(value, np.ndarray) else value

    def _received(self) -> tuple[list[Any], RunInfo]:
        try:
            answer = self.future.result()
        except CancelledError as e:
            if from_handler(e):
                raise
            raise Cancelled("the run was ended by run_options.terminate") from None
        return self._session.outputs_of(answer, self._names, self._on_gpu)

    @property
    def times(self) -> RunTimes:
        """Times of the run's steps; for a run with a profile, after `outputs`."""
        from py_ort.profiling.profile import RunTimes

        return RunTimes(self._began, self._sent, self._heard[-1], self._ended)

    def over(self) -> None:
        """Unregister the run from its options."""
        if self.future.cancel in self._options._cancel:
            self._options._cancel.remove(self.future.cancel)


def output_names(opened: Opened, wanted: Sequence[str] | None) -> list[str]:
    """Return the names of the outputs to compute; all of them by default.

    Raises:
        InvalidArgument: The model has no such output.
    """
    names = [arg.name for arg in opened.outputs]
    known = set(names)
    if wanted and isinstance(wanted, str):
        raise WrongType(f"outputs are a list of names: [{wanted!r}]")
    if wrong := [name for name in wanted or () if not isinstance(name, str)]:
        raise WrongType(f"outputs are a list of names, and {wrong[0]!r} is none")
    if unknown := [name for name in wanted or () if name not in known]:
        raise InvalidArgument(
            f"the model has no output {unknown[0]!r}{did_you_mean(unknown[0], names)}: "
            f"it has {', '.join(map(repr, names))}"
        )
    return list(wanted) if wanted else names


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Run a function in a new thread. The number of threads is not limited: each only waits for the page."""
    future: Future[T] = Future()

    def target() -> None:
        try:
            future.set_result(work())
        except BaseException as e:
            future.set_exception(e)

    start(threading.Thread(target=target, name="py_ort-run", daemon=True))
    return future
