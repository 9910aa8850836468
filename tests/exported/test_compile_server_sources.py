"""Models that a compile server fetches, and the object store where it keeps what it made of them."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from compile_servers import Server, Site, numbered, sha256, two_thirds_of_a_megabyte

import py_ort
from py_ort.cli.compile_server import compile_server as compile_server_command
from py_ort.compiler.package.format import begins
from py_ort.exceptions import PyOrtError
from py_ort.serving.compiling import sources as sources_module
from py_ort.serving.compiling.objects import ObjectStore
from py_ort.serving.compiling.sources import Refused, Sources

Serve = Callable[..., Server]


async def unknown(sha256: str) -> bool:
    """Have a model fetched, whatever was fetched before."""
    return False


def test_models_of_urls(compile_server: Serve, site: Callable[..., Site]) -> None:
    other, models = site(elsewhere=numbered(4)), site(a=numbered(3))
    server = compile_server("--source", models.origin)
    asked = f"/export?url={models.origin}/a.onnx"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(server.ask, [asked] * 8))
    assert {status for status, _, _ in answers} == {303}
    assert models.asked.count(("/a.onnx", 200)) == 1 and server.metrics()["compiled_total"] == 1
    # Later it is only asked whether it has changed.
    assert server.ask(asked)[0] == 303 and models.asked[-1] == ("/a.onnx", 304)
    assert server.ask(f"{asked}&sha256={sha256(numbered(3))}")[0] == 303
    wrong = server.ask(f"/export?url={models.origin}/away/{models.origin}/a.onnx&sha256={sha256(b'')}")
    assert wrong[0] == 409
    assert server.ask(f"/export?url={models.origin}/none.onnx")[0] == 502
    for url in (
        f"{other.origin}/elsewhere.onnx",
        f"{models.origin}/away/{other.origin}/elsewhere.onnx",
        "file:///etc/x",
    ):
        status, _, text = server.ask(f"/export?url={url}")
        assert status == 403 and b"--source" in text
    assert other.asked == []


@pytest.mark.parametrize("validator", ["ETag", "Last-Modified", ""])
def test_a_model_is_replaced_at_its_url(compile_server: Serve, site: Callable[..., Site], validator: str) -> None:
    models = site(a=two_thirds_of_a_megabyte(1))
    models.validator = validator
    server = compile_server("--source", models.origin, "--keep", "1")  # MiB: one of two
    asked = f"/export?url={models.origin}/a.onnx"
    first = server.ask(asked)[1]["location"]
    assert server.ask(asked)[1]["location"] == first
    assert models.asked[-1] == ("/a.onnx", 304 if validator else 200)
    models.replace("/a.onnx", two_thirds_of_a_megabyte(2))
    second = server.ask(asked)[1]["location"]
    assert second != first and server.ask(f"/export?sha256={sha256(two_thirds_of_a_megabyte(2))}")[0] == 303
    assert server.metrics()["compiled_total"] == 2
    # A model that had to make room is fetched again, though it has not changed.
    server.compiled(two_thirds_of_a_megabyte(3))
    assert server.ask(asked)[1]["location"] == second and models.asked[-1] == ("/a.onnx", 200)
    assert server.metrics()["compiled_total"] == 4


def test_dates_of_a_model(tmp_path: Path) -> None:
    """A model that is as new as its answer may change within the second."""
    from py_ort.serving.compiling.sources import _asking

    old, new = "Sat, 28 Nov 2026 15:00:00 GMT", "Sat, 28 Nov 2026 15:00:02 GMT"
    assert _asking({"Last-Modified": old, "Date": new}) == {"If-Modified-Since": old}
    assert _asking({"Last-Modified": new, "Date": new, "ETag": '"1"'}) == {"If-None-Match": '"1"'}
    for answer in ({"Last-Modified": new, "Date": new}, {"Last-Modified": "x", "Date": new}, {"Date": new}, {}):
        assert _asking(answer) == {}


def test_servers_share_an_object_store(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    objects = tmp_path / "objects" / "models"
    servers = [Server(tmp_path / f"server{i}", "--store", objects.as_uri(), "--keep", "1") for i in range(2)]
    try:
        first, second = servers
        model, other = two_thirds_of_a_megabyte(1), two_thirds_of_a_megabyte(2)
        place = first.compiled(model)
        content = first.ask(place)[2]
        # The other server is asked by another page, and at the same time by those whom the first one led on.
        asked = [place, f"/export?sha256={sha256(model)}"] * 4
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(second.ask, asked))
        assert [status for status, _, _ in answers] == [200, 303] * 4 and answers[0][2] == content
        metrics = second.metrics()
        assert (metrics["brought_total"], metrics["compiled_total"], metrics["evicted_total"]) == (1, 0, 0)
        # A model that had to make room is brought again.
        second.compiled(other)
        assert second.ask(place)[0] == 200 and second.metrics()["brought_total"] == 2
        # One that is damaged there is compiled again, and mended.
        (objects / f"{Path(first.compiled(numbered(1))).name}").write_bytes(content[:100])
        second.compiled(numbered(1))
        assert second.metrics()["compiled_total"] == 2 and "could not" not in second.log() and ".pyort" in second.log()
        # Without the object store models are compiled as ever.
        shutil.rmtree(objects.parent)
        objects.parent.write_bytes(b"a file")
        assert begins(second.ask(second.compiled(numbered(2)))[2]) and "could not be stored" in second.log()
    finally:
        for server in servers:
            server.close()


def test_object_stores_that_cannot_be_used(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    (tmp_path / "file").write_bytes(b"")
    for url, why in (("nothing://models", "Protocol not known"), ((tmp_path / "file/x").as_uri(), "cannot be used")):
        command = [sys.executable, "-m", "py_ort.cli", "compile-server", str(tmp_path / "s"), "--store", url]
        done = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and why in done.stderr and "Traceback" not in done.stderr


def test_a_model_in_parts_in_memory(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "m.onnx").write_bytes(two_thirds_of_a_megabyte(1))
    files = py_ort.export(tmp_path / "m.onnx", tmp_path / f"{'a' * 64}.pyort", providers=["wasm"], part_size=1 << 18)
    assert len(files) > 2
    objects = ObjectStore("memory://models")
    for name in ("to", "again"):
        (tmp_path / name).mkdir()
    assert objects.fetch("a" * 64, tmp_path / "to") == []
    objects.put(files)
    found = objects.fetch("a" * 64, tmp_path / "to")
    assert [file.read_bytes() for file in found] == [file.read_bytes() for file in files]
    fsspec.filesystem("memory").rm_file(f"/models/{'a' * 64}.pyort.1")
    with pytest.raises(PyOrtError):
        objects.fetch("a" * 64, tmp_path / "again")


def test_uploads_that_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload may last as long as its bytes keep coming, but not longer than any model may take."""
    monkeypatch.setattr(sources_module, "_PATIENCE", 2)
    monkeypatch.setattr(sources_module, "_SLOWEST", 1 << 10)

    async def arriving(bytes_at_once: int, times: int) -> AsyncIterator[bytes]:
        for _ in range(times):
            yield bytes(bytes_at_once)
            await asyncio.sleep(0.1)

    def outcome(seconds: float, bytes_at_once: int, times: int) -> str:
        sources = Sources([], 1 << 30, seconds)
        try:
            asyncio.run(sources.accept(arriving(bytes_at_once, times), tmp_path / "m.onnx", None))
        except Refused as e:
            return f"{e.status}: {e}"
        return "received"

    assert outcome(600, 1 << 20, 25) == "received"
    slow = outcome(600, 1, 1_000_000)
    assert slow.startswith("408: the model arrived too slowly, with ")
    assert slow.endswith(": send at least 1 KiB in each second after the first 2")
    assert outcome(0.3, 1 << 20, 1000) == "408: the model took longer to arrive than 0.3 s"


