"""The npm package in pages: by script tag, as a module, bundled by esbuild and by Vite, and Vite's own server.

Each finds its worker, its wasm and the file of `generate`, and prints nothing on the console.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_models
from static_site import ISOLATED, StaticSite, browsing
from usual_script import PAGE, checked, page, visit

import py_ort

pytestmark = pytest.mark.browser
WEB = Path(__file__).parents[2] / "web"
VITE = "8.3.8"
CONFIG = "export default { optimizeDeps: { exclude: ['py-ort-web'] } };\n"


def asked(site: StaticSite, pattern: str) -> list[str]:
    return [path for path in site.asked if re.search(pattern, path)]


@pytest.mark.parametrize(("flavor", "provider"), [("", "webgpu"), (".wasm", "wasm")], ids=["webgpu", "wasm"])
def test_script_tag(project: Path, site: Callable[..., StaticSite], flavor: str, provider: str) -> None:
    tag = f'<script src="node_modules/py-ort-web/dist/py_ort{flavor}.min.js"></script>'
    (project / "index.html").write_text(page(f"{PAGE} start(ort, '{provider}');", tag, "text/javascript"))
    served = site()
    assert visit(served)["providers"][0] == provider
    assert asked(served, rf"/session_worker{flavor}\.mjs$") and asked(served, r"/core\.wasm$")


@pytest.mark.parametrize(("flavor", "provider"), [("", "webgpu"), (".wasm", "wasm")], ids=["webgpu", "wasm"])
@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_module(project: Path, site: Callable[..., StaticSite], flavor: str, provider: str, isolated: bool) -> None:
    script = (
        f"import * as ort from './node_modules/py-ort-web/dist/py_ort{flavor}.mjs'; {PAGE} start(ort, '{provider}')"
    )
    (project / "index.html").write_text(page(script))
    served = site(headers=ISOLATED if isolated else {})
    told = visit(served)
    assert told["isolated"] == isolated and told["providers"][0] == provider
    if flavor:
        assert asked(served, "wasm") and not asked(served, r"/(py_ort|session_worker)(-\w+)?\.mjs$")


@pytest.mark.parametrize(
    ("order", "scripts"),
    [
        (["wasm", "webgpu", "wasm"], ["session_worker.wasm.mjs", "session_worker.mjs"]),
        (["webgpu", "wasm"], ["session_worker.mjs"]),
        (["cpu"], ["session_worker.wasm.mjs"]),
    ],
    ids=" then ".join,
)
def test_sessions_on_wasm_load_no_shaders(
    project: Path, site: Callable[..., StaticSite], order: list[str], scripts: list[str]
) -> None:
    """Unless a worker that has them is running. Values go from one worker's sessions to the other's."""
    script = "import { InferenceSession, Tensor } from './node_modules/py-ort-web/dist/py_ort.mjs';\n"
    script += "const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });\n"
    script += "let y = new Tensor('float32', [1, 2, 3], [1, 3]);\n"
    script += f"try {{\n  for (const name of {json.dumps(order)}) {{\n"
    script += "    const session = await InferenceSession.create('add.pyort', { executionProviders: [name] });\n"
    script += "    ({ y } = await session.run({ x: y, scale: new Tensor('float32', [1, 1, 1]) }));\n  }\n"
    script += "  await tell([...y.data]);\n} catch (error) { await tell(error.message); }"
    (project / "index.html").write_text(page(script))
    served = site(headers=ISOLATED)
    with browsing("chromium", f"{served.origin}/"):
        assert served.told() == [1 + len(order), 2 + len(order), 3 + len(order)]
    assert [path.rpartition("/")[2] for path in asked(served, "/session_worker")] == scripts


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_modules_are_held_against_their_hashes(project: Path, site: Callable[..., StaticSite], right: bool) -> None:
    """By an import map, which includes parts that modules import."""
    dist = "./node_modules/py-ort-web/dist"
    hashes = json.loads((project / dist / "integrity.json").read_text())
    (part, *_) = re.findall(r'from ?"\./([\w.-]+)"', (project / dist / "py_ort.mjs").read_text())
    if not right:
        hashes[part] = hashes["py_ort.mjs"]
    of_modules = {f"{dist}/{name}": each for name, each in hashes.items() if name.endswith(".mjs")}
    imports = f'<script type="importmap">{json.dumps({"integrity": of_modules})}</script>'
    script = "const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });\n"
    script += f"import('{dist}/py_ort.mjs').then(({{ InferenceSession }}) => InferenceSession.create('add.pyort', "
    script += "{ executionProviders: ['wasm'] })).then(() => tell('runs'), (error) => tell(`fails: ${error}`));"
    (project / "index.html").write_text(page(script, imports))
    served = site()
    with browsing("chromium", f"{served.origin}/"):
        assert served.told().startswith("runs" if right else "fails: TypeError")


#: With the providers in order; the page reports which one ran, and the console's messages.
ORDERED = """
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const said = [];
console.warn = (...words) => said.push(words.join(' '));
try {
  const executionProviders = ['webgpu', 'webgl', 'wasm'];
  const session = await ort.InferenceSession.create('add.pyort', { executionProviders });
  const x = new ort.Tensor('float32', [1, 2, 3], [1, 3]);
  const { y } = await session.run({ x, scale: new ort.Tensor('float32', [10, 20, 30]) });
  await tell({ y: [...y.data], providers: session.executionProviders, said });
} catch (error) {
  await tell({ error: error.message, said });
}
"""
WITHOUT_WEBGPU = {"webgpu": "off", "flags": ("--enable-unsafe-swiftshader",)}


@pytest.mark.parametrize(
    ("options", "first", "skipped"),
    [
        ({"webgpu": "software"}, "webgpu", []),
        (WITHOUT_WEBGPU, "webgl", ["webgpu: "]),
        (WITHOUT_WEBGPU, "wasm", ["webgpu: ", "webgl: its file could not be loaded", "Put provider_webgl.mjs"]),
    ],
    ids=["webgpu", "webgl", "wasm"],
)
@pytest.mark.parametrize("proxy", ["", "ort.env.wasm.proxy = false;"], ids=["worker", "page"])
def test_the_first_provider_with_a_device_runs(
    project: Path, site: Callable[..., StaticSite], options: dict[str, Any], first: str, skipped: list[str], proxy: str
) -> None:
    """WebGL is in a separate file, which pages with WebGPU do not download; on wasm the file is missing."""
    dist = "node_modules/py-ort-web/dist"
    (project / "index.html").write_text(page(f"import * as ort from './{dist}/py_ort.mjs'; {proxy} {ORDERED}"))
    if first == "wasm":
        (project / dist / "provider_webgl.mjs").unlink()
    served = site()
    py_ort.export(small_models.add(), project / "add.pyort", providers=["webgpu", "webgl", "wasm"])
    with browsing("chromium", f"{served.origin}/", **options):
        told = served.told()
    assert told.get("y") == [11, 22, 33] and told["providers"][0] == first, told
    assert bool(asked(served, r"/provider_webgl\.mjs$")) == (first != "webgpu")
    said = "".join(told["said"])
    assert bool(said) == bool(skipped) and all(word in said for word in skipped), said


@pytest.mark.parametrize("proxy", ["", "ort.env.wasm.proxy = false;"], ids=["worker", "page"])
def test_a_signal_ends_the_wait_for_a_silent_server(project: Path, site: Callable[..., StaticSite], proxy: str) -> None:
    script = "import * as ort from './node_modules/py-ort-web/dist/py_ort.mjs';\n"
    script += f"{proxy} const abort = new AbortController();\n"
    script += "const loading = ort.InferenceSession.create('add.pyort', { signal: abort.signal });\n"
    script += "const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });\n"
    script += "await tell('loading'); abort.abort(new Error('mine'));\n"
    script += "await loading.catch(({ message }) => tell(message));"
    (project / "index.html").write_text(page(script))
    served = site()
    served.held["/add.pyort"] = threading.Event()
    with browsing("chromium", f"{served.origin}/"):
        assert served.told() == "loading"
        assert served.told(45) == "mine"  # the site answers after a minute


def test_the_page_of_the_readme(package: Path, project: Path, site: Callable[..., StaticSite]) -> None:
    """Unchanged, except for the model's size."""
    text = (package / "README.md").read_text()
    (html,) = re.findall(r"```html\n(.*?)```", text, re.DOTALL)
    html = html.replace("3 * 224 * 224", "12").replace("[1, 3, 224, 224]", "[3, 4]")
    model = small_models.model(
        [small_models.helper.make_node("Relu", ["in"], ["out"])],
        [small_models.floats("in", [3, 4])],
        [small_models.floats("out", [3, 4])],
    )
    py_ort.export(model, project / "model.pyort")
    told = "addEventListener('error', (e) => fetch('/told', { method: 'POST', body: JSON.stringify(e.message) }));\n"
    told += "new MutationObserver(() => document.body?.innerText && fetch('/told', { method: 'POST', "
    told += "body: JSON.stringify(document.body.innerText) })).observe(document, { childList: true, subtree: true });"
    (project / "index.html").write_text(html.replace("<!doctype html>", f"<!doctype html><script>{told}</script>"))
    served = site()
    with browsing("chromium", f"{served.origin}/"):
        assert served.told().split() == ["0"] * 5


