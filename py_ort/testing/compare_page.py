"""The page of `py-ort compare --html`: each value's error, and the graph with the nodes that differ."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from py_ort.pages.graph import View, draw, given
from py_ort.testing.compare import Comparison, Value

_LEGEND = {
    "first": "the first that differs",
    "differs": "differs",
    "agrees": "agrees",
    "stripe": "not compared",
}
#: Width, height and margins of the chart of errors.
_WIDTH, _HEIGHT, _LEFT, _EDGE = 340, 170, 40, 8
#: Powers of ten below which errors are as good as none.
_LEAST = -9


def page(model: str | os.PathLike[str], found: Comparison, tested: str, reference: str, browser: str) -> str:
    """Return the page.

    Args:
        model: The model's file.
        found: The comparison of all its values.
        tested: Name of the side that was tested.
        reference: Name of the side that is right.
        browser: Where it was tested.
    """
    view = given(model)
    first = found.first
    _color(view, found)
    wrong = sum(value.wrong for value in found.values)
    facts = {
        "model": model,
        "tested": f"{tested} in {browser}, against {reference}",
        "result": f"{wrong} of {len(found.values)} values differ" if wrong or found.ok else "only outputs differ",
        **({"first": first} if first else {}),
        **{f"output {name}": text for name, text in found.outputs.items()},
    }
    largest = sorted((value for value in found.values if value.part), key=lambda value: -(value.part or 0))
    rows = [(f"{value.part:.1e}", value.op_type, _kind(value), value.name) for value in largest]
    return draw(
        [view],
        f"py-ort compare {Path(model).name}",
        _LEGEND,
        None if first is None else view.makers.get(first.name),
        facts=facts,
        tables={"Largest errors": (("error", "operator", "type", "value"), rows)} if rows else {},
        chart=_chart(view, found),
        picture=_picture(found),
    )


def _place(value: Value, found: Comparison) -> str:
    if found.first is not None and value.name == found.first.name:
        return "first"
    return "differs" if value.wrong else "agrees"


def _color(view: View, found: Comparison) -> None:
    """Mark each node by the worst of its values."""
    for value in [*found.values, *([found.fused] if found.fused else [])]:
        index = view.makers.get(value.name)
        if index is None:
            continue
        node, place = view.nodes[index], _place(value, found)
        if not node.place or list(_LEGEND).index(place) < list(_LEGEND).index(node.place):
            node.place = place
        part = "" if value.part is None else f", error {value.part:.1e}"
        node.why = "; ".join(filter(None, (node.why, f"{value.name}: {_words(value)}{part}")))


def _words(value: Value) -> str:
    return value.error or value.difference or "agrees"


def _kind(value: Value) -> str:
    return f"{value.dtype or ''} {'×'.join(map(str, value.shape or ()))}".strip()


def _chart(view: View, found: Comparison) -> dict[str, Any] | None:
    """Return points of a logarithmic chart; failed values are at its upper edge, equal ones at the lower."""
    if not found.values:
        return None
    powers = [math.log10(value.part) for value in found.values if value.part]
    top = max(math.ceil(max(powers, default=_LEAST + 1)), _LEAST + 1)
    room = _HEIGHT - 2 * _EDGE

    def at(power: float) -> float:
        return round(_EDGE + room * (top - max(power, _LEAST)) / (top - _LEAST), 1)

    def height(value: Value) -> float:
        return at(top if value.error else math.log10(value.part) if value.part else _LEAST)

    step = (_WIDTH - _LEFT - _EDGE) / max(len(found.values) - 1, 1)
    marks = range(_LEAST, top + 1, max(1, (top - _LEAST) // 6))
    return {
        "height": _HEIGHT,
        "lines": [(at(power), "0" if power == _LEAST else f"1e{power}") for power in marks],
        "points": [
            {
                "x": round(_LEFT + step * number, 1),
                "y": height(value),
                "place": _place(value, found),
                "node": view.makers.get(value.name),
                "text": f"{value.name} of {value.op_type} {value.node}: {_words(value)}"
                + ("" if value.part is None else f" ({value.part:.1e})"),
            }
            for number, value in enumerate(found.values)
        ],
    }


def _picture(found: Comparison) -> dict[str, Any] | None:
    first = found.first
    rows = found.maps.get(first.name) if first else None
    if not first or not rows:
        return None
    shape = list(first.shape or ())
    words = f"Of shape {shape}: the last axis from left to right, the others from top to bottom. Darker is worse."
    return {"name": first.name, "rows": rows, "words": words}
