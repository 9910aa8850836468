"""Draws docs/*.png of the pages that the command line writes: run it when they look different."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from py_ort.browser import find

ROOT = Path(__file__).parents[1]
MODELS = Path(sys.executable).parents[1] / "lib"
WIDTH, HEIGHT = 1100, 760


def model(name: str) -> Path:
    """One of PP-OCR's models, which the sample brings."""
    return next(MODELS.glob(f"*/site-packages/rapidocr_onnxruntime/models/*{name}*.onnx"))


def main() -> None:
    """Write the pages, and draw them."""
    shape = ["--shape", "x=1x3x48x192"]
    pages = {"profile": ["profile", "model.onnx", *shape], "graph": ["placement", "model.onnx"]}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find.binary()), args=["--no-sandbox"])
        shutil.copy(model("cls"), Path(folder) / "model.onnx")  # by a short name, which is drawn, too
        for name, (command, *args) in pages.items():
            html = Path(folder) / f"{name}.html"
            subprocess.run([sys.executable, "-m", "py_ort.cli", command, *args, "--html", html], cwd=folder, check=True)
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(html.as_uri())
            page.wait_for_timeout(500)
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
