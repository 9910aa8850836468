"""Every name that onnxruntime-web declares exists here, or is in surface.toml with a reason, as docs/npm.md shows."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from surface import declared, missing

from py_ort.bench.peer import VERSION

ROOT = Path(__file__).parents[2]
COMPILER = ROOT / "web/node_modules/typescript/bin/tsc"
REASONS: dict[str, str] = tomllib.loads((Path(__file__).with_name("surface.toml")).read_text())["missing"]


@pytest.fixture(scope="module")
def peer(of_npm: Callable[[str, str], Path]) -> Path:
    return of_npm("onnxruntime-web", VERSION).parent


@pytest.fixture(scope="module")
def names(peer: Path) -> dict[str, str]:
    found = dict(declared(peer / "onnxruntime-common/dist/esm"))
    for name in ("Tensor", "env", "InferenceSession.run", "InferenceSession.SessionOptions.executionProviders"):
        assert name in found
    assert len(found) > 150
    return found


def test_the_names_are_onnxruntime_webs(names: dict[str, str], peer: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(peer)
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    assert missing(names, "onnxruntime-web", tmp_path, COMPILER) == set()


def test_each_is_here_or_has_a_reason(names: dict[str, str], project: Path) -> None:
    lacking = missing(names, "py-ort-web", project, COMPILER)
    assert sorted(lacking - set(REASONS)) == [], "these are not declared: add them, or say why not in surface.toml"
    assert sorted(set(REASONS) - lacking) == [], "these of surface.toml are declared here, or onnxruntime-web has none"


def test_what_is_declared_is_there(names: dict[str, str], project: Path) -> None:
    """Values, and members of instances, at run time."""
    script = """
    import * as ort from 'py-ort-web';
    const own = (object) =>
      object ? [...Object.getOwnPropertyNames(object), ...own(Object.getPrototypeOf(object))] : [];
    console.log(JSON.stringify({
      ort: Object.keys(ort),
      default: Object.keys(ort.default),
      InferenceSessionFactory: own(ort.InferenceSession),
      InferenceSession: own(ort.InferenceSession.prototype),
      TensorFactory: own(ort.Tensor),
      TypedTensorBase: own(new ort.Tensor('float32', [1])),
      TypedTensorUtils: own(new ort.Tensor('float32', [1])),
      Env: own(ort.env),
    }));
    """
    (project / "names.mjs").write_text(script)
    there = json.loads(subprocess.run(["node", "names.mjs"], cwd=project, check=True, capture_output=True).stdout)
    assert set(there["ort"]) == {*there["default"], "default"}
    assert {"InferenceSession", "Tensor", "env"} <= set(there["ort"])
    members = [name.split(".") for name in names if name.count(".") == 1 and name not in REASONS]
    unset = {("Env", "debug"), ("Env", "trace")}
    lacking = [(of, name) for of, name in members if of in there and name not in there[of] and name[0].islower()]
    assert set(lacking) <= unset


def test_the_reference_is_made_of_the_declarations() -> None:
    subprocess.run(["node", str(ROOT / "web/npm/reference.mjs"), "--check"], check=True)


def test_the_docs_say_it() -> None:
    text = (ROOT / "docs/npm.md").read_text()
    for name, reason in REASONS.items():
        assert f"| `{name}` | {reason} |" in text, "docs/npm.md lacks this row of tests/npm/surface.toml"
    rows = text.count("\n| `")
    assert f"<!-- {len(REASONS)} names -->" in text and rows >= len(REASONS)
