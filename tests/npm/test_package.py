"""The npm package: its files, their sizes, its types."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import py_ort
from py_ort.bench.peer import VERSION

WEB = Path(__file__).parents[2] / "web"
#: Bytes by gzip that a page with WebGPU may download before its first session: scripts, core and glue.
MOST = 550_000
#: Modules that all builds load by their names.
SHARED = {"core.mjs", "generate.mjs", "microkernel_worker.node.mjs"}


def described(package: Path) -> dict[str, Any]:
    return json.loads((package / "package.json").read_text())


def paths(entry: Any) -> list[str]:
    return [entry] if isinstance(entry, str) else [path for each in entry.values() for path in paths(each)]


def test_what_it_says_is_there(package: Path) -> None:
    said = described(package)
    assert (said["name"], said["version"]) == ("py-ort-web", py_ort.__version__)
    flavors = {".", "./webgpu", "./wasm", "./webgl", "./webnn", "./all", "./jspi"}
    whole = {"./bundle", "./wasm/bundle", "./webgl/bundle", "./webnn/bundle"}
    for_builds = {"./vite", "./webpack", "./client"}
    assert set(said["exports"]) == {*flavors, *whole, *for_builds, "./dist/*", "./package.json"}
    named = [said[key] for key in ("main", "module", "browser", "types", "unpkg", "jsdelivr")]
    for path in {*named, *paths(said["exports"])} - {"./dist/*"}:
        assert (package / path).is_file(), path
    for file in ("LICENSE", "README.md", "THIRD_PARTY_NOTICES"):
        assert (package / file).is_file(), file
    assert "Apache License" in (package / "THIRD_PARTY_NOTICES").read_text()


def test_the_readme_names_every_file(package: Path) -> None:
    named = re.findall(r"`([\w.*-]+\.(?:m?js|wasm|d\.ts|br|json))`", (package / "README.md").read_text())
    files = [file.name for file in (package / "dist").iterdir() if file.suffix != ".map"]
    assert [name for name in files if not any(fnmatch.fnmatch(name, pattern) for pattern in named)] == []


def test_modules_of_pages_have_source_maps(package: Path) -> None:
    """With the sources inside, so that tools show them without this project. Whole builds and Node's have none."""
    modules = [
        file
        for file in (package / "dist").glob("*.mjs")
        if file.name != "core.mjs" and not {"bundle", "node"} & set(re.split(r"[.-]", file.name))
    ]
    assert len(modules) >= 12
    for file in modules:
        (name,) = re.findall(r"^//# sourceMappingURL=(.+)$", file.read_text(), re.MULTILINE)
        found = json.loads((file.parent / name).read_text())
        assert found["mappings"] and all(found["sourcesContent"]), name
        assert len(found["sources"]) == len(found["sourcesContent"]), name


def test_wasm_is_without_webgpu(package: Path) -> None:
    """Its scripts have no kernels, and load none of those that have."""
    dist = package / "dist"
    theirs = [*dist.glob("*.wasm.*js"), *dist.glob("py_ort.wasm-*.mjs")]
    assert len(theirs) >= 6
    for file in theirs:
        text = file.read_text()
        others = re.findall(r"[\w.-]+\.mjs", text)
        assert {name for name in others if "wasm" not in name} <= SHARED, file
        assert "workgroupBarrier" not in text, file
    assert "workgroupBarrier" in (dist / "session_worker.mjs").read_text()


def measured(package: Path) -> dict[str, dict[str, int]]:
    script = f"import {{ measured }} from '{WEB / 'npm/sizes.mjs'}';\n"
    script += f"console.log(JSON.stringify(await measured('{package / 'dist'}')))"
    done = subprocess.run(["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_sizes(package: Path) -> None:
    sizes = measured(package)
    whole, wasm = sizes["with WebGPU"], sizes["wasm only"]
    assert whole["scripts"] + whole["core"] <= MOST, whole
    assert 0.7 < whole["brotli"] / (whole["scripts"] + whole["core"]) < 0.9, whole
    assert wasm["scripts"] < 0.6 * whole["scripts"], sizes
    assert 10_000 < whole["generate"] < 18_000, whole


def test_files_are_there_by_brotli_with_their_hashes(package: Path) -> None:
    dist = package / "dist"
    hashes = json.loads((dist / "integrity.json").read_text())
    pages = {
        file.name for file in dist.iterdir() if file.suffix in (".js", ".mjs", ".wasm") and ".node" not in file.name
    }
    assert set(hashes) == pages == {file.name.removesuffix(".br") for file in dist.glob("*.br")}
    script = "import { readFileSync, readdirSync } from 'node:fs'; import { brotliDecompressSync } from 'node:zlib';\n"
    script += "for (const name of readdirSync('.').filter((name) => name.endsWith('.br'))) {\n"
    script += "  const [packed, plain] = [readFileSync(name), readFileSync(name.slice(0, -3))];\n"
    script += "  if (!brotliDecompressSync(packed).equals(plain)) throw new Error(name);\n}"
    subprocess.run(["node", "--input-type=module", "-e", script], cwd=dist, check=True)
    for name, said in hashes.items():
        digest = base64.b64encode(hashlib.sha384((dist / name).read_bytes()).digest()).decode()
        assert said == f"sha384-{digest}", name


def test_loops_of_decoders_are_in_one_file(package: Path) -> None:
    """The API checks options; the rest of `generate` is loaded when it is used.

    Bundles include it, for environments without `import()`.
    """
    files = [file for file in (package / "dist").glob("*.*js") if "topP is above 0" in file.read_text()]
    assert [file.name for file in files if not re.search(r"\.(bundle\.mjs|min\.js)$", file.name)] == ["generate.mjs"]


USAGES = sorted((Path(__file__).parent / "usage").glob("*.ts"))


def type_checked(folder: Path, usage: str, resolution: tuple[str, str] = ("esnext", "bundler")) -> str:
    """Write a file and return TypeScript's messages on it."""
    (folder / "usage.ts").write_text(usage)
    module, how = resolution
    arguments = ["--noEmit", "--strict", "--module", module, "--moduleResolution", how, "--target", "es2022"]
    compiler = WEB / "node_modules/typescript/bin/tsc"
    command = ["node", str(compiler), *arguments, "--lib", "es2023,dom", "--types", "", "usage.ts"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("resolution", [("nodenext", "nodenext"), ("esnext", "bundler")], ids=lambda pair: pair[1])
@pytest.mark.parametrize("usage", USAGES, ids=lambda path: path.stem)
def test_types(project: Path, usage: Path, resolution: tuple[str, str]) -> None:
    """Code for onnxruntime-web is checked with the package's name changed; what must be wrong says so itself."""
    assert type_checked(project, usage.read_text(), resolution) == ""


@pytest.mark.parametrize("usage", USAGES, ids=lambda path: path.stem)
def test_usages_are_of_onnxruntime_web(of_npm: Callable[[str, str], Path], usage: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(of_npm("onnxruntime-web", VERSION).parent)
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    text = usage.read_text().replace("py-ort-web", "onnxruntime-web")
    assert type_checked(tmp_path, text) == ""
