"""The main job as a user runs it: RapidOCR, unmodified, on a picture of the repository and on one it has never seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import make_sample
import numpy as np
import pytest

pytest.importorskip("rapidocr_onnxruntime")

SAMPLES = Path(__file__).parents[2] / "samples"
UNSEEN = ("The quick brown fox", "over 13 lazy dogs", "24 Market Street", "7 copper sheets", "Paid in cash")


def read(provider: str, image: Path | None = None) -> str:
    command = [sys.executable, str(SAMPLES / "read_image.py"), "--provider", provider, "--webgpu", "software"]
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


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_an_unseen_image(provider, tmp_path, monkeypatch):
    monkeypatch.setattr(make_sample, "LINES", UNSEEN)
    image = tmp_path / "unseen.png"
    make_sample.draw().save(image)
    printed = read(provider, image)
    for line in UNSEEN:
        assert line in printed


def test_the_sample_is_what_the_script_draws():
    from PIL import Image

    with Image.open(SAMPLES / "sample.png") as image:
        np.testing.assert_allclose(np.asarray(image, int), np.asarray(make_sample.draw(), int), atol=2)
