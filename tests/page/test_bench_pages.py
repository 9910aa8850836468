"""`py-ort bench --page`: both engines from one static server, from navigation to the first result."""

from __future__ import annotations

import http.client
import json
import statistics
import time

import pytest
import small_models

import py_ort
from py_ort.bench.in_pages.measure import PageRow
from py_ort.bench.in_pages.page_table import page_table
from py_ort.bench.in_pages.site import Site
from py_ort.bench.peer import find_dist
from py_ort.exceptions import EngineError

pytestmark = pytest.mark.browser
FEW = ("--webgpu", "software", "--runs", 2, "--visits", 1, "--json", "-")


@pytest.fixture
def exported(tmp_path):
    """The model and its file, side by side."""
    (tmp_path / "m.onnx").write_bytes(small_models.two_products())
    py_ort.export(tmp_path / "m.onnx", tmp_path / "m.pyort")
    return tmp_path / "m.pyort"


def test_a_cold_and_a_warm_visit_on_each_provider(py_ort_command, exported):
    status, out, err = py_ort_command("bench", "--page", exported, *FEW)
    assert status == 0, err
    rows = json.loads(out)
    assert [(row["provider"], row["visit"]) for row in rows] == [
        (provider, visit) for provider in ("webgpu", "wasm") for visit in ("cold", "warm")
    ]
    for row in rows:
        assert 0 < row["module_ms"] < row["created_ms"] < row["first_ms"] and row["steady_ms"] > 0
        # The first visit fetches everything, the second one nothing: the browser has it.
        assert row["bytes"] > exported.stat().st_size if row["visit"] == "cold" else row["bytes"] == 0


def test_against_the_peer(py_ort_command, exported):
    try:
        find_dist()
    except EngineError as e:
        pytest.skip(str(e))
    options = ("--against", "onnxruntime-web", "--provider", "wasm")
    moved = exported.with_name("other.pyort")
    exported.rename(moved)
    status, out, err = py_ort_command("bench", "--page", moved, *FEW, *options)
    assert status != 0 and "other.onnx is not there" in err and "--model" in err
    status, out, err = py_ort_command(
        "bench", "--page", moved, "--model", exported.with_suffix(".onnx"), *FEW, *options
    )
    assert status == 0, err
    ours, theirs = ([row for row in json.loads(out) if row["engine"] == name] for name in ("py_ort", "onnxruntime-web"))
    assert len(ours) == len(theirs) == 2
    assert ours[0]["bytes"] < theirs[0]["bytes"] and theirs[0]["first_ms"] > 0


def test_engines_that_differ_are_not_compared(py_ort_command, exported, tmp_path):
    other = small_models.model(
        *([], [small_models.floats("x", ["N", 4, 8, 8])], [small_models.floats("x", ["N", 4, 8, 8])])
    )
    (tmp_path / "other.onnx").write_bytes(other)
    try:
        find_dist()
    except EngineError as e:
        pytest.skip(str(e))
    status, _, err = py_ort_command(
        *("bench", "--page", exported, "--model", tmp_path / "other.onnx", *FEW),
        *("--against", "onnxruntime-web", "--provider", "wasm"),
    )
    assert status != 0 and "other outputs than ours" in err


def test_what_is_no_exported_model(py_ort_command, exported):
    status, _, err = py_ort_command("bench", "--page", exported.with_suffix(".onnx"), *FEW)
    assert status != 0 and "is no .pyort file" in err and "py-ort export" in err


def test_the_table_compares_what_belongs_together():
    rows = [
        PageRow("m", "py_ort", "webgpu", 1, "cold", 1, 2, 300, 4, 5, 1),
        PageRow("m", "onnxruntime-web", "jsep", 1, "cold", 1, 2, 1200, 4, 5, 1),
        PageRow("m", "onnxruntime-web", "webgpu", 1, "cold", error="EngineError: no"),
    ]
    shares = list(page_table(rows).columns[7].cells)
    assert shares == ["", "0.25", "failed"]


def test_the_site_answers_at_once_on_connections_that_are_kept():
    site = Site()
    site.add("/a.bin", bytes(20_000))
    connection = http.client.HTTPConnection(site.origin.removeprefix("http://"))
    seconds = []
    try:
        for _ in range(30):
            start = time.perf_counter()
            connection.request("GET", "/a.bin")
            assert connection.getresponse().read() == bytes(20_000)
            seconds.append(time.perf_counter() - start)
    finally:
        connection.close()
        site.close()
    # Bodies that wait for a delayed acknowledgment of their headers arrive after 40 ms.
    assert statistics.median(seconds) < 0.03, seconds
