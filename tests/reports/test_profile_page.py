"""The page of `py-ort profile --html`: what it says, and what one can do with it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hostile_names import HOSTILE, HUGE
from page_checks import background, column, fits

import py_ort
from py_ort.profiling import Trace
from py_ort.profiling.trace_report import kernel_table, page

FACTS = {"model": "m.onnx", "providers": "3 nodes on webgpu", "create_ms": 1234.5, "median_ms": 2.25}


def event(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "args": args}


def trace(names: tuple[str, ...] = ("conv", "relu", "softmax"), runs: int = 3) -> Trace:
    """Runs of 2 ms; the first, which warms up, of 100 times that, as its kernels are."""
    events = [event("Session", "session_initialization", 0, 50_000)]
    begin = 60_000.0
    for run in range(runs):
        long = 100 if run == 0 else 1
        events.append(event("Session", "model_run", begin, 2000 * long, run=run))
        for index, name in enumerate(names):
            args = {"run": run, "node_index": str(index), "op_name": "Op", "provider": "WebGpuExecutionProvider"}
            at, length = begin + 300 * index * long, (100 + 50 * index) * long
            events.append(event("Node", f"{name}_kernel_time", at, length, **args))
            events.append(event("Kernel", f"{name}__a", at, length, node=name, workgroups=[1, 1, 1], **args))
        begin += 3000 * long
    return Trace(events)


def test_its_numbers_are_those_of_the_terminal(open_page):
    shown = open_page(page(trace(), "profile", FACTS, 2, warm_up=1))
    terminal = kernel_table(trace().since(1).kernels(), 2)
    kernels = shown.locator("table").first
    for number, heading in enumerate(
        ("kernel", "operator", "provider", "nodes", "calls", "total ms", "ms a run", "share")
    ):
        assert column(kernels, heading) == list(terminal.columns[number].cells), heading
    assert column(kernels, "total ms") == ["0.400", "0.300", "0.200"]


def test_it_says_what_it_is_of(open_page):
    text = open_page(page(trace(), "profile", FACTS, 2, warm_up=1)).locator("body").inner_text()
    assert "2 that count, after 1 that warmed up" in text and f"py_ort {py_ort.__version__}" in text
    assert "creating the session\n1234.50 ms" in text and "kernels of a run\n0.45 ms" in text
    for raw in ("create_ms", "median_ms", "model_run", "session_initialization", "ExecutionProvider", "_kernel_time"):
        assert raw not in text


def test_it_compares_kernels_with_the_runs_as_a_whole(open_page):
    events = trace().events
    whole = [event("Session", "model_run", 1e6, 2000, run=number, gpu_ms=0.3, gpu_span_ms=0.4) for number in (3, 4)]
    text = open_page(page(Trace([*events, *whole]), "profile", FACTS, 2, warm_up=1)).locator("body").inner_text()
    assert "GPU\nkernels 0.45 ms one by one, 0.30 ms as they run together, 0.40 ms with" in text
    assert "kernels of a run\n0.45 ms" in text and re.search(r"a run, as Python sees it\s+2\s", text)


def test_bars_can_be_compared(open_page):
    shown = open_page(page(trace(), "profile", FACTS, 2, warm_up=1))
    for table in shown.locator("table:has(td.bar)").all():
        bars = [bar.bounding_box() for bar in table.locator("td.bar i").all()]
        assert len({round(bar["x"]) for bar in bars}) == 1
        longest, *others = [bar["width"] for bar in bars]
        assert [other / longest for other in others] == pytest.approx([0.75, 0.5], abs=0.02)


def test_sorting(open_page):
    table = open_page(page(trace(), "profile", FACTS, 2, warm_up=1)).locator("table").first
    total, kernel = (table.locator("thead th", has_text=text).first for text in ("total ms", "kernel"))
    total.click()
    assert column(table, "total ms") == ["0.400", "0.300", "0.200"] and total.get_attribute("aria-sort") == "descending"
    total.click()
    assert column(table, "total ms") == ["0.200", "0.300", "0.400"]
    kernel.press("Enter")
    assert column(table, "kernel") == ["conv__a", "relu__a", "softmax__a"]
    assert total.get_attribute("aria-sort") == "none" and kernel.get_attribute("aria-sort") == "ascending"


def test_long_tables_show_the_rows_with_some_words(open_page):
    """All words, in any case; a sorted table keeps them. Short tables have no field."""
    names = tuple(f"layer{number}_{kind}" for number in range(6) for kind in ("conv", "relu"))
    shown = open_page(page(trace(names), "profile", FACTS, 2, warm_up=1), width=390)
    table = shown.locator("table").first
    field = shown.get_by_role("searchbox", name="Filter by kernel, operator").first

    def rows() -> list[str]:
        return table.locator("tbody tr:visible td:first-child").all_inner_texts()

    assert len(rows()) == 12
    field.fill("RELU layer")
    assert sorted(rows()) == [f"layer{number}_relu__a" for number in range(6)]
    assert "6 of 12 rows" in shown.get_by_text("6 of 12").inner_text()
    table.locator("thead th", has_text="kernel").first.click()
    assert rows() == [f"layer{number}_relu__a" for number in range(6)] and fits(shown)
    field.fill("")
    assert len(rows()) == 12
    short = open_page(page(trace(names[:2]), "profile", FACTS, 2, warm_up=1))
    assert short.get_by_role("searchbox").count() == 0


def test_the_chart_has_an_axis_at_every_zoom(open_page):
    shown = open_page(page(trace(), "profile", FACTS, 2, warm_up=1))
    canvas = shown.locator("#chart canvas")

    def state() -> tuple[float, float]:
        shown.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert int(canvas.get_attribute("data-ticks")) >= 3
        return float(canvas.get_attribute("data-from")), float(canvas.get_attribute("data-to"))

    assert state() == (363_000, 365_000)  # the last run
    shown.get_by_role("button", name="everything").click()
    assert state()[0] == 0
    shown.get_by_role("button", name="runs that count").click()
    assert state() == (360_000, 365_000)
    box = canvas.bounding_box()
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    for _ in range(12):
        before = state()
        shown.mouse.wheel(0, -150)
        shown.wait_for_function(
            "before => Number(document.querySelector('canvas').dataset.from) > before", arg=before[0]
        )
    begin, end = state()
    assert end - begin < 300
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] / 2 + 100, box["y"] + 30)
    shown.mouse.up()
    assert state()[0] < begin


def test_a_span_tells_what_it_is(open_page):
    shown = open_page(page(trace(), "profile", FACTS, 2, warm_up=1))
    box = shown.locator("#chart canvas").bounding_box()
    # The first kernel of the last run: 100 of 2000 µs, below the run and its node.
    shown.mouse.move(box["x"] + box["width"] * 0.02, box["y"] + 22 + 20 + 2 * 18 + 8)
    tip = shown.locator("#tip")
    assert tip.is_visible()
    assert tip.inner_text().startswith("conv__a\n100.0 µs") and "operator: Op" in tip.inner_text()


def test_a_tip_stays_in_the_window(open_page):
    shown = open_page(page(trace(), "profile", FACTS, 2, warm_up=1), height=500)
    canvas = shown.locator("#chart canvas")
    canvas.evaluate("canvas => scrollTo(0, canvas.getBoundingClientRect().top + scrollY - innerHeight + 100)")
    box = canvas.bounding_box()
    shown.mouse.move(box["x"] + box["width"] * 0.02, box["y"] + 22 + 20 + 2 * 18 + 8)
    tip = shown.locator("#tip").bounding_box()
    assert tip["y"] >= 0 and tip["y"] + tip["height"] <= 500


def test_time_begins_with_the_first_span(open_page):
    late = trace()
    for span in late.spans():
        span["ts"] += 47e6
    shown = open_page(page(late, "profile", FACTS, 2, warm_up=1))
    shown.get_by_role("button", name="everything").click()
    assert float(shown.locator("#chart canvas").get_attribute("data-from")) == 0


@pytest.mark.parametrize("width", [390, 1200])
def test_light_dark_and_a_phone(open_page, width):
    html = page(trace(("conv" * 80, "a b " * 80)), "profile", FACTS, 2, warm_up=1)
    light, dark = open_page(html, width=width), open_page(html, dark=True, width=width)
    assert fits(light) and background(light) > 600 and background(dark) < 200


@pytest.mark.parametrize("name", [HOSTILE, HUGE], ids=["hostile", "huge"])
def test_names_are_only_text(open_page, name):
    html = page(trace((name, "relu")), name, {"model": name, name: 1}, 2, warm_up=1)
    shown = open_page(html, width=390)
    table = shown.locator("table").first
    table.locator("thead th").first.click()
    assert len(column(table, "kernel")) == 2 and fits(shown)
    assert shown.locator("img").count() == 0 and len(html) < 5_000_000
