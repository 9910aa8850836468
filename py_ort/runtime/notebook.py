"""Sessions as notebooks show them."""

from __future__ import annotations

from py_ort.html_table import html_table
from py_ort.providers.placement_table import COLUMNS
from py_ort.runtime.engine import Engine

_TIMES = {"browser_ms": "waiting for the browser", "create_ms": "creation", "first_run_ms": "first run"}


def session_html(title: str, engine: Engine) -> str:
    """Return a session as a table: where its nodes run, under its title, adapter and times."""
    times, placement = engine.times, engine.placement
    took = ", ".join(f"{words} {times[name]:.0f} ms" for name, words in _TIMES.items() if name in times)
    captions = filter(None, (title, engine.adapter and f"adapter: {engine.adapter}", took))
    return html_table(COLUMNS, placement.by_operator() if placement else (), captions)
