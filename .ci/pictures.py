"""Draws docs/*.png of the pages that the command line writes, in light and dark: run it when the pages look different.

Arguments are names of pictures (`COMMANDS`, `SERVED`), if not all are wanted.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from py_ort.browser import find
from py_ort.browser.browser_options import BrowserOptions

ROOT = Path(__file__).parents[1]
SITE_PACKAGES = Path(sys.executable).parents[1] / "lib"
WIDTH, HEIGHT = 1100, 760
#: Colors of a picture: enough for text and charts, and a third of the bytes.
COLORS = 96
SHAPE = ("--shape", "x=1x3x48x192")
CASES = "text|test_(conv|resize_up|softmax_ex|gelu|layer_normalization_2d|maxpool_2d|gemm)"
ENGINES = ("--engine", "py_ort", "--engine", "onnxruntime-web")
CLI = "py_ort.cli"
BOTH = ("--provider", "wasm", "--provider", "webgpu")
#: The Python module and arguments that write a page, and the page; pages of a server have none.
COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "profile": ((CLI, "profile", "model.onnx", *SHAPE, "--html", "profile.html"), "profile.html"),
    "graph": ((CLI, "placement", "model.onnx", "--html", "graph.html"), "graph.html"),
    "bench": (
        (CLI, "bench", "model.onnx", *SHAPE, *BOTH, "--against", "onnxruntime-web", "--html", "bench.html"),
        "bench.html",
    ),
    "matrix": (
        (CLI, "conformance", "onnx-node", "models.py", "--filter", CASES, *ENGINES, *BOTH, "--html", "matrix.html"),
        "matrix.html",
    ),
    "check": ((CLI, "check", "model.onnx", "digits.onnx", "--html", "check.html"), "check.html"),
    "compare": ((CLI, "compare", "model.onnx", *SHAPE, "--html", "compare.html"), "compare.html"),
    "tests": (("pytest", "test_digits.py", "--ort-skip-missing", "--ort-html", "tests.html"), "tests.html"),
    "export": ((CLI, "export", "model.onnx", *SHAPE, "-o", "site", "--page", "--check"), "site/model.check.html"),
}
SERVED = {"models": "", "page": "site/index.html"}


def run(folder: Path, *arguments: str) -> None:
    """Run a module; a difference between engines is a status of 1, and belongs in the picture."""
    subprocess.run([sys.executable, "-m", *arguments], cwd=folder, check=False)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the URL of `py-ort serve`."""
    command = [sys.executable, "-u", "-m", CLI, "serve", ".", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout
            lines = (re.search(r"http://\S+/", line) for line in server.stdout)
            yield next(found[0] for found in lines if found)
        finally:
            server.terminate()


def draw(browser: Browser, url: str, name: str) -> None:
    """Write the pictures of one page."""
    for scheme, suffix in (("light", ""), ("dark", "_dark")):
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
        page.goto(url)
        settle(page)
        shown = min(HEIGHT, int(page.evaluate("document.body.scrollHeight")))
        png = page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": shown})
        picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
        picture.save(ROOT / "docs" / f"{name}{suffix}.png", optimize=True)
        page.close()


def settle(page: Page) -> None:
    """Run the model on a page of models, and wait for the last frame."""
    if page.locator("button#run").count():
        page.click("button#run", timeout=60_000)
        page.wait_for_selector("[data-state=done]", timeout=120_000, state="attached")
    page.wait_for_timeout(500)


def main(names: list[str]) -> None:
    """Write the pages, and draw them."""
    wanted = names or [*COMMANDS, *SERVED]
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary) / "project"
        folder.mkdir()
        flags = [*BrowserOptions().command_line(), "--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=str(find.binary()), args=flags)
        model = next(SITE_PACKAGES.glob("*/site-packages/rapidocr_onnxruntime/models/*cls*.onnx"))
        shutil.copy(model, folder / "model.onnx")  # under a short name, which is drawn, too
        for file in (ROOT / "samples/models.py", *(ROOT / "examples/ci").glob("*digits*")):
            shutil.copy(file, folder)
        for name, (arguments, page) in COMMANDS.items():
            if name in wanted or (name == "export" and "page" in wanted):
                run(folder, *arguments)
                draw(browser, (folder / page).as_uri(), name)
        if set(SERVED) & set(wanted):
            with served(folder) as url:
                for name, path in SERVED.items():
                    if name in wanted:
                        draw(browser, url + path, name)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
