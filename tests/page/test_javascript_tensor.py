"""Tensor of py_ort.mjs: every type, GPU buffers filled by hand, images; compared with onnxruntime-web."""

import re
import shutil
from pathlib import Path

import pytest
from text_form import parse

import py_ort
from py_ort.bench.peer import find_dist
from py_ort.compiler.compile import compile_model
from py_ort.exceptions import EngineError

HERE = Path(__file__).resolve().parent
CASES = re.findall(r"""^  ['"](.+)['"]: async""", (HERE / "javascript_tensor.mjs").read_text(), re.MULTILINE)
ASSETS = HERE.parents[1] / "py_ort/assets"
FLOATS = ["float32", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
ON_GPU = [*FLOATS, *INTEGERS, "bool"]
AS_BITS = ["int4", "uint4", "bfloat16", "float8e4m3fn", "float8e5m2"]


def where(type_name: str) -> bytes:
    """y = c ? x : z of a JavaScript type, and f, the same as floats."""
    nodes = "y = Where(c, x, z)  f = Cast<to=1>(y)"
    return of_type(type_name, f"g (bool[5] c, TYPE[5] x, TYPE[5] z) => (TYPE[5] y, float[5] f) {{ {nodes} }}")


def reading(type_name: str) -> bytes:
    """y = x of a JavaScript type, and f, the same as floats."""
    return of_type(type_name, "g (TYPE[5] x) => (TYPE[5] y, float[5] f) { y = Identity(x)  f = Cast<to=1>(x) }")


def of_type(type_name: str, text: str) -> bytes:
    return parse(text.replace("TYPE", {"float32": "float"}.get(type_name, type_name))).SerializeToString()


@pytest.fixture(scope="module")
def javascript():
    """Runs a case of javascript_tensor.mjs."""
    from plain_page import PlainPage

    try:
        peer = find_dist() / "ort.wasm.min.mjs"
    except EngineError:
        peer = None
    opened = PlainPage()
    page = opened._page
    files = [*ASSETS.glob("*.mjs"), *ASSETS.glob("*.wasm"), ASSETS / "microkernel_worker.js"]
    for file in (*files, HERE / "javascript_tensor.mjs", HERE / "javascript_checks.mjs"):
        shutil.copy(file, page.folder / file.name)
    if peer:
        shutil.copy(peer, page.folder / "onnxruntime_web.mjs")
    for name in ON_GPU:
        py_ort.export(where(name), page.folder / f"where_{name}.pyort")
    for name in AS_BITS:
        py_ort.export(reading(name), page.folder / f"read_{name}.pyort")
    run = "async (name) => (await import('./javascript_tensor.mjs')).cases[name]()"

    def evaluate(case: str) -> None:
        if "onnxruntime-web" in case and not peer:
            pytest.skip("onnxruntime-web is not installed, and npm cannot fetch it")
        page.evaluate(run, case)

    yield evaluate
    opened.close()


@pytest.mark.parametrize("case", CASES)
def test_tensor(javascript, case):
    javascript(case)


@pytest.mark.parametrize("name", ON_GPU)
def test_the_models_of_gpu_buffers_run_on_the_gpu(name):
    assert {node.provider for node in compile_model(where(name)).placement.nodes} == {"webgpu"}
