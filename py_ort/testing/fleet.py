"""Cases spread over browsers elsewhere: each takes the next case when it is there and free, and a case goes to another
browser when its own dies. Browsers that are captured join a fleet at any time, and may leave it and return.

Where there is a core for each browser, it has a process here, which compiles what it runs: to start one takes longer
than all that it does for most cases. A port that has one number is for one process.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from py_ort.browser.browser_options import CAPTURE, BrowserOptions
from py_ort.browser.caller_pages import given
from py_ort.browser.captured import Captured, browser_of
from py_ort.browser.loop import loop_thread
from py_ort.browser.page import Page
from py_ort.browser.pool import pool
from py_ort.exceptions import (
    BrowserCrashed,
    BrowserNotFound,
    ConnectionLost,
    EPFail,
    InvalidArgument,
    PageCrashed,
    PyOrtError,
    Timeout,
)
from py_ort.testing.case import Case
from py_ort.testing.nodes import Node, has_processes
from py_ort.testing.results import FAILED, SKIPPED, Outcome, Results
from py_ort.testing.runner import RunnerOptions, check_ids, run_case, run_cases, skipped, try_providers
from py_ort.testing.worker_pool import WorkerPool

_log = logging.getLogger("py_ort")
#: Errors of a lost browser, unrelated to the case.
GONE = (BrowserCrashed, BrowserNotFound, ConnectionLost, PageCrashed, Timeout)
#: How often a browser may be lost, one case after the other, until it gets no more.
PATIENCE = 2
#: The number of browsers that a case may lose before it counts as failed: it may crash them.
TRIES = 3


def run_anywhere(
    cases: Sequence[Case], options: RunnerOptions, progress: Callable[[int, int, int], None] = lambda *_: None
) -> Results:
    """Run cases as `run_cases` does, also in a fleet and in captured browsers."""
    if cases and (options.fleet or options.browser.browser == CAPTURE):
        with Fleet(options) as fleet:
            return fleet.run(cases, progress)
    return run_cases(cases, options, progress)


class Fleet:
    """Browsers that open from now on, while cases are collected for them; a context manager, which ends them.

    Args:
        options: How cases are run; `fleet` says in which browsers, or `browser` that captured ones share the cases.

    Raises:
        InvalidArgument: It has none.
    """

    def __init__(self, options: RunnerOptions) -> None:
        self._options = options
        asked = options.fleet or (options.browser,)
        started = [browser for browser in asked if browser.browser != CAPTURE]
        self._nodes = [Node(f"{browser.instance} {browser.name}", browser) for browser in started]
        if started and not options.fleet:
            raise InvalidArgument("a fleet has at least one browser")
        self._shelf = _Shelf([node.name for node in self._nodes])
        #: Outcomes of cases; how many more, or fewer, threads run some; errors that end the run.
        self._done: queue.SimpleQueue[tuple[str, Outcome] | BaseException | int] = queue.SimpleQueue()
        self._missing: dict[str, PyOrtError | BrokenProcessPool] = {}
        self._stack = ExitStack()
        if started and has_processes(started, self._options.jobs):
            _give_processes(self._nodes, self._options.kernels, self._stack)
        self._stack.callback(self._shelf.close)
        self._over = threading.Event()
        self._stack.callback(self._over.set)
        self._captor: Future[None] | None = None
        captures = [browser for browser in asked if browser.browser == CAPTURE][:1]
        self._done.put(len(self._nodes) + len(captures))
        for node in list(self._nodes):
            # Daemons: an interrupt does not wait for the case that each is at.
            threading.Thread(target=self._open, args=(node,), name=f"py_ort-{node.name}", daemon=True).start()
        for like in captures:
            self._captor = loop_thread().submit(self._capture(like))
            self._stack.callback(self._captor.cancel)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def run(self, cases: Sequence[Case], progress: Callable[[int, int, int], None] = lambda *_: None) -> Results:
        """Run cases, once; see `run_cases`. Each browser runs cases as soon as it is open.

        Args:
            cases: All of them, with ids of their own.
            progress: Called with (done, failed, total).

        Raises:
            PyOrtError: None of the browsers is there, with all of the providers: why the first is not.
            InvalidArgument: Two cases have one id.
        """
        check_ids(cases)
        results, failed = self._options.results(), 0
        self._shelf.give(cases)
        try:
            for name, outcome in self._outcomes():
                results.cases[name] = outcome
                failed += outcome.status == FAILED
                progress(len(results.cases), failed, len(cases))
                if self._captor and len(results.cases) == len(cases):
                    self._captor.cancel()
        except EPFail as missing:
            return skipped(cases, self._options, missing)
        for name in ("browser", "adapter", "system"):
            told = (getattr(node.place, name) for node in self._nodes if node.place)
            setattr(results, name, ", ".join(dict.fromkeys(filter(None, told))))
        results.fleet = [node.as_dict() for node in self._nodes]
        return results

    def _open(self, node: Node, enter: Callable[[], None] = lambda: None) -> None:
        """Open a browser, and have it run cases."""
        options = self._options
        try:
            enter()
            node.place = node.call(_visit, options, node.browser)
            _work(node, self._shelf, options, lambda name, outcome: self._done.put((name, outcome)))
        except (PyOrtError, BrokenProcessPool) as e:
            node.error = f"{type(e).__name__}: {e}"
            self._missing[node.name] = e
        except BaseException as e:
            self._done.put(e)
        finally:
            self._shelf.leave(node.name)
            self._done.put(-1)

    async def _capture(self, like: BrowserOptions) -> None:
        """Have each browser that is captured run cases, as long as there are some and a browser comes in time."""
        try:
            captured = await pool().captured(like)
            for number in itertools.count(1):
                page = await captured.take(like.launch_timeout)
                node = Node(f"{number} {browser_of(str(page.hello.userAgent))}", like, asked=like.name)
                self._nodes.append(node)
                self._shelf.join(node.name)
                captured.share(1)
                self._done.put(1)
                threading.Thread(target=self._share, args=(node, captured, page), daemon=True).start()
        except PyOrtError as e:
            self._nodes.append(Node(like.name, like, error=f"{type(e).__name__}: {e}"))
            self._missing[like.name] = e
        except Exception as e:
            self._done.put(e)
        finally:
            self._done.put(-1)

    def _share(self, node: Node, captured: Captured, page: Page) -> None:
        """Have a captured browser run cases, until there are no more or it leaves."""
        with ExitStack() as held:

            def enter() -> None:
                node.browser = held.enter_context(given(send, node.browser))

            def send(url: str) -> None:
                loop_thread().call(captured.send(page, url))

            self._open(node, enter)
            loop_thread().loop.call_soon_threadsafe(captured.share, -1)
            if isinstance(self._missing.get(node.name), EPFail):
                if self._captor and all(each.name in self._missing for each in self._nodes):
                    self._captor.cancel()
                self._over.wait()  # if it returned now, it would be captured again

    def _outcomes(self) -> Iterator[tuple[str, Outcome]]:
        working = 0
        while True:
            one = self._done.get()
            if isinstance(one, int):
                working += one
                if not working:
                    break
            elif isinstance(one, BaseException):
                raise one
            else:
                yield one
        if all(node.name in self._missing for node in self._nodes):
            raise self._missing[self._nodes[0].name]
        why = "; ".join(f"{node.name}: {node.error}" for node in self._nodes if node.error)
        for case in self._shelf.left():
            yield case.id, Outcome(SKIPPED, case.skip) if case.skip else Outcome(FAILED, f"no browser is left: {why}")


def _give_processes(nodes: Sequence[Node], kernels: Sequence[Path], stack: ExitStack) -> None:
    """Create each browser's sessions in a separate process, until the stack is closed."""
    if host := next((node.browser.host for node in nodes if node.browser.host), ""):
        _log.warning("%d processes of py_ort listen at %s, each at a port of its own", len(nodes), host)

    def end_all(kind: type[BaseException] | None, *_: object) -> None:
        with ThreadPoolExecutor(len(nodes)) as threads:  # at once: each waits for its browser
            list(threads.map(lambda one: one.end(interrupted=kind is not None), workers))

    workers = [WorkerPool(1, kernels) for _ in nodes]
    stack.push(end_all)
    for node, worker in zip(nodes, workers, strict=True):
        node.call = lambda *call, worker=worker: worker.submit(*call).result()