@pytest.mark.parametrize("where", ["beside", "elsewhere"])
def test_esbuild(project: Path, site: Callable[..., StaticSite], where: str) -> None:
    """The files are copied next to the bundle, or to the folder of wasmPaths."""
    paths = "" if where == "beside" else "ort.env.wasm.wasmPaths = '/ort/';"
    (project / "main.js").write_text(f"import * as ort from 'py-ort-web'; {paths} {PAGE} start(ort, 'webgpu');")
    public = project / "public"
    files = public if where == "beside" else public / "ort"
    command = [str(WEB / "node_modules/.bin/esbuild"), "main.js", "--bundle", "--format=esm", "--outdir=public"]
    subprocess.run([*command, "--log-level=error"], cwd=project, check=True)
    files.mkdir(exist_ok=True)
    for file in (project / "node_modules/py-ort-web/dist").iterdir():
        (files / file.name).write_bytes(file.read_bytes())
    (public / "index.html").write_text(page("import './main.js';"))
    served = site(public)
    assert visit(served)["providers"][0] == "webgpu"
    prefix = "" if where == "beside" else "/ort"
    assert {f"{prefix}/session_worker.mjs", f"{prefix}/core.wasm"} <= set(served.asked)


def vite_project(project: Path, of_npm: Callable[[str, str], Path]) -> list[str]:
    """Write a project and return the command of Vite."""
    vite = of_npm("vite", VITE)
    (project / "main.js").write_text(f"import * as ort from 'py-ort-web'; {PAGE} start(ort, 'webgpu');")
    (project / "index.html").write_text(page("import './main.js';"))
    (project / "vite.config.js").write_text(CONFIG)
    return ["node", str(vite / "bin/vite.js")]


