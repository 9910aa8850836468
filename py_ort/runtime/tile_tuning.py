"""Measures the tiles that a model's products can take on a device: in profiled runs of the model itself.

A session with an empty table tells, by its profile, which products there are, which tile each takes, and what else it
could. Then there is a session for each place in these lists, in which every product takes the tile that stands there,
beside one with the usual tiles: they run in turn, since a GPU that has little to do changes its clock all the time, and
other tiles' times are compared with the usual ones' in the same seconds. A product's time is that of all its launches
in a run, the least of several runs, less what a launch takes longer for being timed by itself: parts of a product need
one more. Its tile is the quickest, unless the usual one takes hardly longer. A tile with which results are others than
before is none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import NotImplemented
from py_ort.profiling import Trace
from py_ort.runtime.options import RunOptions
from py_ort.runtime.tile_tables import Measured, TunedDevice

if TYPE_CHECKING:
    from py_ort import InferenceSession

#: Runs that compile, and are not counted.
_WARM_UP = 2
#: By how much a tile must be quicker than the usual one.
_GAIN = 0.97
#: How far results may be from those with the usual tiles, in parts of the largest number: sums in another order.
_NEAR = 1e-2


@dataclass
class Tuning:
    """What was measured.

    Attributes:
        device: Where.
        products: By the name that the page has for each.
        refused: Tiles that gave other results.
    """

    device: TunedDevice
    products: dict[str, Measured] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


@dataclass
class _Times:
    """Of one session: products, in milliseconds, their tiles, others they could take; results; what timing costs."""

    ms: dict[str, float]
    tiles: dict[str, str]
    choices: dict[str, Sequence[str]]
    outputs: list[Any]
    launch_ms: float


def measure_tiles(
    session: InferenceSession,
    open_session: Callable[[Mapping[str, str]], InferenceSession],
    feeds: Mapping[str, Any],
    runs: int,
    progress: Callable[[str, int, int], None],
) -> Tuning:
    """Measure.

    Args:
        session: On webgpu, with profiling on and an empty table. As long as it is there, others find its weights.
        open_session: Makes another one, with this table.
        feeds: What to run it on.
        runs: That count, with each table.
        progress: Told which table it is.

    Raises:
        NotImplemented: The device tells no times of single launches.
        PyOrtError: As `InferenceSession` and its `run` do.
    """
    told = session._offering("tile tuning").sessions.main().runtime.tuned_device
    assert told is not None
    [usual] = _run([session], feeds, runs, None)
    ratios: dict[str, dict[str, float]] = {product: {tile: 1.0} for product, tile in usual.tiles.items()}
    tuning = Tuning(TunedDevice.of(session.browser, told))
    count = max(map(len, usual.choices.values()), default=0)
    for i in range(count):
        progress("measuring tiles", i, count)
        table = {product: choices[i] for product, choices in usual.choices.items() if i < len(choices)}
        with open_session({}) as normal, open_session(table) as other:
            before, found = _run([normal, other], feeds, runs, usual.launch_ms)
        if not all(map(_near, found.outputs, usual.outputs)):
            tuning.refused += sorted(set(table.values()) - {*tuning.refused})
            continue
        # A session may get a better plan in mid-course, which has other products.
        for product in ratios.keys() & before.ms.keys() & found.ms.keys():
            tile, known = found.tiles[product], ratios[product]
            usual.ms[product] = min(usual.ms[product], before.ms[product])
            if before.ms[product] and tile != usual.tiles[product]:
                known[tile] = min(found.ms[product] / before.ms[product], known.get(tile, float("inf")))
    for product, known in ratios.items():
        normal_tile, ms = usual.tiles[product], usual.ms[product]
        tile = min(known, key=lambda name: known[name])
        best = tile if known[tile] < _GAIN else normal_tile
        tuning.products[product] = Measured(best, known[best] * ms, normal_tile, ms)
    return tuning


def _run(
    sessions: Sequence[InferenceSession], feeds: Mapping[str, Any], runs: int, launch_ms: float | None
) -> list[_Times]:
    """Run them by turns; without `launch_ms` it is measured, by runs whose kernels are timed together."""
    together = RunOptions()
    together._profile = "passes"
    for _ in range(_WARM_UP + runs):
        outputs = [session.run(None, feeds) for session in sessions]
        if launch_ms is None:
            for session in sessions:
                session.run(None, feeds, together)
    return [
        _times(Trace.load(session.end_profiling()), list(out), launch_ms)
        for session, out in zip(sessions, outputs, strict=True)
    ]


def _cost_of_timing(trace: Trace) -> float:
    """What a launch takes longer, in milliseconds, where it is timed by itself."""
    times = trace.gpu_times()
    launches = Counter(event["args"].get("run") for event in trace.spans("Kernel"))
    return max(0.0, times.apart_ms - times.together_ms) / max(launches.values()) if times and launches else 0.0


def _times(trace: Trace, outputs: list[Any], launch_ms: float | None) -> _Times:
    trace = trace.since(_WARM_UP * (2 if launch_ms is None else 1))
    if launch_ms is None:
        launch_ms = _cost_of_timing(trace)
    by_run: defaultdict[str, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    tilings = {}
    for event in trace.spans("Kernel"):
        if tiling := event["args"].get("tiling"):
            ms = event["dur"] / 1000
            by_run[tiling["product"]][event["args"]["run"]] += max(ms / 10, ms - launch_ms)
            tilings[tiling["product"]] = tiling
    if not tilings and (notes := trace.notes()):
        raise NotImplemented(f"tiles cannot be measured here: {'; '.join(notes)}")
    return _Times(
        {product: min(times.values()) for product, times in by_run.items()},
        {product: tiling["tile"] for product, tiling in tilings.items()},
        {product: tiling["choices"] for product, tiling in tilings.items()},
        outputs,
        launch_ms,
    )


def _near(found: Any, wanted: Any) -> bool:
    """Other values than arrays of numbers are not compared."""
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind not in "fiu" or wanted.size == 0:
        return True
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    there = np.isfinite(b)
    return bool(np.max(np.abs(a - b), where=there, initial=0) <= _NEAR * np.max(np.abs(b), where=there, initial=0))
