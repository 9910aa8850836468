"""The server's own pages: the list of models, the page of a model; and its script in the user's pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from py_ort.compiler.package.read import Package
from py_ort.exporting.page import first_shapes
from py_ort.pages.template import render_beside

#: Path of the package's files.
PREFIX = "/py_ort/"
SCRIPT = "serve_overlay.js"
_MOST = 500
_SUFFIXES = (".onnx", ".pyort")
#: At the end of the page: a parser puts it into the body, after the page's own scripts.
_TAG = f'\n<script src="{PREFIX}{SCRIPT}"></script>\n'.encode()


def with_overlay(page: bytes) -> bytes:
    """Return a page with the script that shows progress and reloads it."""
    return page + _TAG


def page_of(model: Path) -> bytes:
    """Return a page that runs a `.pyort` file next to it, by URL."""
    data = {"models": [{"file": model.name, "shapes": first_shapes(Package(model).header)}]}
    return with_overlay(render_beside(f"{PREFIX}model_page.js", "model", model.stem, data).encode())


def list_of_models(folder: Path) -> bytes:
    """Return a page that lists the models below a folder, with links to pages that run them."""
    models = []
    for file in models_below(folder):
        path = file.relative_to(folder)
        url = quote(path.with_suffix(".pyort").as_posix()) + "?page"
        models.append({"name": path.as_posix(), "run": url, "size": file.stat().st_size / 1e6})
    title = f"models in {folder.name or folder}"
    return with_overlay(render_beside(f"{PREFIX}{SCRIPT}", "models", title, models=models).encode())


def models_below(folder: Path) -> Iterator[Path]:
    """Yield the ONNX files, and the `.pyort` files without an ONNX file; skip links and hidden folders."""
    found = 0
    for each in sorted(folder.rglob("*")):
        parts = each.relative_to(folder).parts
        if each.suffix not in _SUFFIXES or any(part.startswith(".") or part == "node_modules" for part in parts):
            continue
        if each.is_symlink() or not each.is_file() or (each.suffix == ".onnx" and each.with_suffix(".pyort").exists()):
            continue
        yield each
        found += 1
        if found == _MOST:
            return
