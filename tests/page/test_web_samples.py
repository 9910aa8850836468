"""samples/web: each runs unchanged from a plain file server, and returns native onnxruntime's results."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from language_models import language_model, native_greedy
from native import native_session

import py_ort
from py_ort import BrowserOptions
from py_ort.exporting.runtime_files import copy_runtime

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples/web"
VITE = "7.3.8"


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=BrowserOptions(webgpu="software", sandbox=False).command_line(),
        )
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium):
    opened = chromium.new_page()
    yield opened
    opened.close()


def lay_out(folder: Path, sample: str, runtime: str) -> None:
    """A sample with its model and the runtime in a folder next to it or in it."""
    shutil.copytree(SAMPLES / sample, folder / sample)
    py_ort.export(small_models.two_products(), folder / sample / "model.pyort")
    copy_runtime(folder / runtime)


def check(page: Any) -> None:
    page.wait_for_function("document.querySelector('#result').textContent !== 'loading …'", timeout=60_000)
    text = page.inner_text("#result")
    assert text.startswith("{"), text
    told = json.loads(text)
    x = np.full((1, 4, 8, 8), 0.5, np.float32)
    (wanted,) = native_session(small_models.two_products()).run(None, {"x": x})
    assert told["on"] == ["webgpu", "wasm"] and told["dims"] == [1, 7]
    np.testing.assert_allclose(told["data"], wanted[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sample", ["page", "worker"])
def test_plain_modules(tab, serve, tmp_path, sample):
    lay_out(tmp_path, sample, "runtime")
    tab.goto(f"{serve(tmp_path).origin}/{sample}/")
    check(tab)


def test_offline(tab, serve, tmp_path):
    """After the first visit, it does not need its server."""
    lay_out(tmp_path, "offline", "offline/runtime")
    site = serve(tmp_path)
    tab.goto(f"{site.origin}/offline/")
    check(tab)
    site.close()
    tab.reload()
    check(tab)


_OPEN_DECODER = """import('./runtime/py_ort.mjs').then(({ InferenceSession }) =>
    InferenceSession.create('decoder.pyort', { executionProviders: ['wasm'] }))"""


def test_generate_offline(tab, serve, tmp_path):
    """Its file is loaded on first use: by then there may be no network."""
    lay_out(tmp_path, "offline", "offline/runtime")
    decoder = language_model("growing")
    py_ort.export(decoder.SerializeToString(), tmp_path / "offline/decoder.pyort", providers=["wasm"])
    site = serve(tmp_path)
    tab.goto(f"{site.origin}/offline/")
    check(tab)
    tab.evaluate(f"{_OPEN_DECODER}.then((session) => session.release())")
    site.close()
    tab.reload()
    check(tab)
    tokens = tab.evaluate(
        f"{_OPEN_DECODER}.then((session) => session.generate([3, 1, 4], {{ maxNewTokens: 4 }}).result)"
    )
    assert tokens == native_greedy(decoder, [3, 1, 4], 4)


def test_vite(tab, serve, tmp_path):
    folder = tmp_path / "vite"
    shutil.copytree(SAMPLES / "vite", folder)
    py_ort.export(small_models.two_products(), folder / "public/model.pyort")
    subprocess.run(["node", "npm/build.mjs", "--out", tmp_path / "npm"], cwd=ROOT / "web", check=True)
    (archive,) = (ROOT / "dist").glob("py-ort-web-*.tgz")
    npm = shutil.which("npm") or pytest.skip("npm is not here to fetch Vite")
    command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", str(archive), f"vite@{VITE}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot fetch Vite: {done.stderr.strip()[-300:]}")
    subprocess.run(["npx", "--no-install", "vite", "build"], cwd=folder, check=True)
    tab.goto(f"{serve(folder / 'dist').origin}/")
    check(tab)
