"""docs/compatibility.md: rows of runs, and combinations that were not tried."""

from __future__ import annotations

from py_ort.testing.document import DOCUMENT, document
from py_ort.testing.results import FAILED, PASSED, Outcome, Results, expectations_of

KNOWN = next(iter(expectations_of("onnx-node", "wasm")))


def run(browser: str, version: str, **more: object) -> dict:
    cases = {"a": Outcome(PASSED), "b": Outcome(FAILED, "wrong"), KNOWN: Outcome(FAILED, "wrong")}
    results = Results(cases, ("wasm",), f"x {version}", "", browser, "py_ort", system="Linux x86_64", date="2026-01-02")
    return {**results.as_run(), **more}


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


def test_rows_take_the_place_of_older_ones() -> None:
    text = document("", [run("firefox", "1.0"), run("chromium", "2.0")])
    text = document(text, [run("firefox", "3.0"), run("webkit", "9", error="NoAdapter"), run("x", "4", engine="peer")])
    first, second, *untried = rows(text)[1:]
    end = " | Linux x86_64 | wasm | – | 1 of 3 (1 failed that are not known to) | 1 | 2026-01-02 |"
    assert (first, second) == (f"| Chromium | 2.0{end}", f"| Firefox | 3.0{end}")
    assert untried and all("| not tried |" in row for row in untried)


def test_a_browser_that_was_tried_is_not_untried() -> None:
    assert "Safari on iOS | not tried" in document("", [])
    text = document("", [run("Safari on iOS", "26")])
    assert "Safari on iOS | not tried" not in text and "| Safari on iOS | 26 |" in text


def test_the_document_is_what_it_would_write() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert document(text, []) == text
    wasm = [row.split("|")[6].split() for row in rows(text) if "| wasm |" in row]
    assert len(wasm) >= 3 and all(int(passed.replace(",", "")) >= 1840 for passed, *_ in wasm)
