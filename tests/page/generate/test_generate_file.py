"""The loops of decoders are a separate file, which the first generation of a page loads."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from installed_browsers import need_browser
from language_models import language_model, native_greedy
from static_site import CORS, StaticSite, browsing
from waiting import wait_until

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

HERE = Path(__file__).resolve().parent
POLICY = {"Content-Security-Policy": "script-src 'self' 'wasm-unsafe-eval'"}
FILE = "/generate.mjs"


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    copy_runtime(folder)
    shutil.copy(HERE / "generate_file.mjs", folder)
    shutil.copy(HERE / "generate_file.html", folder)
    py_ort.export(language_model("growing").SerializeToString(), folder / "decoder.pyort", providers=["wasm"])
    return folder


@pytest.fixture
def folder(laid_out, tmp_path):
    """A site for this test."""
    return Path(shutil.copytree(laid_out, tmp_path / "site"))


@pytest.fixture
def site(folder, serve):
    return serve(folder, POLICY)


def visit(site: StaticSite, query: str = "", browser: str = "chromium") -> dict[str, Any]:
    with browsing(browser, f"{site.origin}/generate_file.html{query}"):
        told = site.told()
    assert "error" not in told, told
    assert told["refused"] == [] and told["dims"] == told["again"] == [1, 1, 48]
    return told


def check(told: dict[str, Any]) -> None:
    wanted = native_greedy(language_model("growing"), [3, 1, 4], 4)
    assert told["rows"] == [wanted, wanted] and told["last"] == wanted


@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
def test_it_is_loaded_when_it_is_used(site, query):
    """Once, and not before; by a page whose policy only allows its own scripts."""
    check(visit(site, query))
    assert site.asked.count(FILE) == 1
    assert site.asked.index("/before") < site.asked.index(FILE) < site.asked.index("/between")


@pytest.mark.parametrize("browser", ["firefox", "webkit"])
@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
def test_in_other_browsers(site, query, browser):
    check(visit(site, query, need_browser(browser)))
    assert site.asked.index("/before") < site.asked.index(FILE) < site.asked.index("/between")


@pytest.mark.parametrize("way", ["runtime", "paths", "generate"])
@pytest.mark.parametrize("query", ["", "&page"], ids=["worker", "page"])
def test_from_another_origin(folder, serve, tmp_path, way, query):
    """Everything is loaded from there, everything but the module, or only that file."""
    shutil.copytree(folder, tmp_path / "cdn")
    (folder / "generate.mjs").unlink()
    cdn, site = serve(tmp_path / "cdn", CORS), serve(folder)
    check(visit(site, f"?{way}={cdn.origin}{FILE if way == 'generate' else '/'}{query}"))
    assert cdn.asked.count(FILE) == 1 and FILE not in site.asked
    assert ("/core.wasm" in cdn.asked) == (way != "generate")


@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
def test_where_it_is_missing(site, query):
    """A typed error with the URL and the next step; the session still runs."""
    (site.folder / "generate.mjs").unlink()
    told = visit(site, query)
    for error in (*told["rows"], told["last"]):
        assert error["name"] == "RuntimeError(fail)", error
        for words in (f"{site.origin}{FILE}", "env.wasm.wasmPaths = { generate: URL }"):
            assert words in error["message"]


@pytest.mark.parametrize("query", ["", "&page"], ids=["worker", "page"])
def test_a_session_that_is_released_meanwhile(site, query):
    """Nothing is made that would not be freed."""
    site.held[FILE] = threading.Event()
    with browsing("chromium", f"{site.origin}/generate_file.html?release{query}"):
        wait_until(lambda: {FILE, "/released"} <= set(site.asked))
        site.held[FILE].set()
        told = site.told()
    assert told["released"]["name"] == "RuntimeError(no_such_session)", told


@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
def test_it_is_asked_for_again(site, query):
    """Once it is there, generations work."""
    file = site.folder / "generate.mjs"
    away = file.rename(site.folder / "away")
    site.held["/between"] = threading.Event()
    with browsing("chromium", f"{site.origin}/generate_file.html{query}"):
        wait_until(lambda: "/between" in site.asked)
        away.rename(file)
        site.held["/between"].set()
        told = site.told()
    assert [error["name"] for error in told["rows"]] == ["RuntimeError(fail)"] * 2, told
    assert told["last"] == native_greedy(language_model("growing"), [3, 1, 4], 4), told
