"""The main use: RapidOCR, unmodified, on a picture of the repository and on an unseen one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import draw_lines
import make_sample
import numpy as np
import pytest

pytest.importorskip("rapidocr_onnxruntime")
from PIL import Image

SAMPLES = Path(__file__).parents[2] / "samples"
UNSEEN = ("The quick brown fox", "24 Market Street", "Paid in cash")


def read(provider: str, image: Path | None = None, drawn: Path | None = None) -> str:
    command = [sys.executable, str(SAMPLES / "read_image.py"), "--provider", provider, "--webgpu", "software"]
    if drawn:
        command += ["--drawn", str(drawn)]
    done = subprocess.run(
        [*command, *(["--image", str(image)] if image else [])],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_the_sample(provider):
    printed = read(provider)
    for line in make_sample.LINES:
        assert line in printed
    assert ("swiftshader" in printed.lower()) == (provider == "webgpu")
    assert f"nodes on {provider}" in printed and "hromium" in printed


#: On WebGPU the same kernels read the sample, and tests/models/test_ppocr.py compares them with native onnxruntime,
#: too. Another reading, 20 s on a software adapter, runs in `make kernels`.
UNSEEN_ON = ["wasm", *(["webgpu"] if os.environ.get("PY_ORT_ALL_CASES") == "1" else [])]


@pytest.mark.parametrize("provider", UNSEEN_ON)
def test_an_unseen_image(provider, tmp_path, monkeypatch):
    monkeypatch.setattr(make_sample, "LINES", UNSEEN)
    image = tmp_path / "unseen.png"
    make_sample.draw().save(image)
    drawn = tmp_path / "new folder/drawn.png"
    printed = read(provider, image, drawn)
    for line in UNSEEN:
        assert line in printed
    assert str(drawn) in printed
    with Image.open(image) as before, Image.open(drawn) as after:
        assert after.size == (2 * before.width, before.height)
        left, right = np.split(np.asarray(after.convert("RGB"), int), 2, axis=1)
        changed = np.abs(left - np.asarray(before, int)).max(2) > 8
    pen = make_sample.LETTERS // 4
    for number in range(len(UNSEEN)):  # each line has a box around it, and its text next to it
        top = make_sample.MARGIN + number * make_sample.LEADING - pen
        rows = slice(top - 6, top + make_sample.LETTERS + 12)
        assert changed[rows].any(0).sum() > 100 and (right[rows].max(2) < 100).sum() > 50


def test_the_sample_is_what_the_script_draws():
    with Image.open(SAMPLES / "sample.png") as image:
        np.testing.assert_allclose(np.asarray(image, int), np.asarray(make_sample.draw(), int), atol=2)


def test_drawn_lines_stay_in_their_boxes():
    box = np.array([[10, 10], [60, 10], [60, 30], [10, 30]])
    lines = [
        draw_lines.Line(text, 1.0, box + np.array([0, 40 * i])) for i, text in enumerate(("short", "long " * 3, ""))
    ]
    drawn = np.asarray(draw_lines.draw_lines(np.full((140, 100, 3), 200, np.uint8), lines), int)
    assert drawn.shape == (140, 200, 3)
    marked = (drawn[:, 100:] < 250).any(2)
    rows, columns = np.nonzero(marked)
    assert rows.min() == 10 and rows.max() == 110 and columns.min() == 10 and columns.max() <= 64
    assert (drawn[:, :100] == 200).all(2).mean() > 0.8
