"""docs/web.md: its commands are run, and its files are a site that works."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from click.testing import CliRunner
from native import native_session
from onnx import helper, numpy_helper

from py_ort.cli.group import cli
from py_ort.schema.gen.ErrorCode import ErrorCode

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/web.md").read_text()
BLOCKS = re.findall(r"^```(\w+)(?: title=\"([^\"\n]+)\")?\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
FILES = {name: body for _, name, body in BLOCKS if name}
COMMANDS = [line for kind, _, body in BLOCKS if kind == "sh" for line in body.splitlines()]
#: Pages that a test of their own opens.
SPECIAL = {"image.html", "script.html", "cdn.html", "offline.html", "gpu.html", "errors.html"}
PAGES = [name for name in FILES if name.endswith(".html") and name not in SPECIAL]
SHAPE = (1, 3, 224, 224)


def model() -> bytes:
    """The page's example model, with 37 classes."""
    weight = np.random.default_rng(5).standard_normal((3, 37)).astype(np.float32)
    return small_models.model(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
        ],
        [small_models.floats("image", ["N", 3, 224, 224])],
        [small_models.floats("scores", ["N", 37])],
        [numpy_helper.from_array(weight, "weight")],
    )


def best(image: np.ndarray) -> int:
    session = native_session(model())
    return int(np.argmax(session.run(None, {"image": image})[0]))


HALVES = best(np.full(SHAPE, 0.5, np.float32))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the page's export command wrote."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "model.onnx").write_bytes(model())
    (command,) = (line for line in COMMANDS if line.startswith("py-ort export"))
    with contextlib.chdir(folder):
        # Other browsers have a separate test.
        done = CliRunner().invoke(cli, [*command.split()[1:], "--browser", "chromium"])
    assert done.exit_code == 0, done.output
    site = folder / "site"
    assert json.loads((site / "model.check.json").read_text())["ok"]
    for name, body in FILES.items():
        (site / name).write_text(body)
    shutil.copy(folder / "model.onnx", site)
    return site


class WithHeaders(SimpleHTTPRequestHandler):
    """Sends the headers of the file _headers."""

    def end_headers(self) -> None:
        for line in FILES["_headers"].splitlines()[1:]:
            name, value = line.strip().split(": ")
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def isolated(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(WithHeaders, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def says(page: Any, text: str) -> None:
    page.locator("body", has_text=text).wait_for(timeout=60_000)


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, site: Path, plainly_served: Any, open_url: Any) -> None:
    assert PAGES == ["page.html", "with_worker.html", "loading.html", "policy.html"]
    says(open_url(f"{plainly_served(site)}{name}"), f"class {HALVES}")


def test_all_commands_are_known() -> None:
    """Other commands are pip's and http.server's; ours are run here, and by the tests of `py-ort serve`."""
    assert [line.split()[0] for line in COMMANDS] == ["pip", "py-ort", "python3", "pip", "pip", "py-ort"]
    assert COMMANDS[2] == "python3 -m http.server --directory site" and COMMANDS[-1] == "py-ort serve site"
    for line in (COMMANDS[1], COMMANDS[-1]):
        assert line.split()[1] in cli.commands


def test_an_image(site: Path, plainly_served: Any, open_url: Any, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    colors = (250, 20, 90)
    image.fromarray(np.full((50, 40, 3), colors, np.uint8)).save(tmp_path / "image.png")
    page = open_url(f"{plainly_served(site)}image.html")
    page.locator("#file").set_input_files(tmp_path / "image.png")
    planes = np.array(colors, np.float32).reshape(1, 3, 1, 1) / 255
    expected = best(np.broadcast_to(planes, SHAPE).copy())
    assert expected != HALVES
    says(page, f"class {expected}")


def test_the_script_of_the_npm_package(site: Path, plainly_served: Any, open_url: Any) -> None:
    package = site / "node_modules/py-ort-web"
    subprocess.run(["node", "npm/build.mjs", "--out", str(package)], cwd=ROOT / "web", check=True, capture_output=True)
    says(open_url(f"{plainly_served(site)}script.html"), f"class {HALVES}")


def test_headers_give_threads(site: Path, isolated: str, plainly_served: Any, open_url: Any) -> None:
    for url, wanted in ((isolated, True), (plainly_served(site), False)):
        page = open_url(f"{url}page.html")
        says(page, f"class {HALVES}")
        assert page.evaluate("crossOriginIsolated") == wanted


def test_a_runtime_of_another_origin(site: Path, plainly_served: Any, open_url: Any) -> None:
    page = open_url("about:blank")
    served: list[str] = []

    def cdn(route: Any) -> None:
        served.append(route.request.url)
        file = site / "py_ort" / route.request.url.rpartition("/")[2]
        route.fulfill(path=file, headers={"Access-Control-Allow-Origin": "*", "Content-Type": kind(file)})

    page.context.route("https://cdn.example.com/**", cdn)
    page.goto(f"{plainly_served(site)}cdn.html")
    says(page, f"class {HALVES}")
    assert any(url.endswith("core.wasm") for url in served)


def kind(file: Path) -> str:
    return "application/wasm" if file.suffix == ".wasm" else "text/javascript"


def test_offline(site: Path, open_url: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = open_url(f"http://127.0.0.1:{server.server_port}/offline.html")
    says(page, f"class {HALVES}")
    page.reload()
    says(page, f"class {HALVES}")
    server.shutdown()
    server.server_close()
    page.reload()
    says(page, f"class {HALVES}")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


def test_the_cache_is_asked_and_not_the_server(site: Path, plainly_served: Any, open_url: Any) -> None:
    page = open_url(f"{plainly_served(site)}loading.html")
    says(page, f"class {HALVES}")
    page.wait_for_function("async () => (await (await caches.open('py_ort')).keys()).length === 1", timeout=60_000)
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    page.reload()
    says(page, f"class {HALVES}")
    assert asked and not [url for url in asked if url.endswith(".pyort")]


def test_tensors_on_the_gpu(site: Path, plainly_served: Any, open_url: Any) -> None:
    says(open_url(f"{plainly_served(site)}gpu.html"), f"class {HALVES} of ")


def test_errors(site: Path, plainly_served: Any, open_url: Any) -> None:
    page = open_url(f"{plainly_served(site)}errors.html")
    says(page, "invalid_graph: ")
    assert "py-ort export" in page.locator("body").inner_text()
    told = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", TEXT.partition("## Errors")[2], re.MULTILINE)))
    )
    assert told == {name for name in vars(ErrorCode) if name[0] != "_" and name != "ok"}


def test_what_the_command_writes_is_in_the_table(site: Path) -> None:
    table = TEXT.partition("| file | what |")[2].partition("\n\n")[0]
    named = {name.rstrip("/") for name in re.findall(r"`([\w./]+)`", table)}
    written = {file.name for file in site.iterdir()} - FILES.keys() - {"model.onnx", "node_modules"}
    assert written == named
