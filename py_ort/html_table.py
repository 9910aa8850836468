"""Small tables of HTML, as notebooks show objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], captions: Iterable[str] = ()) -> str:
    """Return lines of text and a table below them, as HTML; numbers are aligned to the right."""
    head = "".join(f"<th style='text-align: left'>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    lines = "".join(f"<div>{escape(caption)}</div>" for caption in captions)
    return f"{lines}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    side = "right" if isinstance(value, (int, float)) else "left"
    return f"<td style='text-align: {side}'>{escape(str(value))}</td>"
