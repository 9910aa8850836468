"""Builds wheel, sdist, npm package and documentation into dist, and checks each as its users get it: `make release`.

python .ci/release.py    after `make build docs`; with `build` and `twine` (.ci/release.txt)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SITE = ROOT / "build/docs"
#: Runs in an environment with the installed package alone: a model, on each provider, and the files of the wheel.
TRY = """
import sys, numpy as np, onnx, py_ort
from importlib.metadata import files as distributed, metadata
from importlib.resources import files
from onnx import TensorProto, helper

assert py_ort.__version__ == metadata("py_ort")["Version"] == sys.argv[1], py_ort.__version__
assert files("py_ort").joinpath("py.typed").is_file()
assert any(file.match("licenses/py_ort/assets/THIRD_PARTY_NOTICES") for file in distributed("py_ort"))
shape = ["n", 3]
graph = helper.make_graph(
    [helper.make_node("Relu", ["x"], ["y"])],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
x = np.array([[-1, 0, 2]], np.float32)
for provider in ("wasm", "webgpu"):
    with py_ort.InferenceSession(model.SerializeToString(), providers=[provider]) as session:
        (y,) = session.run(None, {"x": x})
        assert y.tolist() == [[0, 0, 2]], (provider, y)
"""
TRY_NPM = """
import ort from 'py-ort-web';
if (typeof ort.InferenceSession.create !== 'function') throw new Error('py-ort-web has no InferenceSession');
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command outside of this project's environment; end with its output if it fails."""
    print("release:", *(str(part) if len(str(part)) < 100 else "…" for part in command), flush=True)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nrelease: failed with status {done.returncode}: {command[0]}")
    return done.stdout


def version() -> str:
    """Return the version, which must have a dated section in the changelog."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "py_ort/__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found
    if fault := changelog_fault((ROOT / "CHANGELOG.md").read_text("utf-8"), found[1], date.today()):
        sys.exit(f"release: CHANGELOG.md {fault}")
    return found[1]


def changelog_fault(changes: str, number: str, today: date) -> str:
    """Return the fault of a changelog for the release of a version today, or ""."""
    sections = dict(re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", changes, re.MULTILINE))
    if re.search(r"^[-*] ", sections.get("Unreleased", ""), re.MULTILINE):
        return f"has entries under Unreleased: move them below `## {number} - {today}`"
    dates = [heading.removeprefix(f"{number} - ") for heading in sections if heading.startswith(f"{number} ")]
    if not dates:
        return f"has no line `## {number} - {today}`"
    try:
        dated = date.fromisoformat(dates[0])
    except ValueError:
        dated = date.max
    if str(dated) != dates[0]:
        return f"has {dates[0]!r} where `## {number} - YYYY-MM-DD` has a date"
    return f"dates {number} in the future: {dated} is after {today}" if dated > today else ""


def python_packages(number: str) -> list[Path]:
    """Build the sdist, and the wheel from the sdist; install each into an empty environment, and run a model."""
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    built = [DIST / f"py_ort-{number}-py3-none-any.whl", DIST / f"py_ort-{number}.tar.gz"]
    run(sys.executable, "-m", "twine", "check", "--strict", *built)
    for package in built:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            venv.create(folder / "venv", with_pip=True)
            python = folder / "venv/bin/python"
            run(python, "-m", "pip", "install", "--quiet", package, cwd=folder)
            run(python, "-m", "pip", "check", cwd=folder)
            run(python, "-c", TRY, number, cwd=folder)
            run(folder / "venv/bin/py-ort", "browsers", cwd=folder)
    return built


def npm_package(number: str) -> Path:
    """Build the npm package, install it into an empty folder, import it, and rehearse its publication."""
    run("node", ROOT / "web/npm/build.mjs")
    tarball = DIST / f"py-ort-web-{number}.tgz"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "package.json").write_text('{ "type": "module" }')
        run("npm", "install", "--offline", "--no-audit", "--no-fund", tarball, cwd=folder)
        described = json.loads((folder / "node_modules/py-ort-web/package.json").read_text("utf-8"))
        assert described["version"] == number, described["version"]
        run("node", "--input-type=module", "--eval", TRY_NPM, cwd=folder)
        run("npm", "publish", "--dry-run", tarball, cwd=folder)
    return tarball


def documentation(number: str) -> Path:
    """Pack the site that `make docs` built."""
    for name in ("index.html", "reference/python.html", "search/search_index.js"):
        if not (SITE / name).is_file():
            sys.exit(f"release: the site has no {name}; run `make docs`")
    archive = DIST / f"py_ort-docs-{number}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(SITE, f"py_ort-docs-{number}")
    return archive


def main() -> None:
    """Build and check all, and list it."""
    number = version()
    DIST.mkdir(exist_ok=True)
    for old in [*DIST.glob("py_ort-*"), *DIST.glob("py-ort-web-*.tgz")]:
        old.unlink()
    for file in [*python_packages(number), npm_package(number), documentation(number)]:
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
