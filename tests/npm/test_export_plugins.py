"""The plugins for Vite and webpack: `import url from './model.onnx?pyort'`, in builds and on a development server."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import onnx
import pytest
import small_models
from onnx import helper, numpy_helper
from static_site import ISOLATED, StaticSite, browsing

import py_ort
from py_ort.compiler.package.format import is_package

VITE, WEBPACK, ROLLUP = "8.3.8", "5.113.0", "4.68.8"
OURS = [sys.executable, "-m", "py_ort.cli"]
MAIN = """
import * as ort from 'py-ort-web';
import url from './models/add.onnx?pyort';

const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
async function run() {
  const session = await ort.InferenceSession.create(url, { executionProviders: ['wasm'] });
  const feeds = { x: new ort.Tensor('float32', [1, 2, 3], [1, 3]), scale: new ort.Tensor('float32', [10, 20, 30]) };
  const { y } = await session.run(feeds);
  await tell({ y: [...y.data], url: String(url) });
}
run().catch((error) => tell({ error: error.message }));
"""
OPTIONS = f"{{ command: {json.dumps(OURS)}, arguments: ['--provider', 'wasm'] }}"


@pytest.fixture
def app(project: Path) -> Path:
    """A project with a model and a page that runs it."""
    (project / "models").mkdir()
    (project / "models/add.onnx").write_bytes(small_models.add())
    (project / "main.js").write_text(MAIN)
    (project / "index.html").write_text(
        '<!doctype html><title>Test</title><script type="module" src="/main.js"></script>\n'
    )
    return project


def vite_config(app: Path, more: str = "") -> None:
    (app / "vite.config.js").write_text(
        "import pyOrt from 'py-ort-web/vite';\n"
        f"export default {{ plugins: [pyOrt({OPTIONS})], optimizeDeps: {{ exclude: ['py-ort-web'] }}, {more} }};\n"
    )


def built(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.browser
def test_vite_builds(app: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    vite_config(app)
    done = built(["node", str(of_npm("vite", VITE) / "bin/vite.js"), "build"], app)
    assert done.returncode == 0, done.stdout + done.stderr
    served = site(app / "dist", ISOLATED)
    with browsing("chromium", f"{served.origin}/"):
        told = served.told()
    assert told.get("y") == [11, 22, 33], told
    assert re.search(r"/assets/add-[\w-]+\.pyort$", told["url"])


@pytest.mark.browser
def test_vite_serves(app: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    told = site(app)
    vite_config(app, f"server: {{ proxy: {{ '/told': '{told.origin}' }} }}")
    command = ["node", str(of_npm("vite", VITE) / "bin/vite.js"), "--host", "127.0.0.1", "--port", "0"]
    server = subprocess.Popen(command, cwd=app, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        plain = (re.sub(r"\x1b\[[\d;]*m", "", line) for line in iter(server.stdout.readline, ""))
        url = next(found[0] for line in plain if (found := re.search(r"http://[\d.]+:\d+/", line)))
        with browsing("chromium", url):
            said = told.told()
        assert said.get("y") == [11, 22, 33], said
    finally:
        server.terminate()
        server.communicate(timeout=60)


def webpack_build(app: Path, of_npm: Callable[[str, str], Path], more: str = "") -> None:
    """Write build.mjs, which builds main.js into public."""
    webpack = of_npm("webpack", WEBPACK) / "lib/index.js"
    (app / "build.mjs").write_text(
        f"import webpack from {json.dumps(str(webpack))};\n"
        "import PyOrt from 'py-ort-web/webpack';\n"
        "const output = { path: `${import.meta.dirname}/public`, publicPath: '/' };\n"
        f"const plugins = [new PyOrt({OPTIONS})];\n"
        f"const options = {{ mode: 'development', entry: './main.js', output, plugins, {more} }};\n"
        "const compiler = webpack({ ...options, devtool: false, context: import.meta.dirname });\n"
        "compiler.run((error, stats) => compiler.close(() => {\n"
        "  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString('errors-only'));\n"
        "}));\n"
    )


@pytest.mark.browser
def test_webpack_builds(app: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    webpack_build(app, of_npm)
    done = built(["node", "build.mjs"], app)
    assert done.returncode == 0, done.stdout + done.stderr
    (app / "public/index.html").write_text('<!doctype html><title>Test</title><script src="main.js"></script>\n')
    served = site(app / "public", ISOLATED)
    with browsing("chromium", f"{served.origin}/"):
        told = served.told()
    assert told.get("y") == [11, 22, 33], told
    assert re.search(r"/add\.\w+\.pyort$", told["url"])


def test_rollup_builds(app: Path, of_npm: Callable[[str, str], Path]) -> None:
    rollup = of_npm("rollup", ROLLUP) / "dist/es/rollup.js"
    (app / "main.js").write_text("import url from './models/add.onnx?pyort';\nconsole.log(url);\n")
    (app / "build.mjs").write_text(
        f"import {{ rollup }} from {json.dumps(str(rollup))};\n"
        "import pyOrt from 'py-ort-web/vite';\n"
        f"const bundle = await rollup({{ input: 'main.js', plugins: [pyOrt({OPTIONS})] }});\n"
        "await bundle.write({ dir: 'public', format: 'es' });\n"
    )
    done = built(["node", "build.mjs"], app)
    assert done.returncode == 0, done.stdout + done.stderr
    url = built(["node", "public/main.js"], app).stdout.strip()
    assert url.startswith((app / "public").as_uri()) and is_package(Path(urlsplit(url).path)), url


def plugin(app: Path, options: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Load the model by the plugin alone, like Rollup."""
    (app / "load.mjs").write_text(
        "import pyOrt from 'py-ort-web/vite';\n"
        "const addWatchFile = (file) => console.log(`reads ${file}`);\n"
        "const context = { addWatchFile, info: console.log, emitFile: ({ name }) => name };\n"
        f"console.log(await pyOrt({options}).load.call(context, `${{process.cwd()}}/models/add.onnx?pyort`));\n"
    )
    return built(["node", "load.mjs"], app, **environment)


