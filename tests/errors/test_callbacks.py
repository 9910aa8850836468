"""A user's `progress` may raise or use other sessions, and harms none of them."""

import itertools
import threading

import numpy as np
import pytest
import small_models
from onnx import helper, numpy_helper

FEEDS = {"x": np.zeros((2, 3), np.float32), "scale": np.ones(3, np.float32)}
_seed = itertools.count()


def heavy() -> bytes:
    """A model with weights that no other session has, so that the page reports the progress of fetching them."""
    weights = np.random.default_rng(next(_seed)).standard_normal((1024, 2048)).astype(np.float32)
    ends = small_models.floats("x", [1, 1024]), small_models.floats("y", [1, 2048])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return small_models.model([node], ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])


class Stop(Exception):
    pass


@pytest.mark.parametrize("raised", [Stop, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("stage", ["loading it into the page", "weights"])
def test_an_exception_of_progress_is_the_callers(new_session, stage, raised):
    def progress(told, done, total):
        if told == stage:
            raise raised("mine")

    beside = new_session(small_models.add())
    with pytest.raises(raised, match="mine"):
        new_session(heavy(), progress=progress)
    later = new_session(small_models.add())
    for session in (beside, later):
        assert session.run(None, FEEDS)[0].tolist() == [[1, 1, 1]] * 2


def test_progress_may_use_other_sessions(new_session):
    beside, results = new_session(small_models.add()), {}

    def progress(stage, done, total):
        results[stage] = beside.run(None, FEEDS)[0].tolist(), threading.current_thread().name

    new_session(heavy(), progress=progress)
    assert "weights" in results
    assert all(result == [[1, 1, 1]] * 2 and thread != "py_ort" for result, thread in results.values())


def test_an_exception_of_progress_is_no_fault_of_a_cached_plan(new_session, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))
    from py_ort.compiler.plan.cache import PlanCache

    model = heavy()
    new_session(model).close()
    PlanCache.default().flush()

    def progress(stage, done, total):
        if stage == "weights":
            raise Stop

    with pytest.raises(Stop):
        new_session(model, progress=progress)
    assert "is not used" not in caplog.text
    assert len(PlanCache.default().entries()) == 1
