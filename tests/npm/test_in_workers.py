"""The npm package in workers of every kind: dedicated and shared ones, service workers, an extension's background."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from static_site import CORS, ISOLATED, StaticSite, browsing
from usual_script import PAGE, RUN, checked, page, visit

from py_ort import BrowserOptions

pytestmark = pytest.mark.browser
DIST = "/node_modules/py-ort-web/dist"
KINDS = pytest.mark.parametrize("kind", ["classic", "module"])
FLAVORS = pytest.mark.parametrize(("flavor", "provider"), [("", "webgpu"), (".wasm", "wasm")], ids=["webgpu", "wasm"])


def loading(kind: str, flavor: str, at: str = DIST) -> str:
    """The line of a worker's script that loads the whole API."""
    if kind == "classic":
        return f"importScripts('{at}/py_ort{flavor}.min.js');\n"
    return f"import * as ort from '{at}/py_ort{flavor}.bundle.mjs';\n"


@KINDS
@FLAVORS
@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_dedicated_workers(
    project: Path, site: Callable[..., StaticSite], kind: str, flavor: str, provider: str, isolated: bool
) -> None:
    (project / "worker.js").write_text(f"{loading(kind, flavor)}{PAGE} start(ort, '{provider}');")
    (project / "index.html").write_text(page(f"new Worker('worker.js', {{ type: '{kind}' }});"))
    served = site(headers=ISOLATED if isolated else {})
    told = visit(served)
    assert told["isolated"] == isolated and told["providers"][0] == provider
    loaded = [path for path in served.asked if path.endswith(".mjs")]
    assert [path for path in loaded if "bundle" not in path] == []


def test_shared_workers(project: Path, site: Callable[..., StaticSite]) -> None:
    (project / "worker.js").write_text(f"{loading('classic', '')}{PAGE} start(ort, 'wasm');")
    (project / "index.html").write_text(page("new SharedWorker('worker.js');"))
    visit(site())


@pytest.mark.parametrize("inside", [False, True], ids=["loaded", "inside"])
def test_workers_made_of_text(project: Path, site: Callable[..., StaticSite], inside: bool) -> None:
    """A blob: URL is no base for other URLs: the API knows its own, or receives the places of its files."""
    script = f"""
    const dist = new URL('{DIST}/', location.href);
    const api = {str(inside).lower()}
      ? await (await fetch(`${{dist}}py_ort.min.js`)).text() + `\\nort.env.wasm.wasmPaths = '${{dist}}';`
      : `importScripts('${{dist}}py_ort.min.js');`;
    const run = `const base = '${{new URL('/', location.href)}}';` + {json.dumps(RUN)} + "start(ort, 'webgpu');";
    new Worker(URL.createObjectURL(new Blob([api, '\\n', run])));
    """
    (project / "index.html").write_text(page(script))
    visit(site())


@KINDS
@FLAVORS
@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_service_workers(
    project: Path, site: Callable[..., StaticSite], kind: str, flavor: str, provider: str, isolated: bool
) -> None:
    script = f"""{loading(kind, flavor)}{PAGE}
    addEventListener('install', (event) => event.waitUntil(start(ort, '{provider}')));
    """
    (project / "worker.js").write_text(script)
    (project / "index.html").write_text(page(f"navigator.serviceWorker.register('worker.js', {{ type: '{kind}' }});"))
    assert visit(site(headers=ISOLATED if isolated else {}))["providers"][0] == provider


def test_without_import_the_module_says_what_to_take(project: Path, site: Callable[..., StaticSite]) -> None:
    (project / "worker.js").write_text(
        f"import * as ort from '{DIST}/py_ort.mjs';\n{PAGE}"
        "addEventListener('install', (event) => event.waitUntil(start(ort, 'wasm')));"
    )
    (project / "index.html").write_text(page("navigator.serviceWorker.register('worker.js', { type: 'module' });"))
    with pytest.raises(AssertionError, match=r"runtime could not be loaded: import\(\).*take py-ort-web/bundle"):
        visit(site())


def test_worklets(project: Path, site: Callable[..., StaticSite]) -> None:
    """A worklet's thread has no fetch and no timers: it imports the API, and a worker runs its model."""
    worklet = f"""
    import * as ort from '{DIST}/py_ort.bundle.mjs';
    registerProcessor('model', class extends AudioWorkletProcessor {{
      constructor() {{
        super();
        this.port.onmessage = async ({{ data: toWorker }}) => {{
          const failed = await ort.InferenceSession.create('add.pyort').catch(({{ message }}) => message);
          const x = new ort.Tensor('float32', [1, 2, 3], [1, 3]);
          toWorker.onmessage = ({{ data }}) => this.port.postMessage([failed, [...data]]);
          toWorker.postMessage(x.data);
        }};
      }}
      process() {{
        return true;
      }}
    }});
    """
    worker = f"""
    import * as ort from '{DIST}/py_ort.mjs';
    const session = ort.InferenceSession.create('add.pyort');
    const scale = new ort.Tensor('float32', [10, 20, 30]);
    self.onmessage = ({{ data: port }}) => {{
      port.onmessage = async ({{ data }}) => {{
        const x = new ort.Tensor('float32', data, [1, 3]);
        port.postMessage((await (await session).run({{ x, scale }})).y.data);
      }};
    }};
    """
    script = """
    const context = new AudioContext();
    await context.audioWorklet.addModule('worklet.js');
    const [node, worker] = [new AudioWorkletNode(context, 'model'), new Worker('worker.js', { type: 'module' })];
    node.port.onmessage = ({ data }) => fetch('/told', { method: 'POST', body: JSON.stringify(data) });
    const { port1, port2 } = new MessageChannel();
    worker.postMessage(port1, [port1]);
    node.port.postMessage(port2, [port2]);
    """
    for name, text in {"worklet.js": worklet, "worker.js": worker, "index.html": page(script)}.items():
        (project / name).write_text(text)
    served = site()
    with browsing("chromium", f"{served.origin}/"):
        failed, y = served.told()
    assert "run the model in a worker" in failed and y == [11, 22, 33]


@KINDS
def test_background_of_an_extension(project: Path, site: Callable[..., StaticSite], kind: str, tmp_path: Path) -> None:
    """Manifest V3: the background is a service worker, and everything that it loads is in the extension."""
    from playwright.sync_api import sync_playwright

    served = site(headers=CORS)
    background = f"const base = '{served.origin}/';{RUN} start(ort, 'webgpu');"
    (project / "background.js").write_text(loading(kind, "") + background)
    manifest = {
        "manifest_version": 3,
        "name": "Models",
        "version": "1",
        "host_permissions": [f"{served.origin}/*"],
        "background": {"service_worker": "background.js", **({"type": "module"} if kind == "module" else {})},
        "content_security_policy": {"extension_pages": "script-src 'self' 'wasm-unsafe-eval'; object-src 'self'"},
    }
    (project / "manifest.json").write_text(json.dumps(manifest))
    flags = [
        flag
        for flag in BrowserOptions(webgpu="software", sandbox=False).command_line()
        if flag != "--disable-extensions"
    ]
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path / "profile",
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=[*flags, f"--load-extension={project}", f"--disable-extensions-except={project}"],
            ignore_default_args=["--disable-extensions"],
        )
        try:
            told = checked(served.told())
        finally:
            context.close()
    assert told["providers"][0] == "webgpu"