def _visit(options: RunnerOptions, browser: BrowserOptions) -> Results:
    """Open a browser, try its providers, and start the compiler for its cases meanwhile."""
    warming = threading.Thread(target=_compile_once, name="py_ort-warming", daemon=True)
    warming.start()
    try:
        return try_providers(options, browser)
    finally:
        warming.join()


_warming = threading.Lock()
_warm = False


def _compile_once() -> None:
    """Compile a minimal model, once in each process, so that the compiler is imported."""
    global _warm
    with _warming:
        if _warm:
            return
        from onnx import TensorProto, helper

        from py_ort.compiler import CompileOptions, compile_model
        from py_ort.compiler.load import load_model
        from py_ort.providers import CPU

        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "warming", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        compile_model(load_model(model.SerializeToString()), providers=[CPU], options=CompileOptions())
        _warm = True


def _work(node: Node, shelf: _Shelf, options: RunnerOptions, tell: Callable[[str, Outcome], None]) -> None:
    """Run cases in one browser, as long as it lives and there are some."""
    here, lost = replace(options, browser=node.browser), 0
    while task := shelf.take(node.name):
        case, tried = task
        try:
            outcome = node.call(run_case, case, here, GONE)
        except (*GONE, BrokenProcessPool) as e:
            why, lost = f"{type(e).__name__}: {e}", lost + 1
            tried.append(node.name)
            if len(tried) < TRIES:
                shelf.put_back(case, tried)
            else:
                tell(case.id, Outcome(FAILED, f"on each of {', '.join(tried)} the browser was lost: {why}"))
                shelf.done()
            # A captured browser that left is another one when it returns.
            if lost == PATIENCE or node.asked or isinstance(e, BrokenProcessPool):
                node.error = why
                return
            continue
        lost = 0
        node.cases += 1
        outcome.where = node.name
        tell(case.id, outcome)
        shelf.done()


