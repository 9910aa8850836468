"""py_ort.mjs in other pages: policies, servers, origins."""

import re
import shutil
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import small_models
from javascript_site import lay_out
from native import native_session
from static_site import CORS, ISOLATED, StaticSite, browsing
from waiting import wait_until

POLICY = {"Content-Security-Policy": "script-src 'self' 'wasm-unsafe-eval'"}
X = (np.arange(4 * 8 * 8) % 17 / 17).astype(np.float32).reshape(1, 4, 8, 8)
RUNTIME = ("*.mjs", "*.wasm", "microkernel_worker.js")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("policies")
    lay_out(made)
    return made


def visit(site: StaticSite, query: str = "") -> dict[str, Any]:
    """Return the page's answer; its numbers are native onnxruntime's."""
    with browsing("chromium", f"{site.origin}/javascript_policy.html{query}"):
        told = site.told()
    assert "error" not in told, told
    (wanted,) = native_session(small_models.two_products()).run(None, {"x": X})
    np.testing.assert_allclose(told["y"], wanted.ravel(), rtol=1e-4, atol=1e-5)
    assert told["refused"] == told["said"]["warn"] == told["said"]["error"] == []
    return told


@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_a_content_security_policy(folder, serve, query, isolated):
    site = serve(folder, {**POLICY, **(ISOLATED if isolated else {})})
    told = visit(site, query)
    assert told["isolated"] == isolated
    assert ("/session_worker.wasm.mjs" in site.asked) == (query == "")
    assert ("/microkernel_worker.js" in site.asked) == (isolated and query == "")


@pytest.mark.parametrize("query", ["", "&page"], ids=["worker", "page"])
@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_from_another_origin(folder, serve, tmp_path, query, isolated):
    """As from a CDN, which sends CORS headers, but not those of the page's isolation."""
    for pattern in RUNTIME:
        for file in folder.glob(pattern):
            shutil.copy(file, tmp_path)
    (tmp_path / "page").mkdir()
    for file in (*folder.glob("parted.pyort*"), *folder.glob("javascript_policy.*")):
        shutil.copy(file, tmp_path / "page")
    cdn = serve(tmp_path, CORS)
    site = serve(tmp_path / "page", ISOLATED if isolated else {})
    visit(site, f"?runtime={cdn.origin}/{query}")
    assert "/core.wasm" in cdn.asked and "/py_ort.mjs" not in site.asked
    assert ("/session_worker.wasm.mjs" in cdn.asked) == (query == "")
    assert ("/microkernel_worker.js" in cdn.asked) == (isolated and query == "")


def test_without_isolation_there_is_one_thread_and_a_word(folder, serve):
    told = visit(serve(folder))
    (word,) = [text for text in told["said"]["info"] if "one thread" in text]
    assert "is not cross-origin isolated: its server must send Cross-Origin-Opener-Policy" in word


@pytest.mark.parametrize("query", ["", "?page"], ids=["worker", "page"])
def test_the_core_does_not_wait_for_the_model(folder, serve, query):
    site = serve(folder)
    site.held["/parted.pyort"] = threading.Event()
    with browsing("chromium", f"{site.origin}/javascript_policy.html{query}"):
        wait_until(lambda: {"/parted.pyort", "/core.wasm"} <= set(site.asked))
        assert ("/core.mjs" in site.asked) == (query == "?page")  # workers have it in their script
        site.held["/parted.pyort"].set()
        assert len(site.told()["y"]) == 7


@pytest.mark.parametrize("isolated", [False, True], ids=["alone", "isolated"])
def test_the_core_does_not_wait_for_the_worker(folder, serve, isolated):
    """The page fetches and compiles it, and the worker uses it."""
    site = serve(folder, ISOLATED if isolated else {})
    site.held["/session_worker.wasm.mjs"] = threading.Event()
    modules = {"/core.wasm", "/relaxed_simd.wasm"}
    with browsing("chromium", f"{site.origin}/javascript_policy.html"):
        wait_until(lambda: modules <= set(site.asked))
        site.held["/session_worker.wasm.mjs"].set()
        assert len(site.told()["y"]) == 7
    assert [site.asked.count(name) for name in sorted(modules)] == [1, 1]


def test_one_thread_from_the_beginning(folder, serve):
    """Unshared memory: browsers then compile the core while it is being fetched, and cache the result."""
    modules = ["/core.wasm", "/relaxed_simd.wasm"]
    site = serve(folder, ISOLATED)
    assert visit(site)["streamed"] == []
    assert sorted(visit(site, "?threads=1")["streamed"]) == modules
    with browsing("chromium", f"{site.origin}/javascript_policy.html?threads=1&later=2"):
        told = site.told()
    (word,) = told["said"]["warn"]
    assert "one thread, not 2" in word and "the first session of this page" in word
    assert site.asked.count("/microkernel_worker.js") == 1, "the visit without ?threads alone"


def test_what_is_on_the_gpu_needs_no_loops_of_the_cpu(folder, serve):
    site = serve(folder)
    visit(site, "?provider=webgpu")
    assert "/core.wasm" in site.asked
    assert {"/relaxed_simd.wasm", "/simd128.wasm"}.isdisjoint(site.asked)


def test_the_server_of_python(folder, serve):
    """`python3 -m http.server`: no ranges, no headers, HTTP/1.0."""
    back = serve(folder)
    for name in ("html", "mjs"):
        text = (folder / f"javascript_policy.{name}").read_text().replace("'/told'", f"'{back.origin}/told'")
        (folder / f"told_elsewhere.{name}").write_text(text.replace("javascript_policy.mjs", "told_elsewhere.mjs"))
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            origin = re.search(r"http://[\d.:]+", server.stdout.readline())[0]  # it listens by then
            with browsing("chromium", f"{origin}/told_elsewhere.html"):
                told = back.told()
        finally:
            server.terminate()
    assert "error" not in told, told
    assert len(told["y"]) == 7
