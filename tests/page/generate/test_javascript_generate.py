"""`generate` of py_ort.mjs: in a page without Python, with the session in a worker or in the page's thread."""

import re
import shutil
from pathlib import Path

import pytest
from language_models import language_model, native_greedy
from native_beams import native_beams

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

HERE = Path(__file__).resolve().parent
CASES = re.findall(r"""^  ['"](.+)['"]: async""", (HERE / "javascript_generate.mjs").read_text(), re.MULTILINE)
PROMPT = [3, 1, 4, 1, 5]


@pytest.fixture(scope="module")
def javascript():
    """Runs a case of javascript_generate.mjs, or its loop without a name."""
    from plain_page import PlainPage

    opened = PlainPage()
    page = opened._page
    copy_runtime(page.folder)
    for file in (HERE / "javascript_generate.mjs", HERE.parent / "javascript_checks.mjs"):
        shutil.copy(file, page.folder)
    (page.folder / "index.html").write_text("<!doctype html><title>Tokens</title>")
    wanted, beams = {}, {}
    for kind in ("growing", "grouped"):
        model = language_model(kind)
        wanted[kind] = native_greedy(model, PROMPT, 8)
        beams[kind] = native_beams(model, PROMPT, 6, 3, length_penalty=0.0)._asdict()
        py_ort.export(model.SerializeToString(), page.folder / f"{kind}.pyort")
    script = """async ([name, kind, provider, wanted, beams, proxy]) => {
        const { run, loop, env } = await import('./javascript_generate.mjs');
        env.wasm.proxy = proxy;
        await (name ? run(name, kind, provider, wanted, beams) : loop(kind, wanted));
    }"""

    def run(case, kind, provider, proxy):
        page.evaluate(script, [case, kind, provider, wanted[kind], beams[kind], proxy])

    yield run
    opened.close()


@pytest.mark.parametrize("proxy", [None, False], ids=["worker", "page"])
@pytest.mark.parametrize(("kind", "provider"), [("growing", "wasm"), ("grouped", "webgpu")])
@pytest.mark.parametrize("case", CASES)
def test_generate_in_javascript(javascript, case, kind, provider, proxy):
    javascript(case, kind, provider, proxy)


@pytest.mark.parametrize("proxy", [None, False], ids=["worker", "page"])
@pytest.mark.parametrize("kind", ["growing", "grouped"])
def test_loop_of_ones_own(javascript, kind, proxy):
    """Feeding caches left on the GPU costs neither walks nor bind groups."""
    javascript(None, kind, "webgpu", proxy)
