"""Chrome trace files: for chrome://tracing and Perfetto, and for adding up. onnxruntime's own can be read, too."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from py_ort.exceptions import InvalidArgument
from py_ort.html_table import html_table
from py_ort.providers import PROVIDERS, onnxruntime_name

#: Suffix of nodes' names, as in onnxruntime's traces.
SUFFIX = "_kernel_time"
_PLACES = {onnxruntime_name(name): name for name in PROVIDERS}


@dataclass
class KernelRow:
    """The calls of one kernel.

    Attributes:
        kernel: The variant's name on the GPU, as in labels and logs; on the CPU the operator's.
        op_type: The operator.
        provider: Where it ran.
        calls: How often.
        total_ms: All calls together.
        share: Its share of the time of all kernels, 0 to 1.
        nodes: The nodes that it ran for.
    """

    kernel: str
    op_type: str
    provider: str
    calls: int = 0
    total_ms: float = 0.0
    share: float = 0.0
    nodes: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The provider by py_ort's own name."""
        return _PLACES.get(self.provider, self.provider.removesuffix("ExecutionProvider"))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass
class GpuTimes:
    """Times of the GPU's kernels in a run, in milliseconds: medians of runs.

    Attributes:
        apart_ms: Each in a pass of its own, added up: `Trace.kernels` says of which.
        together_ms: In the passes of a run without a profile, added up.
        span_ms: From the begin of the first of these passes to the end of the last.
    """

    apart_ms: float
    together_ms: float
    span_ms: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass
class Trace:
    """The events of a trace."""

    events: list[dict[str, Any]]

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace file.

        Raises:
            InvalidArgument: It is none.
        """
        try:
            found = json.loads(Path(path).read_text())
        except ValueError as e:
            raise InvalidArgument(f"{path} is no trace: {e}") from None
        events = found.get("traceEvents", []) if isinstance(found, dict) else found
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise InvalidArgument(f"{path} is no trace: it has no list of events")
        return cls(events)

    def save(self, path: Path) -> None:
        """Write it as onnxruntime does: a list, one span a line; names of threads and notes are in the first one."""
        spans = [json.dumps(event) for event in self.events if event.get("ph") == "X"]
        others = [json.dumps(event) for event in self.events if event.get("ph") != "X"]
        path.write_text("[" + ",\n".join([", ".join(others)] * bool(others) + spans) + "\n]\n")

    def spans(self, category: str = "") -> Iterator[dict[str, Any]]:
        """Yield the events that last, of one category or all."""
        for event in self.events:
            if event.get("ph") == "X" and category in ("", event.get("cat")):
                yield event

    def since(self, run: int) -> Trace:
        """Return the trace without the session's making and the runs before this one."""
        return Trace([e for e in self.events if e.get("ph") != "X" or e["args"].get("run", -1) >= run])

    def until(self, run: int) -> Trace:
        """Return the trace of the session's making and the runs before this one."""
        return Trace([e for e in self.events if e.get("ph") != "X" or e["args"].get("run", -1) < run])

    def apart(self) -> Trace:
        """Return the trace without the runs whose kernels were timed together."""
        left_out = {event["args"]["run"] for event in self._together()}
        return Trace([e for e in self.events if e.get("ph") != "X" or e["args"].get("run") not in left_out])

    def _together(self) -> list[dict[str, Any]]:
        return [event for event in self.spans("Session") if "gpu_ms" in event["args"]]

    def gpu_times(self) -> GpuTimes | None:
        """Compare the runs whose kernels were timed each with those whose kernels were timed together.

        Returns:
            None if there are not both, e.g. where the adapter has no timestamps.
        """
        apart: defaultdict[int, float] = defaultdict(float)
        for event in self.spans("Kernel"):
            apart[event["args"].get("run", -1)] += event["dur"] / 1000
        together = [event["args"] for event in self._together()]
        if not apart or not together:
            return None
        together_ms, span_ms = (median(run[name] for run in together) for name in ("gpu_ms", "gpu_span_ms"))
        return GpuTimes(median(apart.values()), together_ms, span_ms)

    def notes(self) -> list[str]:
        """Return the profile's notes."""
        return [event["name"] for event in self.events if event.get("ph") == "i"]

    def _repr_html_(self) -> str:
        columns = ("kernel", "operator", "provider", "nodes", "calls", "ms", "share")
        rows = [
            (row.kernel, row.op_type, row.place, len(row.nodes), row.calls, round(row.total_ms, 3), f"{row.share:.1%}")
            for row in self.kernels()
        ]
        return html_table(columns, rows)

    def kernels(self) -> list[KernelRow]:
        """Add up the kernels, those that took most first.

        GPU kernels have rows of their own; nodes without (on the CPU, or where the GPU tells no times) are added up by
        operator.
        """
        rows: dict[tuple[str, str, str], KernelRow] = {}
        timed = {(e["args"].get("run"), e["args"].get("node_index")) for e in self.spans("Kernel")}
        for event in self.spans():
            args = event["args"]
            if event["cat"] == "Kernel":
                kernel, node = event["name"], args.get("node", "")
            elif event["cat"] == "Node" and (args.get("run"), args.get("node_index")) not in timed:
                kernel, node = args.get("op_name", ""), event["name"].removesuffix(SUFFIX)
            else:
                continue
            key = kernel, args.get("op_name", ""), args.get("provider", "")
            row = rows.setdefault(key, KernelRow(*key))
            row.calls += 1
            row.total_ms += event["dur"] / 1000
            if node and node not in row.nodes:
                row.nodes.append(node)
        return _ranked(rows.values())

    def shaders(self) -> list[tuple[str, float]]:
        """Return the shaders that were compiled, with the milliseconds after which each was ready, in that order.

        A browser compiles several at a time, and the rest waits: a time is not a shader's own.
        """
        found = [
            (str(label), float(ms)) for event in self.spans("Session") for label, ms in event["args"].get("shaders", ())
        ]
        return sorted(found, key=lambda item: item[1])

    def nodes(self) -> list[KernelRow]:
        """Add up the nodes, those that took most first; `kernel` is the node's name in the model."""
        rows: dict[tuple[str, str, str], KernelRow] = {}
        for event in self.spans("Node"):
            args = event["args"]
            key = event["name"].removesuffix(SUFFIX), args.get("op_name", ""), args.get("provider", "")
            row = rows.setdefault(key, KernelRow(*key, nodes=[key[0]]))
            row.calls += 1
            row.total_ms += event["dur"] / 1000
        return _ranked(rows.values())

    def phases(self) -> list[tuple[str, int, float]]:
        """Add up everything that is not a kernel: name, calls and milliseconds, in the order of first appearance."""
        found: dict[str, list[float]] = {}
        for event in self.spans("Session"):
            found.setdefault(event["name"], []).append(event["dur"] / 1000)
        return [(name, len(times), sum(times)) for name, times in found.items()]


def _ranked(rows: Collection[KernelRow]) -> list[KernelRow]:
    total = sum(row.total_ms for row in rows)
    for row in rows:
        row.share = row.total_ms / total if total else 0.0
    return sorted(rows, key=lambda row: -row.total_ms)
