"""Models that were not exported, in pages that name a compile server or another engine for them."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import small_models
from npm_packages import peer_dist
from static_site import ISOLATED, StaticSite, browsing
from text_form import parse

import py_ort
from py_ort.compiler.package.format import read_header
from py_ort.exporting.runtime_files import copy_runtime
from py_ort.folders import ASSETS

CASES = [Path(__file__).with_name(name) for name in ("raw_models.mjs", "raw_fallbacks.mjs")]
PAGE = """<!doctype html><meta charset="utf-8"><title>Test</title>
<script type="module">
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
const name = new URL(location).searchParams.get('case');
import('./raw_models.mjs').then(({ run }) => run(name)).then(
  () => tell('passed'),
  (error) => tell(`${error.message}\\n${error.stack}`),
);
</script>
"""
FORMS = """g (string[3] s, int64[3] i, bool[3] b) => (string[3] t, int64[3] j, bool[3] c, float[3] f) {
    t = Identity(s)  j = Add(i, i)  c = Not(b)  f = Cast<to=1>(i) }"""

TIMES = "g (float[1, 3] x, float[3] scale) => (float[1, 3] y) { y = Mul(x, scale) }"
#: Its name tells pyodide.mjs to work on it for ever.
ENDLESS = "endless (float[3] x) => (float[3] y) { y = Identity(x) }"


class Site(StaticSite):
    """A site whose pages can have a file replaced by another one."""

    def hear(self, text: bytes) -> None:
        match json.loads(text):
            case {"replace": name, "by": other}:
                shutil.copyfile(self.folder / other, self.folder / name)
            case _:
                super().hear(text)


def as_version(file: Path, step: int) -> bytes:
    """Return a file that claims another version of its plans."""
    data = file.read_bytes()
    header, start = read_header(data)
    return replace(header, plan_version=header.plan_version + step).tobytes() + data[start:]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("site")
    copy_runtime(folder)
    for file in (*CASES, Path(__file__).with_name("pyodide.mjs"), ASSETS / "py_ort_compiler.mjs"):
        shutil.copy(file, folder)
    (folder / "index.html").write_text(PAGE)
    (folder / "peer").symlink_to(peer_dist())
    models = {"add": small_models.add(), "forms": parse(FORMS).SerializeToString(), "older": small_models.add()}
    models |= {"unknown": small_models.unknown_operator(), "endless": parse(ENDLESS).SerializeToString()}
    models["times"] = parse(TIMES).SerializeToString()
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model)
    for name in ("add", "forms"):
        py_ort.export(models[name], folder / f"{name}.pyort", providers=["wasm"])
    for name in ("older", "alone"):
        (folder / f"{name}.pyort").write_bytes(as_version(folder / "add.pyort", -1))
    damaged = bytearray((folder / "add.pyort").read_bytes())
    damaged[40] ^= 1
    (folder / "damaged.pyort").write_bytes(damaged)
    with closing(Site(folder, ISOLATED)) as site:
        yield site


@pytest.fixture
def compiler(site, tmp_path):
    """The URL of a compile server that fetches the site's models."""
    command = [sys.executable, "-m", "py_ort.cli", "compile-server", str(tmp_path / "store"), "--port", "0"]
    more = ["--provider", "wasm", "--source", site.origin, "--cors", site.origin]
    server = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True)
    assert server.stdout
    yield server.stdout.readline().strip()
    server.terminate()
    server.communicate(timeout=60)


def case_names() -> list[str]:
    return [name for file in CASES for name in re.findall(r"^  async '(.+)'\(\)", file.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("where", ["", "&here"], ids=["worker", "page"])
@pytest.mark.parametrize("case", case_names())
def test_raw_models(site, case, where, request):
    compiler = request.getfixturevalue("compiler") if "compiled" in case else ""
    with browsing("chromium", f"{site.origin}/?case={case.replace(' ', '%20')}&compiler={compiler}{where}"):
        assert site.told() == "passed"
