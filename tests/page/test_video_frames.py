"""Frames of videos as tensors: in a buffer of the GPU by an external texture, else by the canvas."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graphs import parse

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

pytestmark = pytest.mark.browser
HERE = Path(__file__).parent
MODEL = "g (float[N, 3, 3, 5] x) => (float[N, 3, 3, 5] y) { y = Add(x, x) }"
SCRIPT = "async ([name, proxy]) => (await import('./video_frames.mjs')).run(name, proxy)"
CASES = ("without_a_device", "on_the_gpu", "what_is_wrong")


@pytest.fixture
def page() -> Iterator[Any]:
    from plain_page import PlainPage

    opened = PlainPage()
    copy_runtime(opened._page.folder)
    for name in ("video_frames.mjs", "javascript_checks.mjs"):
        shutil.copy(HERE / name, opened._page.folder)
    (opened._page.folder / "index.html").write_text("<!doctype html><title>Frames</title>")
    py_ort.export(parse(MODEL).SerializeToString(), opened._page.folder / "m.pyort", providers=["webgpu"])
    yield opened._page
    opened.close()


@pytest.mark.parametrize("case", CASES)
def test_video_frames(page: Any, case: str) -> None:
    page.evaluate(SCRIPT, [case, False])


def test_a_session_in_a_worker(page: Any) -> None:
    """It moves to the page, whose buffers it is given."""
    page.evaluate(SCRIPT, ["on_the_gpu", None])
