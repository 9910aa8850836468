"""Measures the tiles of a model's products on a device, in profiled runs of the model itself.

The profile of a session with an empty table lists the products, the tile of each, and the possible tiles. For each
index in these lists a session uses the tiles at that index. It runs in turn with a session that uses the usual tiles,
because an idle GPU changes its clock all the time: times are compared within the same seconds.

A product's time is the sum of its dispatches in a run, the least of several runs. The cost of timing each dispatch
separately is subtracted, because a product in parts has one more dispatch. The fastest tile is chosen if it is clearly
faster than the usual tile. Tiles that change the results are refused.
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

#: Runs that compile and are not measured.
_WARM_UP = 2
#: Largest ratio of a chosen tile's time to the usual tile's.
_GAIN = 0.97
#: Largest difference of results from those with the usual tiles, relative to the largest number: sums may differ.
_NEAR = 1e-2


@dataclass
class Tuning:
    """Measurements of a model's products.

    Attributes:
        device: The device.
        products: Measurements by the page's name of the product.
        refused: Tiles that changed the results.
    """

    device: TunedDevice
    products: dict[str, Measured] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


@dataclass
class _Times:
    """A session's measurements: products' times (ms), tiles, possible tiles; results; cost of timing a dispatch."""

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
    """Measure the tiles of a session's products.

    Args:
        session: A session on webgpu, with profiling on and an empty table; other sessions share its weights.
        open_session: Returns another session, with this table.
        feeds: Feeds of the runs.
        runs: Number of measured runs with each table.
        progress: Receives the number of the current table.

    Raises:
        NotImplemented: The device cannot time single dispatches.
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
        # A session may receive a better plan meanwhile, with other products.
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
    """Run sessions in turn; without `launch_ms` measure it, by runs whose kernels are timed together."""
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
    """Return the cost of timing a dispatch separately, in milliseconds."""
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
    """Return True if results are equal within `_NEAR`; only arrays of numbers are compared."""
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind not in "fiu" or wanted.size == 0:
        return True
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    there = np.isfinite(b)
    return bool(np.max(np.abs(a - b), where=there, initial=0) <= _NEAR * np.max(np.abs(b), where=there, initial=0))
