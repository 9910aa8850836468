"""The npm package, built and installed like its users do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import small_models
from static_site import StaticSite
from usual_script import DECODER

import py_ort
from py_ort.bench.npm import npm_package
from py_ort.exceptions import EngineError

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that `make npm` writes."""
    folder = tmp_path_factory.mktemp("packed")
    arguments = ["--out", str(folder / "npm"), "--tarballs", str(folder)]
    subprocess.run(["node", str(ROOT / "web/npm/build.mjs"), *arguments], check=True)
    (file,) = folder.glob("*.tgz")
    return file


@pytest.fixture(scope="session")
def installed(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was empty before `npm install`."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "package.json").write_text('{ "type": "module" }')
    subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", str(tarball)], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def package(installed: Path) -> Path:
    """The installed package's folder."""
    return installed / "node_modules/py-ort-web"


@pytest.fixture
def project(package: Path, tmp_path: Path) -> Path:
    """An empty folder with the package installed."""
    shutil.copytree(package, tmp_path / "node_modules/py-ort-web")
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    return tmp_path


@pytest.fixture
def site(project: Path) -> Iterator[Callable[..., StaticSite]]:
    """Serves a folder, by default the project's, with the models of `usual_script`."""
    sites: list[StaticSite] = []

    def serve(folder: Path = project, headers: Mapping[str, str] | None = None) -> StaticSite:
        py_ort.export(small_models.add(), folder / "add.pyort")
        py_ort.export(DECODER.SerializeToString(), folder / "decoder.pyort", providers=["wasm"])
        sites.append(StaticSite(folder, headers))
        return sites[-1]

    yield serve
    for each in sites:
        each.close()


@pytest.fixture(scope="session")
def of_npm() -> Callable[[str, str], Path]:
    """Another package's folder in node_modules; the test is skipped if it cannot be fetched."""

    def find(name: str, version: str) -> Path:
        try:
            return npm_package(name, version) / "node_modules" / name
        except EngineError as error:
            pytest.skip(str(error))

    return find
