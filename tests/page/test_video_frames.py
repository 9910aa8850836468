"""Frames of videos as tensors: in a buffer of the GPU by an external texture, else by the canvas."""

import shutil
from pathlib import Path

import pytest
from text_form import parse

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

HERE = Path(__file__).parent
MODEL = "g (float[N, 3, 3, 5] x) => (float[N, 3, 3, 5] y) { y = Add(x, x) }"
SCRIPT = "async ([name, proxy]) => (await import('./video_frames.mjs')).run(name, proxy)"
CASES = ("without_a_device", "on_the_gpu", "what_is_wrong")


@pytest.fixture
def page():
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
def test_video_frames(page, case):
    page.evaluate(SCRIPT, [case, False])


def test_a_session_in_a_worker(page):
    """It moves to the page, whose buffers it is given."""
    page.evaluate(SCRIPT, ["on_the_gpu", None])