def test_vite_builds(project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    vite = vite_project(project, of_npm)
    built = subprocess.run([*vite, "build"], cwd=project, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    served = site(project / "dist", ISOLATED)
    assert visit(served)["providers"][0] == "webgpu"
    assert asked(served, r"/assets/session_worker-[\w-]+\.mjs$") and asked(served, r"/assets/core-[\w-]+\.wasm$")
    # Loops of the CPU come with relaxed SIMD and without; rare kernels come when a model has them.
    emitted = {re.sub(r"-[\w-]{8}\.", ".", file.name) for file in (project / "dist/assets").iterdir()}
    assert {"rare_kernels.wasm", "relaxed_simd.wasm", "simd128.wasm", "core.mjs", "generate.mjs"} <= emitted, emitted


def test_vite_serves(project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    """Its development server, whose page reports through a proxy."""
    vite = vite_project(project, of_npm)
    told = site()
    proxy = f"server: {{ proxy: {{ '/told': '{told.origin}' }} }}"
    (project / "vite.config.js").write_text(CONFIG.replace("{ optimizeDeps", f"{{ {proxy}, optimizeDeps"))
    server = subprocess.Popen(
        [*vite, "--host", "127.0.0.1", "--port", "0"], cwd=project, stdout=subprocess.PIPE, text=True
    )
    try:
        lines = iter(server.stdout.readline, "")  # type: ignore[union-attr]
        plain = (re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines)
        url = next(found[0] for line in plain if (found := re.search(r"http://[\d.]+:\d+/", line)))
        with browsing("chromium", url):
            checked(told.told())
    finally:
        server.terminate()
        server.wait(10)
