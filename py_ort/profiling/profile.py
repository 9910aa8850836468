"""The spans that a profiled session collects, of Python, the page and the GPU, on one clock.

In a run each dispatch has a pass of its own with timestamps around it, unless its options ask for timestamps around the
passes that there are without a profile (`Timed`): then it has no kernels, but the GPU's own time as a whole. The GPU's
clock is not the page's: the first dispatch of a segment is taken to begin when it was submitted. A replayed run has no
nodes, because the core does not walk the plan.

Events have onnxruntime's names where there is one (`model_run`, `NODE_kernel_time`, categories Session and Node); ours
besides: Kernel, Resolve, Wait, Control.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py_ort.browser.loop import loop_thread
from py_ort.profiling.clock import PageClock
from py_ort.profiling.trace import Trace
from py_ort.providers import PROVIDERS, on_device, onnxruntime_name

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.profiling.account import Account

#: Most events; they take a few hundred megabytes.
_MOST_EVENTS = 250_000
#: Rows of the trace besides Python's threads, by what the page calls them; their numbers are no thread's.
_ROWS = {name: (1 << 30) + i for i, name in enumerate(("bridge", "page", "node", "gpu", "kernel"))}
_ROW_NAMES = dict(
    zip(
        _ROWS.values(),
        ("bridge", "page: worker", "page: nodes on the CPU", "page: waiting for the GPU", "GPU"),
        strict=True,
    )
)
#: `Operator.bodies`, once more: no compiler is needed to read a profile.
_CONTROL_FLOW = ("If", "Loop", "Scan", "SequenceMap")
_NAMES = {name: onnxruntime_name(name) for name in PROVIDERS}
_ON_DEVICE = tuple(_NAMES[name] for name in PROVIDERS if on_device(name))


@dataclass
class RunTimes:
    """Times at which a run reached each stage, in seconds of `time.perf_counter()`."""

    began: float
    sent: float
    answered: float
    ended: float


@dataclass
class Profile:
    """A session's profile. Thread-safe.

    Attributes:
        prefix: Prefix of the file's name.
        started: `time.perf_counter()` when it began; the trace's times count from here.
        notes: Remarks for readers, e.g. that there are no times of the GPU.
    """

    prefix: str
    started: float = field(default_factory=time.perf_counter)
    clock: PageClock = field(default_factory=PageClock)
    notes: list[str] = field(default_factory=list)
    _events: list[dict[str, Any]] = field(default_factory=list)
    _began: datetime = field(default_factory=datetime.now)
    _runs: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def started_ns(self) -> int:
        """The begin, by `time.perf_counter_ns()`."""
        return int(self.started * 1e9)

    @property
    def file_name(self) -> str:
        """Named as onnxruntime does: the prefix, the date and the time."""
        return f"{self.prefix}_{self._began:%Y-%m-%d_%H-%M-%S}_{self._began.microsecond // 1000:03d}.json"

    def add_opened(self, page: Page, account: Account, timeline: Iterable[Sequence[Any]]) -> None:
        """Add the creation of a session, with the page's part of it, and compare the clocks."""
        loop_thread().call(self.clock.align(page))
        phases, ended, passes = account
        ends = [begin for _, begin in phases[1:]] + [ended]
        self._span("Session", "session_initialization", phases[0][1], ended)
        for (name, begin), end in zip(phases, ends, strict=True):
            known = {"reading the model": "model_loading_uri"}.get(name, name)
            self._span("Session", known, begin, end)
            if name == "compiling the model":
                for stage, ms in passes.items():
                    self._span("Session", f"compiler: {stage}", begin, begin + ms / 1000)
                    begin += ms / 1000
        self._add_timeline(timeline, {})

    def follow(self, page: Page) -> None:
        """Use the clock of another worker, to which the session moved."""
        clock = PageClock()
        loop_thread().call(clock.align(page))
        self.clock = clock

    def add_run(self, times: RunTimes, info: Mapping[str, Any]) -> None:
        """Add a run and the page's account of it (`RunResult.info`)."""
        with self._lock:
            number, self._runs = self._runs, self._runs + 1
        about = {"run": number}
        more = {"replayed": info.get("replayed", False), **{f"gpu_{k}": v for k, v in info.get("gpu", {}).items()}}
        self._span("Session", "model_run", times.began, times.ended, {**about, **more})
        self._span("Session", "prepare feeds", times.began, times.sent, about)
        self._span("Session", "read outputs", times.answered, times.ended, about)
        received, answered = (self.clock.seconds(info[key]) for key in ("received_ms", "answered_ms"))
        self._span("Session", "feeds to the page", times.sent, received, about, "bridge")
        self._span("Session", "outputs to Python", answered, times.answered, about, "bridge")
        self._span("Session", "SequentialExecutor::Execute", received, answered, about, "page")
        self._add_timeline(info.get("timeline", ()), about)
        self._add_kernels(info.get("profile") or [], about)

    def _add_timeline(self, spans: Iterable[Sequence[Any]], about: Mapping[str, Any]) -> None:
        for name, category, start, end, *more in spans:
            args = {**about, **(more[0] if more else {})}
            where = self.clock.seconds(start), self.clock.seconds(end)
            if category != "node":
                self._span("Session", name, *where, args, category)
                continue
            args["provider"] = _NAMES.get(args.get("provider", ""), args.get("provider", ""))
            args["node_index"] = str(args.get("node_index", ""))
            if args.get("op_name") in _CONTROL_FLOW and not args.get("domain"):
                self._span("Control", name, *where, args, category)  # its time is that of the nodes inside
            elif args.pop("waiting", False):
                self._span("Wait", name, *where, args, category)
            elif args["provider"] in _ON_DEVICE:
                # The CPU's part: shapes and dispatches. The GPU's part has a row of its own.
                self._span("Resolve", f"resolve {name}", *where, args, category)
            else:
                self._span("Node", f"{name}_kernel_time", *where, args, category)

    def _add_kernels(self, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
        if rows and rows[0].get("ms") is None:
            self.note(
                "the device has no times of single dispatches: on WebGPU the adapter has no timestamp-query, on WebGL "
                "the browser has no EXT_disjoint_timer_query_webgl2"
            )
            return
        for _, group in groupby(rows, lambda row: row.get("node_index")):
            kernels = list(group)
            first, last = kernels[0], kernels[-1]
            name, op = first.get("node", first["kernel"]), first.get("op_type", "")
            node = {
                **about,
                "op_name": op,
                "provider": onnxruntime_name(first["provider"]),
                "node_index": str(first.get("node_index", "")),
            }
            end = self.clock.seconds(last["start_ms"] + last["ms"])
            self._span("Node", f"{name}_kernel_time", self.clock.seconds(first["start_ms"]), end, node, "kernel")
            for row in kernels:
                begin = self.clock.seconds(row["start_ms"])
                args = {**node, "node": name, "workgroups": row["workgroups"]}
                if "tiling" in row:
                    args["tiling"] = row["tiling"]
                self._span("Kernel", row["kernel"], begin, begin + row["ms"] / 1000, args, "kernel")

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def _span(
        self,
        category: str,
        name: str,
        start: float,
        end: float,
        args: Mapping[str, Any] | None = None,
        row: str | None = None,
    ) -> None:
        event = {
            "cat": category,
            "pid": os.getpid(),
            "tid": _ROWS[row] if row else threading.get_native_id(),
            "dur": max(0.0, round((end - start) * 1e6, 3)),
            "ts": round((start - self.started) * 1e6, 3),
            "ph": "X",
            "name": name,
            "args": dict(args or {}),
        }
        with self._lock:
            if len(self._events) < _MOST_EVENTS:
                self._events.append(event)
            else:
                self.note(f"only the first {_MOST_EVENTS} events were kept")

    def trace(self) -> Trace:
        """Return what was collected so far."""
        with self._lock:
            events = sorted(self._events, key=lambda event: (event["ts"], -event["dur"]))
        python = [event["tid"] for event in events if event["tid"] not in _ROW_NAMES]
        names = {**{tid: "Python" if tid == python[0] else f"Python, thread {tid}" for tid in python}, **_ROW_NAMES}
        metadata = [
            {"name": kind, "ph": "M", "pid": os.getpid(), "tid": tid, "args": {key: value}}
            for order, (tid, name) in enumerate(names.items())
            for kind, key, value in (("thread_name", "name", name), ("thread_sort_index", "sort_index", order))
        ]
        notes = [
            {
                "cat": "Session",
                "name": note,
                "ph": "i",
                "s": "g",
                "pid": os.getpid(),
                "tid": _ROWS["page"],
                "ts": 0,
                "args": {},
            }
            for note in self.notes
        ]
        return Trace([*metadata, *notes, *events])

    def write(self) -> str:
        """Write the trace; return the file's name."""
        self.trace().save(Path(self.file_name))
        return self.file_name