def command_file(folder: Path, name: str, *, drop: int = 0, status: int = 0) -> None:
    """Write a command that calls `py-ort` without its first arguments; or one that fails."""
    folder.mkdir(exist_ok=True)
    run = f'shift {drop}\nexec {shlex.join(OURS)} "$@"' if not status else f"echo broken: {status} >&2\nexit {status}"
    (folder / name).write_text(f"#!/bin/sh\n{run}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder to be the whole PATH, with Node alone."""
    folder = tmp_path / "tools"
    folder.mkdir()
    node = shutil.which("node")
    assert node
    (folder / "node").symlink_to(node)
    return folder


def test_where_py_ort_is_not_installed(app: Path, tools: Path) -> None:
    """uvx or pipx fetch the package's version, and the build says so; without either it gives advice."""
    done = plugin(app, PATH=str(tools))
    assert f"pip install py_ort=={py_ort.__version__}" in done.stderr and done.returncode
    command_file(tools, "py-ort", status=3)  # present, but broken
    done = plugin(app, PATH=str(tools))
    assert "`py-ort --version` failed:\nbroken: 3\n" in done.stderr and "there is no py-ort" not in done.stderr
    assert f"pip install py_ort=={py_ort.__version__}" in done.stderr and done.returncode
    command_file(tools, "uvx", drop=3)
    done = plugin(app, PATH=str(tools))
    assert f"compiled by `uvx --from py_ort=={py_ort.__version__} py-ort`" in done.stdout, done.stderr
    assert "ROLLUP_FILE_URL_add.pyort" in done.stdout


def add_weight(folder: Path) -> Path:
    """Make the model one with a weight in another file; return that file."""
    weight = numpy_helper.from_array(np.ones(64, np.float32), "w")
    values = [small_models.floats(name, [64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    data = folder / "add.data"
    onnx.save_model(
        helper.make_model(graph), folder / "add.onnx", save_as_external_data=True, location=data.name, size_threshold=0
    )
    return data


def test_bundlers_watch_each_file_that_an_export_reads(app: Path) -> None:
    data, kernel = add_weight(app / "models"), app / "kernel.wgsl"
    kernel.write_text("// kernel: t::Scaled\n// input x\ny[i] = 3.0 * load_x(i);\n")
    arguments = ["--provider", "webgpu", "--kernels", kernel.name]
    options = f"{{ command: {json.dumps(OURS)}, arguments: {json.dumps(arguments)} }}"
    watched = {f"reads {file}" for file in (app / "models/add.onnx", data, kernel)}
    for _ in ("exported", "up to date"):
        done = plugin(app, options)
        assert done.returncode == 0, done.stderr
        assert watched == {line for line in done.stdout.splitlines() if line.startswith("reads ")}
    data.write_bytes(b"cut off")
    done = plugin(app, options)
    assert done.returncode and watched <= set(done.stdout.splitlines())


def test_webpack_s_cache_knows_external_data(app: Path, of_npm: Callable[[str, str], Path]) -> None:
    data = add_weight(app / "models")
    (app / "main.js").write_text("import url from './models/add.onnx?pyort';\nconsole.log(url);\n")
    webpack_build(app, of_npm, "cache: { type: 'filesystem', cacheDirectory: `${import.meta.dirname}/cache` }")
    weights = []
    for number in (1, 2):
        data.write_bytes(np.full(64, number, np.float32).tobytes())
        done = built(["node", "build.mjs"], app)
        assert done.returncode == 0, done.stdout + done.stderr
        url = built(["node", "public/main.js"], app).stdout.strip()
        weights.append((app / "public" / url.lstrip("/")).read_bytes())
    assert all(np.full(64, i, np.float32).tobytes() in each for i, each in enumerate(weights, 1))


def test_py_ort_that_is_mended_after_a_failure(app: Path, tools: Path) -> None:
    """A development server need not start again."""
    command_file(tools, "py-ort", status=3)
    command_file(tools, "mended")
    (app / "load.mjs").write_text(
        "import { renameSync } from 'node:fs';\n"
        "import pyOrt from 'py-ort-web/vite';\n"
        "const context = { addWatchFile() {}, info() {}, emitFile: ({ name }) => name };\n"
        "const load = () => pyOrt().load.call(context, `${process.cwd()}/models/add.onnx?pyort`);\n"
        "const first = await load().catch((error) => error.message);\n"
        f"renameSync({json.dumps(str(tools / 'mended'))}, {json.dumps(str(tools / 'py-ort'))});\n"
        "console.log(first.includes('broken: 3'), await load());\n"
    )
    done = built(["node", "load.mjs"], app, PATH=str(tools))
    assert "true export default" in done.stdout, done.stderr


def test_a_model_that_cannot_be_compiled_fails_the_build(app: Path) -> None:
    (app / "models/add.onnx").write_bytes(small_models.unknown_operator())
    done = plugin(app, OPTIONS)
    assert done.returncode and "Frobnicate" in done.stderr


def of_another_version(file: Path) -> None:
    """Change a file's plans to another version."""
    from py_ort.compiler.package.format import read_header

    data = file.read_bytes()
    header, start = read_header(data)
    object.__setattr__(header, "plan_version", header.plan_version - 1)
    file.write_bytes(header.tobytes() + data[start:])


def test_files_and_runtime_must_fit(app: Path) -> None:
    """`npx py-ort-web check`, and a build with a `py-ort` of another version."""
    command = ["node", str(app / "node_modules/py-ort-web/bundlers/cli.mjs")]
    public = app / "public"
    public.mkdir()
    py_ort.export(small_models.add(), public / "add.pyort", providers=["wasm"])
    # Files that keep the names of models, beside others, in folders.
    (public / "models").mkdir()
    shutil.copy(public / "add.pyort", public / "models/add.onnx")
    (public / "raw.onnx").write_bytes(small_models.add())
    (public / "empty.bin").touch()
    (public / "nowhere").symlink_to("none")
    found = built([*command, "check", "public"], app)
    assert found.returncode == 0, found.stderr
    assert [line.split()[0] for line in found.stdout.splitlines()] == ["public/add.pyort", "public/models/add.onnx"]
    assert found.stdout.count("  fits, of py_ort") == 2
    of_another_version(public / "models/add.onnx")
    done = built([*command, "check", "public"], app)
    assert done.returncode == 1 and "models/add.onnx" in done.stderr
    (public / "models/add.onnx").unlink()
    assert "no exported model in models" in built([*command, "check", "models"], app).stderr
    shorter = (public / "add.pyort").read_bytes()[:-64]
    of_another_version(public / "add.pyort")
    done = built([*command, "check", "public/add.pyort"], app)
    assert done.returncode == 1 and "Export the model again with the py_ort of this runtime" in done.stderr
    (public / "add.pyort").write_bytes(shorter)
    done = built([*command, "check", "public"], app)
    assert done.returncode == 1 and "copy it again" in done.stderr
    assert built(command, app).returncode == 2
    # The plugin checks the files that the command wrote.
    plugin(app, OPTIONS)
    (file,) = (app / "node_modules/.cache/py-ort").rglob("add.pyort")
    of_another_version(file)
    done = plugin(app, "{ command: ['true'] }")
    assert done.returncode and "plans of version" in done.stderr
