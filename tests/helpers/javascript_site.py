"""The folder in which the cases of tests/page/javascript_api.mjs run: modules, models and the runtime, all static."""

from __future__ import annotations

import shutil
from pathlib import Path

import small_models
from onnx import TensorProto, helper

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

_PAGES = Path(__file__).resolve().parents[1] / "page"


def strings() -> bytes:
    """y = x + x of floats, t = the strings s, which only the CPU knows."""
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, ["N"]) for name in ("s", "t")]
    return small_models.model(
        [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Identity", ["s"], ["t"])],
        [small_models.floats("x", [4]), text[0]],
        [small_models.floats("y", [4]), text[1]],
    )


def lay_out(folder: Path) -> None:
    """Write it."""
    copy_runtime(folder)
    for file in (*_PAGES.glob("javascript_*.mjs"), *_PAGES.glob("javascript_*.html")):
        shutil.copy(file, folder)
    for name, model in {"add": small_models.add(), "strings": strings()}.items():
        py_ort.export(model, folder / f"{name}.pyort")
    py_ort.export(small_models.add(), folder / "wasm.pyort", providers=["wasm"])
    py_ort.export(small_models.two_products(), folder / "parted.pyort", part_size=1024)
    (folder / "add.onnx").write_bytes(small_models.add())
    page = folder / "index.html"
    if not page.exists():
        page.write_text("<!doctype html><title>No model</title>")
