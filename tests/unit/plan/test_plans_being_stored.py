"""Plans that a thread is still storing: listed and removed like stored ones."""

from __future__ import annotations

import pytest
import small_models

from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.plan.cache import PlanCache
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin


@pytest.fixture
def cache(tmp_path):
    """Three plans that are being stored in a cache."""
    cache = PlanCache(tmp_path / "plans")
    for sizes in ({}, {"N": 4}, {"N": 5}):
        planner = Planner(Origin(small_models.add()), None, cache)
        planner.plan(["webgpu", "wasm"], CompileOptions(free_dimension_overrides=sizes))
        planner.store()
    return cache


def test_they_are_listed(cache):
    assert len(cache.entries()) == 3


def test_they_are_removed(cache):
    assert cache.clear() == 3
    assert not cache.entries()
