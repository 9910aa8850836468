"""Plans for single shapes of a session's inputs, besides the plan for all shapes.

Most models with open dimensions gain nothing from them: the compiler resolves their shape arithmetic by names. In other
models a plan for given shapes saves the page the rest of that arithmetic. The plan is made in the background once
shapes came twice, at level `all` only; meanwhile runs use the plan for all shapes. All plans share the weights in the
page.

Each plan is a session of its own in the page. At most four are kept, and shapes that replace each other must come more
and more often. If as many other shapes come in between, as in texts that grow token by token, no plan is made: it would
be replaced before its first use.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from py_ort.exceptions import PyOrtError, WorkerEnded

if TYPE_CHECKING:
    from py_ort.compiler import CompileOptions, NodeArg
    from py_ort.runtime.loaded import Loaded
    from py_ort.runtime.packaged import PackagedPlans
    from py_ort.runtime.planning import Planned, Planner

_log = logging.getLogger("py_ort")

Shapes: TypeAlias = "tuple[tuple[str, tuple[int, ...]], ...]"

#: Configuration entry of sessions: "0" never; "1" (the default) in the background, once shapes came twice; "first" at
#: once, before the first run with these shapes.
ENTRY = "session.specialize_shapes"
_KEPT = 4
_SIGHTINGS = 2
_REMEMBERED = 64


@dataclass
class _Made:
    """A session of the page for some shapes. `users` are its open runs."""

    session: Loaded
    users: set[Future[Any]] = field(default_factory=set)


def worthwhile(inputs: Sequence[NodeArg], planned: Planned) -> bool:
    """Return True if the page would have less work with known shapes."""
    if any(arg.keys is not None for arg in inputs):
        return False
    tensors = [arg for arg in inputs if arg.type.startswith("tensor")]
    is_open = any(arg.dims is None or not all(isinstance(d, int) for d in arg.dims) for arg in tensors)
    return is_open and planned.placement.looks_at_shapes()


class ShapePlans:
    """The plans of one session for single shapes; if there are too many, the least recently used is released.

    Args:
        planner: Makes plans of the model.
        providers: As for the plan for all shapes.
        options: As for the plan for all shapes.
        create: Loads a plan into the page and returns its session.
        release: Releases such a session.
        mode: See `ENTRY`.
    """

    def __init__(
        self,
        planner: Planner | PackagedPlans,
        providers: Sequence[str],
        options: CompileOptions,
        create: Callable[[Planned], Loaded],
        release: Callable[[Loaded], None],
        mode: str = "1",
    ) -> None:
        self._planner, self._providers, self._options = planner, list(providers), options
        self._create, self._release, self._mode = create, release, mode
        self._lock = threading.Lock()
        self._seen: OrderedDict[Shapes, int] = OrderedDict()
        self._made: OrderedDict[Shapes, _Made] = OrderedDict()
        self._working: threading.Thread | None = None
        self._evictions = 0
        self._closed = False

    def enter(self, feeds: Mapping[str, Any], run: Future[Any]) -> Loaded | None:
        """Return the page's session for these feeds, kept until the run is over; None: the session for all shapes."""
        shapes = _shapes_of(feeds)
        if shapes is None or self._mode == "0":
            return None
        if self._mode == "first":
            self._make_if(shapes, 1)
            self.wait()
        with self._lock:
            self._forget_gone()
            made = self._made.get(shapes)
            if made is not None:
                self._made.move_to_end(shapes)
                run.add_done_callback(made.users.discard)
                made.users.add(run)
                return made.session
        if self._mode != "first":
            # Shapes that replace each other must come more and more often.
            self._make_if(shapes, _SIGHTINGS * (1 + self._evictions))
        return None

    def wait(self) -> None:
        """Wait for the plan that is being made, if any."""
        working = self._working
        if working is not None:
            working.join()

    def shapes(self) -> list[dict[str, list[int]]]:
        """Return the shapes with plans, the most recently used last."""
        with self._lock:
            return [{name: list(shape) for name, shape in shapes} for shapes in self._made]

    def sessions(self) -> list[Loaded]:
        """Return the page's sessions for single shapes."""
        with self._lock:
            self._forget_gone()
            return [made.session for made in self._made.values()]

    def close(self) -> None:
        """Make no more plans. The page's sessions are released with the session for all shapes."""
        with self._lock:
            self._closed = True
            self._made.clear()

    def _forget_gone(self) -> None:
        """Forget sessions whose worker was ended; they are made again when needed."""
        for shapes in [shapes for shapes, made in self._made.items() if made.session.gone]:
            del self._made[shapes]

    def _make_if(self, shapes: Shapes, sightings: int) -> None:
        with self._lock:
            lately = shapes in islice(reversed(self._seen), _KEPT)
            count = self._seen.pop(shapes, 0)
            self._seen[shapes] = count + 1 if lately else 1
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            busy = self._working is not None and self._working.is_alive()
            if busy or self._closed or shapes in self._made or self._seen[shapes] < sightings:
                return
            if not self._planner.offers(dict(shapes)):
                return
            self._working = threading.Thread(target=self._make, args=(shapes,), name="py_ort-shapes", daemon=True)
            self._working.start()

    def _make(self, shapes: Shapes) -> None:
        try:
            planned = self._planner.plan(self._providers, replace(self._options, input_shapes=dict(shapes)))
            session = self._create(planned)
            self._planner.store()
        except WorkerEnded:
            return
        except PyOrtError as e:
            # If something is wrong, the plan for all shapes raises the error.
            _log.info("no plan for the shapes %s: %s", dict(shapes), e)
            with self._lock:
                self._mode = "0"
            return
        with self._lock:
            gone = [] if not self._closed else [session]
            if not self._closed:
                self._made[shapes] = _Made(session)
                idle = [key for key, made in self._made.items() if not made.users and key != shapes]
                for key in idle[: max(0, len(self._made) - _KEPT)]:
                    gone.append(self._made.pop(key).session)
                    self._seen.pop(key, None)
                    self._evictions += 1
        _log.info("a plan for the shapes %s is there", dict(shapes))
        for each in gone:
            self._release(each)


def _shapes_of(feeds: Mapping[str, Any]) -> Shapes | None:
    """Return the feeds' shapes; None if there is a sequence or an optional."""
    shapes = []
    for name, feed in feeds.items():
        if feed is None or isinstance(feed, list):
            return None
        shapes.append((name, feed.shape))
    return tuple(shapes)
