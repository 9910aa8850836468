"""`py-ort bench --page`: both engines from one static server, from navigation to the first result."""

import functools
import gzip
import http.client
import statistics
import time

import pytest
import small_models
from npm_packages import peer_dist

import py_ort
from py_ort.bench.in_pages.measure import PageRow
from py_ort.bench.in_pages.page_table import page_table
from py_ort.bench.in_pages.site import Site

PEER = ("--against", "onnxruntime-web", "--provider", "wasm")


#: The files of both engines are large, and the same in each test.
compressed = functools.cache(gzip.compress)


@pytest.fixture
def bench(py_ort_json, monkeypatch):
    """Time a page, twice; return the status, the rows and the messages."""
    monkeypatch.setattr(gzip, "compress", compressed)
    return lambda *more: py_ort_json("bench", "--page", *more, "--webgpu", "software", "--runs", 2, "--visits", 1)


@pytest.fixture
def exported(tmp_path):
    """The model and its file, side by side."""
    (tmp_path / "m.onnx").write_bytes(small_models.two_products())
    py_ort.export(tmp_path / "m.onnx", tmp_path / "m.pyort")
    return tmp_path / "m.pyort"


def test_a_cold_and_a_warm_visit_on_each_provider(bench, exported):
    status, rows, err = bench(exported)
    assert status == 0, err
    wanted = [(provider, visit) for provider in ("webgpu", "wasm") for visit in ("cold", "warm")]
    assert [(row["provider"], row["visit"]) for row in rows] == wanted
    for row in rows:
        assert 0 < row["module_ms"] < row["created_ms"] < row["first_ms"] and row["steady_ms"] > 0
        # The first visit fetches everything, the second one nothing: the browser has it.
        assert row["bytes"] > exported.stat().st_size if row["visit"] == "cold" else row["bytes"] == 0


def test_against_the_peer(bench, exported):
    peer_dist()
    moved = exported.with_name("other.pyort")
    exported.rename(moved)
    status, _, err = bench(moved, *PEER)
    assert status != 0 and "other.onnx is not there" in err and "--model" in err
    status, rows, err = bench(moved, "--model", exported.with_suffix(".onnx"), *PEER)
    assert status == 0, err
    ours, theirs = ([row for row in rows if row["engine"] == name] for name in ("py_ort", "onnxruntime-web"))
    assert len(ours) == len(theirs) == 2
    assert ours[0]["bytes"] < theirs[0]["bytes"] and theirs[0]["first_ms"] > 0


def test_engines_that_differ_are_not_compared(bench, exported, tmp_path):
    peer_dist()
    x = small_models.floats("x", ["N", 4, 8, 8])
    (tmp_path / "other.onnx").write_bytes(small_models.model([], [x], [x]))
    status, _, err = bench(exported, "--model", tmp_path / "other.onnx", *PEER)
    assert status != 0 and "other outputs than ours" in err


def test_what_is_no_exported_model(bench, exported):
    status, _, err = bench(exported.with_suffix(".onnx"))
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
