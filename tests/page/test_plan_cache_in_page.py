"""Cached plans that the page refuses."""

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
import small_models
from forged_plans import HEADERS, PLANS, forge
from text_form import parse

from py_ort.compiler.plan.cache import PlanCache
from py_ort.exceptions import InvalidGraph

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SCALE = np.array([1, 2, 3], np.float32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))
    found = PlanCache.default()
    assert found is not None
    return found


@pytest.mark.parametrize("wrong", [*PLANS, *HEADERS])
@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_forged_plans_are_passed_over_and_replaced(new_session, cache, provider, wrong, caplog):
    def run() -> None:
        session = new_session(small_models.add(), providers=[provider])
        np.testing.assert_array_equal(session.run(None, {"x": X, "scale": SCALE})[0], X + SCALE)
        cache.flush()

    run()
    (entry,) = cache.entries()
    forge(entry.path, HEADERS.get(wrong, dict), PLANS.get(wrong, bytes))
    forged = entry.path.read_bytes()
    with caplog.at_level(logging.WARNING, "py_ort"):
        run()
    assert "is not used" in caplog.text
    assert entry.path.read_bytes() != forged
    caplog.clear()
    run()
    assert "is not used" not in caplog.text


def test_a_forged_plan_that_comes_back(new_session, cache, monkeypatch):
    new_session(small_models.add(), providers=["wasm"])
    cache.flush()
    (entry,) = cache.entries()
    forge(entry.path, plan=PLANS["zeros"])
    copy = entry.path.with_name("copy")
    shutil.copy(entry.path, copy)
    # As if another process wrote it again, or the folder were read-only (which it never is for root).
    remove = PlanCache.reject

    def put_back(self: PlanCache, path: Path, why: Exception) -> None:
        remove(self, path, why)
        shutil.copy(copy, path)

    monkeypatch.setattr(PlanCache, "reject", put_back)
    session = new_session(small_models.add(), providers=["wasm"])
    np.testing.assert_array_equal(session.run(None, {"x": X, "scale": SCALE})[0], X + SCALE)


def test_a_plan_that_cannot_be_captured_stays_in_the_cache(new_session, cache, caplog):
    """The cause is an option of the session, not the plan."""
    model = parse("g (float[6] x, int64[2] ids) => (float[a,b] y) { y = Reshape(x, ids) }")
    new_session(model, providers=["webgpu"])
    cache.flush()
    (entry,) = cache.entries()
    before = entry.path.stat().st_ino
    with caplog.at_level(logging.WARNING, "py_ort"), pytest.raises(InvalidGraph, match="cannot be captured"):
        new_session(model, providers=[("webgpu", {"enableGraphCapture": True})])
    cache.flush()
    assert "is not used" not in caplog.text
    assert [(one.path, one.path.stat().st_ino) for one in cache.entries()] == [(entry.path, before)]