@pytest.mark.parametrize("private", [False, True], ids=["public", "private"])
def test_names_of_private_addresses(
    site: Callable[..., Site], tmp_path: Path, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that are made to point at this machine, or at its network, lead nowhere."""
    models, real = site(a=numbered(1)), socket.getaddrinfo
    addresses = {"models.example": "127.0.0.1", "metadata.example": "169.254.169.254", "intranet.example": "10.0.0.1"}

    def looked_up(host: str, *more: Any, **options: Any) -> Any:
        return real(addresses.get(host, host), *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)
    origins = [f"http://{host}:{models.server_port}" for host in (*addresses, "localhost")]
    sources = Sources([models.origin, *origins], 1 << 20, 60, private)

    def fetched(url: str) -> str:
        try:
            return asyncio.run(sources.fetch(url, tmp_path / "m.onnx", unknown)).sha256
        except Refused as e:
            return f"{e.status}: {e}"

    for origin in (models.origin, origins[-1]):  # an address, and localhost, mean what they say
        assert fetched(f"{origin}/a.onnx") == sha256(numbered(1))
    asked = len(models.asked)
    if private:
        assert fetched(f"{origins[0]}/a.onnx") == sha256(numbered(1))
        return
    for host, origin in zip(addresses, origins, strict=False):
        for url in (f"{origin}/a.onnx", f"{models.origin}/away/{origin}/a.onnx"):
            assert fetched(url) == (
                f"403: {host} has the private address {addresses[host]}: "
                "py-ort compile-server --private-sources allows such addresses"
            )
    assert len(models.asked) == asked + len(addresses)


def test_urls_are_read_once(site: Callable[..., Site], tmp_path: Path) -> None:
    models = site(a=numbered(1))
    sources = Sources([models.origin, "https://hub.example"], 1 << 20, 60)

    def status(url: str) -> int:
        try:
            asyncio.run(sources.fetch(url, tmp_path / "m.onnx", unknown))
        except Refused as e:
            return e.status
        return 200

    port = models.server_port
    refused = (
        *(f"http://127.0.0.1:{port}\\@evil.example/a.onnx", f"http://127.0.0.1:{port}@evil.example/a.onnx"),
        *(f"http://user:word@127.0.0.1:{port}/a.onnx", f"http://2130706433:{port}/a.onnx", f"http://[::1]:{port}/a"),
        *("http://[", "http://", "a.onnx", "", "file:///etc/passwd", "ftp://hub.example/a", "http://hub.example/a"),
    )
    assert {status(url) for url in refused} == {403} and models.asked == []
    assert status(f"HTTP://127.0.0.1:{port}/a.onnx#part") == 200
    assert status(f"{models.origin}/away//a.onnx") == 200


@pytest.mark.parametrize("origin", ["https://hub.example/models", "http://[", "http://h:x", "ftp://h", "http://u@h"])
def test_origins_that_are_none(tmp_path: Path, origin: str) -> None:
    done = CliRunner().invoke(compile_server_command, [str(tmp_path / "s"), "--source", origin])
    assert done.exit_code == 2 and f"{origin!r} is no origin" in done.output
