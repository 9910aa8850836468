"""The page of `py-ort bench --html`: charts that compare engines, and rows for what failed."""

from __future__ import annotations

from typing import Any

import pytest
import small_models
from hostile_names import HOSTILE, HUGE
from page_checks import background, column, fits

from py_ort.bench import Row
from py_ort.bench.benchmark_table import _COLUMNS, cells, page


def row(engine: str, provider: str, ms: float | None, error: str = "", model: str = "m") -> Row:
    times = (ms and ms * 20, ms and ms * 4, ms, ms and ms * 1.5)
    return Row(model, engine, provider, 1, *times, 10, "1 webgpu", 1e-6, "an adapter", "", error, ms and ms * 0.8)


ROWS = [row("py_ort", "webgpu", 2.0), row("onnxruntime-web", "webgpu", 4.0), row("onnxruntime-web", "jsep", 8.0)]


def widths(shown: Any, selector: str) -> list[float]:
    return [found.bounding_box()["width"] for found in shown.locator(selector).all()]


def test_bars_have_one_scale_and_steady_ones_a_spread(open_page):
    shown = open_page(page(ROWS))
    charts = shown.locator(".charts > div")
    assert charts.locator("h3").all_inner_texts() == [
        "creating the session full width: 160.0 ms",
        "first run full width: 32.0 ms",
        "steady runs full width: 12.0 ms",
    ]
    for chart in range(3):
        *others, longest = widths(charts.nth(chart), ".track i")
        assert [other / longest for other in others] == pytest.approx([0.25, 0.5], abs=0.02)
    steady = charts.nth(2)
    track = widths(steady, ".track")[0]
    assert [width / track for width in widths(steady, ".track b")] == pytest.approx(
        [1.4 / 12, 2.8 / 12, 5.6 / 12], abs=0.02
    )
    assert steady.locator(".track b").first.get_attribute("title") == "1.6 to 3.0 ms"
    assert shown.locator(".track b").count() == 3 and shown.locator(".track.ours").count() == 3


def test_bars_of_very_unlike_times_have_a_logarithmic_axis(open_page):
    rows = [row("py_ort", "webgpu", 2.0), row("onnxruntime-web", "wasm", 2000.0)]
    shown = open_page(page(rows))
    steady = shown.locator(".charts > div").nth(2)
    assert steady.locator("h3").inner_text() == "steady runs logarithmic, from 0.8 to 3000.0 ms"
    short, long = widths(steady, ".track i")
    assert 0.05 < short / long < 0.2
    assert "1000.00x ours" in steady.inner_text()


def test_columns_without_a_value_are_left_out(open_page):
    table = open_page(page(ROWS)).locator("table")
    headings = table.locator("thead th").all_inner_texts()
    assert "before" not in headings and "float" not in headings and "peer / ours" in headings


def test_its_table_is_that_of_the_terminal_and_sorts(open_page):
    shown = open_page(page(ROWS))
    table = shown.locator("table")
    terminal = cells(ROWS)
    assert column(table, "median") == [found[6] for found in terminal] == ["2.0", "4.0", "8.0"]
    assert column(table, "peer / ours") == [found[_COLUMNS.index("peer / ours")] for found in terminal]
    table.locator("th", has_text="median").click()
    assert column(table, "median") == ["8.0", "4.0", "2.0"]
    assert "an adapter" in shown.locator("dl").inner_text() and "py_ort 0." in shown.locator("dl").inner_text()


def test_what_failed_has_a_row_and_says_why(open_page):
    why = "NotImplemented: no provider runs node 'det'"
    shown = open_page(page([*ROWS, row("py_ort", "wasm", None, why), row("py_ort", "webgpu", None, why, "other")]))
    assert shown.locator(".chart .bad").count() == 6 and why in shown.locator(".chart .bad").first.inner_text()
    table = shown.locator("table")
    assert column(table, "nodes")[-2:] == [why, why]
    table.locator("th", has_text="median").click()
    assert column(table, "median") == ["8.0", "4.0", "2.0", "", ""]


def test_nothing_but_failures(open_page):
    shown = open_page(page([row("py_ort", "webgpu", None, "NoAdapter: none")]))
    assert shown.locator(".track").count() == 0 and "NoAdapter" in shown.locator("section").inner_text()


@pytest.mark.parametrize("width", [390, 1200])
def test_light_dark_and_a_phone(open_page, width):
    html = page([*ROWS, row("py_ort", "wasm", None, "Fail: " + "word " * 100)])
    light, dark = open_page(html, width=width), open_page(html, dark=True, width=width)
    assert fits(light) and background(light) > 600 and background(dark) < 200


@pytest.mark.parametrize("name", [HOSTILE, HUGE], ids=["hostile", "huge"])
def test_names_are_only_text(open_page, name):
    html = page([row("py_ort", "webgpu", 1.0, model=name), row("py_ort", "wasm", None, f"Fail: {name}", name)])
    shown = open_page(html, width=390)
    assert fits(shown) and shown.locator("img").count() == 0 and len(html) < 1_000_000


def test_the_command(py_ort_command, tmp_path, open_page):
    (tmp_path / "good.onnx").write_bytes(small_models.add())
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    options = ("--provider", "wasm", "--runs", 2, "--html", tmp_path / "b.html")
    status, _, _ = py_ort_command("bench", tmp_path / "good.onnx", tmp_path / "bad.onnx", *options)
    shown = open_page((tmp_path / "b.html").read_text(encoding="utf-8"))
    assert status == 1 and shown.locator("section h2").all_inner_texts() == ["good x 1×3, scale 3", "bad"]
    assert "threads\n1" in shown.locator("dl").inner_text()
    assert shown.locator(".track").count() == 3 and "InvalidProtobuf" in shown.locator("table").inner_text()
