"""py_ort.mjs in a page without Python: tensors on the GPU in and out, as onnxruntime-web has them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_models
from onnx import TensorProto, helper

import py_ort

pytestmark = pytest.mark.browser
HERE = Path(__file__).resolve().parent
CASES = re.findall(r"""^  ['"](.+)['"]: async""", (HERE / "javascript_api.mjs").read_text(), re.MULTILINE)
ASSETS = HERE.parents[1] / "py_ort/assets"


def strings() -> bytes:
    """y = x + x of floats, t = the strings s, which only the CPU knows."""
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, ["N"]) for name in ("s", "t")]
    return small_models.model(
        [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Identity", ["s"], ["t"])],
        [small_models.floats("x", [4]), text[0]],
        [small_models.floats("y", [4]), text[1]],
    )


@pytest.fixture(scope="module")
def javascript() -> Iterator[Any]:
    """Runs a case of javascript_api.mjs."""
    from plain_page import PlainPage

    opened = PlainPage()
    page = opened._page
    for file in (
        *ASSETS.glob("*.mjs"),
        *ASSETS.glob("*.wasm"),
        ASSETS / "microkernel_worker.js",
        HERE / "javascript_api.mjs",
        HERE / "javascript_checks.mjs",
    ):
        shutil.copy(file, page.folder / file.name)
    for name, model in {"add": small_models.add(), "strings": strings()}.items():
        py_ort.export(model, page.folder / f"{name}.pyort")
    py_ort.export(small_models.add(), page.folder / "wasm.pyort", providers=["wasm"])
    py_ort.export(small_models.two_products(), page.folder / "parted.pyort", part_size=1024)
    (page.folder / "add.onnx").write_bytes(small_models.add())
    run = """async ([name, proxy]) => {
        const { cases, env } = await import('./javascript_api.mjs');
        env.wasm.proxy = proxy;
        await cases[name]();
    }"""
    yield lambda case, proxy: page.evaluate(run, [case, proxy])
    opened.close()


@pytest.mark.parametrize("proxy", [None, False], ids=["worker", "page"])
@pytest.mark.parametrize("case", CASES)
def test_javascript(javascript: Any, case: str, proxy: bool | None) -> None:
    javascript(case, proxy)