class _Shelf:
    """Cases that wait for a browser, or browsers that wait for cases. Thread-safe."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._waiting: list[tuple[Case, list[str]]] = []
        self._given = False
        self._under_way = 0
        self._nodes = set(nodes)
        self._changed = threading.Condition()

    def give(self, cases: Sequence[Case]) -> None:
        """Add cases to run."""
        with self._changed:
            self._waiting = [(case, []) for case in reversed(cases)]
            self._given = True
            self._changed.notify_all()

    def take(self, node: str) -> tuple[Case, list[str]] | None:
        """Return a case, and where it was tried; one that came back goes elsewhere, if there is another browser.

        None: there are no more. Waits as long as one that is under way may come back.
        """
        with self._changed:
            while self._waiting or self._under_way or not self._given:
                for index in reversed(range(len(self._waiting))):
                    tried = self._waiting[index][1]
                    if node not in tried or self._nodes.issubset(tried):
                        self._under_way += 1
                        return self._waiting.pop(index)
                self._changed.wait()
            return None

    def put_back(self, case: Case, tried: list[str]) -> None:
        """Have a case that was taken run elsewhere."""
        with self._changed:
            self._waiting.append((case, tried))
            self._under_way -= 1
            self._changed.notify_all()

    def done(self) -> None:
        """One that was taken does not come back."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def join(self, node: str) -> None:
        """A browser takes some, too."""
        with self._changed:
            self._nodes.add(node)

    def leave(self, node: str) -> None:
        """A browser takes no more."""
        with self._changed:
            self._nodes.discard(node)
            self._changed.notify_all()

    def left(self) -> list[Case]:
        """Return the cases that no browser took."""
        with self._changed:
            return [case for case, _ in reversed(self._waiting)]

    def close(self) -> None:
        """Hand out no more cases."""
        with self._changed:
            self._waiting.clear()
            self._given = True
            self._changed.notify_all()
