"""The npm package in Node: ONNX's own node cases on wasm, and on WebGPU by the package `webgpu`; threads; workers."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import crashes
import numpy as np
import pytest
import small_models
from language_models import language_model, native_greedy
from native import native_session

import py_ort
from py_ort.bench.peer import VERSION
from py_ort.compiler.package.read import Package
from py_ort.schema.gen.ErrorCode import ErrorCode
from py_ort.testing.case import Case, difference
from py_ort.testing.results import expectations_of
from py_ort.testing.sources import onnx_node

WEBGPU = "0.6.2"
#: One in this number of ONNX's cases.
PART = 17
#: JavaScript's names of numpy's own types.
TYPES = {
    "bool": "bool",
    **{name: name for name in ("float32", "float64", "float16")},
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")


def are_arrays(case: Case) -> bool:
    (data, *_) = case.data_sets
    values = [*data.feeds.values(), *data.outputs]
    return all(isinstance(value, np.ndarray) and value.dtype.name in TYPES for value in values)


def drawn(known: Mapping[str, Any]) -> list[Case]:
    """A part of the cases known to pass, drawn by name."""
    return [
        case
        for case in onnx_node.cases()
        if case.id not in known and zlib.crc32(case.id.encode()) % PART == 0 and are_arrays(case)
    ]


def encoded(value: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"type": TYPES[value.dtype.name], "dims": list(value.shape), "bytes": data}


def decoded(tensor: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(tensor["bytes"]), tensor["type"]).reshape(tensor["dims"])


def write(cases: list[Case], folder: Path, provider: str) -> None:
    folder.mkdir()
    for case in cases:
        file = folder / f"{case.id}.pyort"
        py_ort.export(case.model, file, providers=[provider])
        feeds = {name: encoded(value) for name, value in case.data_sets[0].feeds.items()}
        (folder / f"{case.id}.json").write_text(json.dumps(feeds))


def node(project: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a script of the project; return its output."""
    done = subprocess.run(
        ["node", *arguments],
        cwd=project,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def answers(project: Path, cases: list[Case], provider: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run the cases, compare their outputs with ONNX's, and return the report of each."""
    folder = project / "cases"
    write(cases, folder, provider)
    shutil.copy(Path(__file__).with_name("node_cases.mjs"), project)
    node(project, "node_cases.mjs", provider, str(folder), env=env)
    told = json.loads((folder / f"{provider}.json").read_text())
    found = told["answers"]
    assert found.keys() == {case.id for case in cases}
    wrong = {}
    for case in cases:
        answer = found[case.id]
        if "error" in answer:
            wrong[case.id] = answer["error"]
            continue
        got = [decoded(tensor) for tensor in answer["outputs"]]
        wanted = case.data_sets[0].outputs
        if text := difference(got, wanted, case.tolerance_on(provider)):
            wrong[case.id] = text
    assert wrong == {}
    return told


@pytest.fixture
def webgpu(project: Path, of_npm: Callable[[str, str], Path]) -> dict[str, str]:
    """Installs the package `webgpu`; returns the variables with which it has an adapter."""
    package = of_npm("webgpu", WEBGPU)
    if not SWIFTSHADER.is_file():
        pytest.skip(f"no {SWIFTSHADER}: Debian's chromium brings it")
    for dependency in package.parent.iterdir():
        if not dependency.name.startswith("."):
            (project / "node_modules" / dependency.name).symlink_to(dependency)
    # Chromium's own Vulkan loader, if the system has none.
    return {"VK_ICD_FILENAMES": str(SWIFTSHADER), "LD_LIBRARY_PATH": str(SWIFTSHADER.parent)}


def test_cases_on_wasm(project: Path) -> None:
    cases = drawn(expectations_of("onnx-node", "webgpu"))
    assert 60 <= len(cases) <= 120
    told = answers(project, cases, "wasm")
    assert {tuple(answer["providers"]) for answer in told["answers"].values()} == {("wasm",)}


def test_cases_on_webgpu(project: Path, webgpu: dict[str, str]) -> None:
    """None of their nodes is on wasm, and each one except views dispatches kernels."""
    cases = drawn(expectations_of("onnx-node", "webgpu", fallback=False))
    assert 60 <= len(cases) <= 120
    told = answers(project, cases, "webgpu", webgpu)
    assert told["device"]
    for case in cases:
        placement = Package(project / "cases" / f"{case.id}.pyort").planned(["webgpu", "wasm"], {}).placement
        launches = placement.launches()
        assert placement.counts()["webgpu"] > 0 == launches.get("wasm", 0), case.id
    launched = [name for name, answer in told["answers"].items() if answer["dispatches"] > 0]
    assert len(launched) > 0.9 * len(cases), sorted(told["answers"].keys() - set(launched))


def test_pictures(project: Path) -> None:
    """Node decodes pictures for which we have decoders, and reports the others."""
    cases = [case for case in onnx_node.cases() if case.id.startswith("test_image_decoder_decode_")]
    ours = [case for case in cases if any(name in case.id for name in ("png", "bmp", "pnm"))]
    assert len(ours) == 3
    answers(project, ours, "wasm")
    shutil.rmtree(project / "cases")
    (jpeg,) = (case for case in cases if case.id.endswith("jpeg_rgb"))
    write([jpeg], project / "cases", "wasm")
    node(project, "node_cases.mjs", "wasm", str(project / "cases"))
    told = json.loads((project / "cases/wasm.json").read_text())["answers"][jpeg.id]
    assert "JPEG pictures, of which there are decoders in browsers only, cannot be decoded here" in told["error"]


SESSION = """
import ort from 'py-ort-web';
%s
const session = await ort.InferenceSession.create('model.pyort'%s);
const x = new ort.Tensor('float32', Float32Array.from({ length: 4 * 8 * 8 }, (_, i) => (i %% 17) / 17), [1, 4, 8, 8]);
const ran = await session.run({ x });
const { y } = ran;
"""


@pytest.fixture
def model(project: Path) -> Path:
    py_ort.export(small_models.two_products(), project / "model.pyort")
    return project


def wanted() -> np.ndarray:

    x = (np.arange(4 * 8 * 8) % 17 / 17).astype(np.float32).reshape(1, 4, 8, 8)
    return native_session(small_models.two_products()).run(None, {"x": x})[0]


GENERATE = """
import ort from 'py-ort-web';
ort.env.wasm.proxy = %s;
const session = await ort.InferenceSession.create('decoder.pyort', { executionProviders: ['wasm'] });
console.log(JSON.stringify(await session.generate([3, 1, 4], { maxNewTokens: 4 }).result));
"""
PRINT = "console.log(JSON.stringify({ y: [...y.data], providers: session.executionProviders, %s }));\n"


def printed(project: Path, script: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    (project / "script.mjs").write_text(script)
    told = json.loads(node(project, "script.mjs", env=env).splitlines()[-1])
    np.testing.assert_allclose(told["y"], wanted().ravel(), rtol=1e-4, atol=1e-5)
    return told


@pytest.mark.parametrize("proxy", ["false", "true"], ids=["here", "worker"])
@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
def test_in_a_worker_and_not(model: Path, provider: str, proxy: str, request: pytest.FixtureRequest) -> None:
    """The process ends by itself, whether the session was released or not."""
    env = request.getfixturevalue("webgpu") if provider == "webgpu" else {}
    script = SESSION % (f"ort.env.wasm.proxy = {proxy};", f", {{ executionProviders: ['{provider}'] }}")
    told = printed(model, script + PRINT % "", env)
    assert told["providers"][0] == provider


@pytest.mark.parametrize("proxy", ["false", "true"], ids=["here", "worker"])
def test_generate(project: Path, proxy: str) -> None:
    decoder = language_model("growing")
    py_ort.export(decoder.SerializeToString(), project / "decoder.pyort", providers=["wasm"])
    (project / "script.mjs").write_text(GENERATE % proxy)
    told = json.loads(node(project, "script.mjs"))
    assert told == native_greedy(decoder, [3, 1, 4], 4)


#: A session on three threads; reports the started and the ended ones.
THREADS = (
    """
import worker_threads from 'node:worker_threads';
import { syncBuiltinESMExports } from 'node:module';
const [started, ended] = [[], []];
const { Worker } = worker_threads;
worker_threads.Worker = class extends Worker {
  constructor(url, options) {
    super(url, options);
    started.push(options.name);
    this.on('exit', () => ended.push(options.name));
  }
};
syncBuiltinESMExports();
"""
    + SESSION.replace("import ort from 'py-ort-web';", "const { default: ort } = await import('py-ort-web');")
    % (
        "ort.env.wasm.numThreads = 3;",
        ", { executionProviders: ['wasm'] }",
    )
)


def test_threads(model: Path) -> None:
    """Workers start, and the result is the same."""
    told = printed(model, THREADS + PRINT % "started, ended")
    assert told["started"] == ["py_ort thread 1", "py_ort thread 2"] and told["ended"] == []


def test_threads_end_with_a_core_that_crashed(model: Path) -> None:
    """They hold its memory. The session continues, with threads of the next core."""
    crash = f"""
    ({crashes.CRASH})(['trap', 'walk']);
    const {{ code }} = await session.run({{ x }}).catch((error) => error);
    const again = [...(await session.run({{ x }})).y.data];
    while (ended.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
    """
    told = printed(model, THREADS + crash + PRINT % "code, again, started, ended")
    assert told["code"] == ErrorCode.core_crashed and told["again"] == told["y"]
    threads = ["py_ort thread 1", "py_ort thread 2"]
    assert told["started"] == [*threads, *threads] and sorted(told["ended"]) == threads


def test_without_the_package_webgpu(model: Path) -> None:
    """The next provider runs it, with a warning."""
    script = "const said = []; console.warn = (text) => said.push(text);\n" + SESSION
    providers = ", { executionProviders: ['webgpu', 'wasm'] }"
    told = printed(model, (script % ("", providers)) + PRINT % "said")
    assert told["providers"] == ["wasm"]
    (word,) = told["said"]
    assert "npm install webgpu" in word


def test_a_file_that_is_not_there(model: Path) -> None:
    script = """
    import ort from 'py-ort-web';
    const error = await ort.InferenceSession.create('missing.pyort').catch((e) => e);
    console.log(error.name, error.message);
    """
    (model / "script.mjs").write_text(script)
    said = node(model, "script.mjs")
    assert "RuntimeError(fail)" in said and "missing.pyort" in said and "ENOENT" in said, said


def test_models_that_were_not_exported(project: Path, of_npm: Callable[[str, str], Path]) -> None:
    """They run on onnxruntime-web, by path and by bytes."""
    peer = of_npm("onnxruntime-web", VERSION) / "dist/ort.node.min.mjs"
    (project / "add.onnx").write_bytes(small_models.add())
    (project / "raw.mjs").write_text(
        "import { readFile } from 'node:fs/promises';\n"
        "import ort from 'py-ort-web';\n"
        f"ort.env.fallback = () => import({json.dumps(str(peer))});\n"
        "const feeds = {\n"
        "  x: new ort.Tensor('float32', [1, 2, 3], [1, 3]),\n"
        "  scale: new ort.Tensor('float32', [10, 20, 30]),\n"
        "};\n"
        "for (const model of ['add.onnx', await readFile('add.onnx')]) {\n"
        "  const session = await ort.InferenceSession.create(model, { executionProviders: ['wasm'] });\n"
        "  const { y } = await session.run(feeds);\n"
        "  console.log(session.engine, y instanceof ort.Tensor, String(y.data));\n"
        "}\n"
        "process.exit();\n"
    )
    command = ["node", "raw.mjs"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == ["fallback true 11,22,33"] * 2, done.stderr
    assert done.stderr.count("env.fallback runs it") == 2, done.stderr
