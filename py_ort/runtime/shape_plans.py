"""Plans made for the shapes that a session sees, beside the one for all shapes.

Most models with open dimensions lose nothing by them: their shape arithmetic is resolved by names. Where some is left
for the page, a plan for the very shapes has none. It is made in the background once shapes came twice, while runs go on
with the plan for all shapes; the weights in the page are shared. At level `all` only. Each plan is a session of its own
in the page; at most four are kept, and shapes that push each other out must come ever more often. Where as many others
come between, as in texts that grow word by word, nothing is made: it would be gone before it is of use.
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

#: Session configuration entry: "0" never, "1" (the default) when shapes came twice, in the background, "first" at
#: once, before the first run with them.
ENTRY = "session.specialize_shapes"
_KEPT = 4
_SIGHTINGS = 2
_REMEMBERED = 64


@dataclass
class _Made:
    """A session of the page for some shapes. `users`: runs under way."""

    session: Loaded
    users: set[Future[Any]] = field(default_factory=set)


def worthwhile(inputs: Sequence[NodeArg], planned: Planned) -> bool:
    """Whether the page would have less to do if it knew the shapes."""
    if any(arg.keys is not None for arg in inputs):
        return False
    tensors = [arg for arg in inputs if arg.type.startswith("tensor")]
    is_open = any(arg.dims is None or not all(isinstance(d, int) for d in arg.dims) for arg in tensors)
    return is_open and planned.placement.looks_at_shapes()


class ShapePlans:
    """The plans of one session for shapes it has seen; the least recently used goes when there are too many.

    Args:
        planner: Of the model.
        providers: As for the plan for all shapes.
        options: Likewise.
        create: Loads a plan into the page and returns its session there.
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
        """Return the page's session for these feeds, kept until the run is over; None: the one for all shapes."""
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
            # Shapes that push each other out must come ever more often.
            self._make_if(shapes, _SIGHTINGS * (1 + self._evictions))
        return None

    def wait(self) -> None:
        """Wait for the plan that is being made."""
        working = self._working
        if working is not None:
            working.join()

    def shapes(self) -> list[dict[str, list[int]]]:
        """Return the shapes that there are plans for, the most recently used last."""
        with self._lock:
            return [{name: list(shape) for name, shape in shapes} for shapes in self._made]

    def sessions(self) -> list[Loaded]:
        """Return the page's sessions for the shapes that there are plans for."""
        with self._lock:
            self._forget_gone()
            return [made.session for made in self._made.values()]

    def close(self) -> None:
        """Make no more. The page's sessions go with the one for all shapes."""
        with self._lock:
            self._closed = True
            self._made.clear()

    def _forget_gone(self) -> None:
        """What was in a worker that was ended is made again as if it had never been."""
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
            # The plan for all shapes says what is wrong, if anything is.
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
    """The feeds' shapes; None where there is a sequence or an optional."""
    shapes = []
    for name, feed in feeds.items():
        if feed is None or isinstance(feed, list):
            return None
        shapes.append((name, feed.shape))
    return tuple(shapes)
