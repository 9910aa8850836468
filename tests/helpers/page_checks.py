"""Questions to the pages that py_ort writes."""

from __future__ import annotations

from typing import Any


def fits(page: Any) -> bool:
    """Return True if nothing sticks out to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def background(page: Any) -> int:
    """Return the brightness of the page: the sum of its background's red, green and blue."""
    found = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    return sum(found)


def column(table: Any, heading: str) -> list[str]:
    """Return the texts of a column."""
    number = table.locator("thead th").all_text_contents().index(heading)
    return [row.locator("td").nth(number).inner_text() for row in table.locator("tbody tr").all()]
