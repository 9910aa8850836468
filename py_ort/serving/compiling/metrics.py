"""Counters of the compile server, in the text form of Prometheus."""

from __future__ import annotations

from collections import Counter

_HELP = {
    "requests_total": ("counter", "Requests for models"),
    "found_total": ("counter", "Requests answered from the store"),
    "brought_total": ("counter", "Models brought from the object store"),
    "downloads_total": ("counter", "Models fetched from their URLs"),
    "uploads_total": ("counter", "Models that were sent"),
    "compiled_total": ("counter", "Models compiled"),
    "failed_total": ("counter", "Models that could not be compiled"),
    "refused_total": ("counter", "Requests refused: origins, sizes, versions, too many at once"),
    "evicted_total": ("counter", "Exported models deleted to make room"),
    "compile_seconds_total": ("counter", "Time spent compiling"),
    "compiling": ("gauge", "Models that are being compiled"),
    "waiting": ("gauge", "Models that wait for a process"),
    "store_bytes": ("gauge", "Size of the store"),
}
PREFIX = "py_ort_compile_server_"


class Metrics:
    """The counters; used in the server's loop."""

    def __init__(self) -> None:
        self._values: Counter[str] = Counter()

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a value; see `_HELP`."""
        self._values[name] += amount  # type: ignore[assignment]

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._values[name] = value  # type: ignore[assignment]

    def text(self) -> str:
        """Return all values."""
        lines = []
        for name, (kind, about) in _HELP.items():
            full = PREFIX + name
            lines += [f"# HELP {full} {about}.", f"# TYPE {full} {kind}", f"{full} {self._values[name]:g}"]
        return "\n".join(lines) + "\n"
