"""`py-ort compile-server`: models of pages, each compiled once, in a process that may die."""

from __future__ import annotations

import functools
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import small_models
from compile_servers import Server, numbered, sha256, two_thirds_of_a_megabyte
from onnx import helper

from py_ort.compiler.package.format import begins

Serve = Callable[..., Server]


def test_fifty_requests_for_ten_models_compile_each_once(compile_server: Serve) -> None:
    server = compile_server("--jobs", "2")
    models = [numbered(i) for i in range(10)]
    with ThreadPoolExecutor(50) as pool:
        places = list(pool.map(server.compiled, models * 5))
    assert len(set(places)) == 10 and places == places[:10] * 5
    metrics = server.metrics()
    assert (metrics["requests_total"], metrics["compiled_total"]) == (50, 10)
    assert metrics["compiling"] == metrics["waiting"] == 0
    for place in set(places):
        status, headers, content = server.ask(place)
        assert status == 200 and begins(content)
        assert headers["content-type"] == "application/x-pyort" and "immutable" in headers["cache-control"]


def test_models_are_found_by_their_hash_also_after_a_restart(compile_server: Serve) -> None:
    server, model = compile_server(), numbered(1)
    asked = f"/export?sha256={sha256(model)}"
    assert server.ask(asked)[0] == 404
    place = server.compiled(model)
    assert server.ask(asked)[1]["location"] == place
    assert server.ask(f"{asked[:-1]}x")[0] == 400
    wrong = server.ask(f"/export?sha256={sha256(b'')}", model)
    assert wrong[0] == 409 and sha256(model) in wrong[2].decode()
    server.close()
    again = compile_server()
    assert again.ask(asked)[1]["location"] == place
    assert again.metrics()["compiled_total"] == 0


def test_progress_is_told(compile_server: Serve) -> None:
    server, model = compile_server(), numbered(2)
    *before, (last, about) = server.events("/export", model)
    assert last == "done" and begins(server.ask(about["url"])[2])
    assert {kind for kind, _ in before} == {"progress"}
    assert {about["stage"] for _, about in before} & {"waiting", "compiling for wasm", "receiving the model"}
    assert server.events("/export", b"no model")[-1][1] == {
        "status": 422,
        "text": "InvalidProtobuf: the model is not an ONNX model",
    }


def test_limits(compile_server: Serve) -> None:
    server = compile_server("--max-size", "1", "--cors", "https://app.example", "--name", "compiler.example")
    large = server.ask("/export", bytes(2 << 20))
    assert large[0] == 413 and b"--max-size" in large[2]
    assert server.ask("/export", b"")[0] == 400 and server.ask("/export")[0] == 400
    assert server.ask("/export?plan=1")[0] == 409
    assert server.ask("/health", Host="compiler.example")[0] == 200
    assert server.ask("/health", Host="evil.example")[0] == 403
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null", "Sec_Fetch_Site": "cross-site"}):
        assert server.ask("/export", numbered(5), **headers)[0] == 403
    status, headers, _ = server.ask("/export", numbered(5), Origin="https://app.example")
    assert status == 303 and headers["access-control-allow-origin"] == "https://app.example"
    allowed = server.ask("/export", method="OPTIONS", Origin="https://app.example")[1]
    assert "POST" in allowed["access-control-allow-methods"]
    for name in ("..%2f..%2fpyproject.toml", "store.log", f"{'0' * 64}.pyort", ".work"):
        assert server.ask(f"/models/{name}")[0] == 404
    assert server.metrics()["compiled_total"] == 1


def slow_upload(server: Server, begun: bytes = b"ab") -> socket.socket:
    """Begin to send a model, and send no more."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST /export HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: 100000\r\n\r\n"
    connection.sendall(head.encode() + begun)
    return connection


def test_slow_uploads_do_not_block_others(compile_server: Serve) -> None:
    server = compile_server()
    slow = [slow_upload(server) for _ in range(12)]
    server.compiled(numbered(1))
    # More of one client than it has places for: it waits for these no longer than such a request may take.
    slow += [slow_upload(server) for _ in range(40)]
    server.compiled(numbered(2))
    for connection in slow[:12]:
        connection.settimeout(120)
        assert b" 408 " in connection.recv(100)
    for connection in slow:
        connection.close()


def outside(file: str) -> bytes:
    """A model whose weight is in another file, such as one of the server's own."""
    from external_models import external

    node = helper.make_node("Add", ["x", "w"], ["y"])
    values = [small_models.floats(name, [4]) for name in ("x", "y")]
    return small_models.model([node], values[:1], values[1:], [external(file)])


def test_a_hostile_model_ends_its_process_only(compile_server: Serve, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(16))
    server = compile_server("--jobs", "1")
    told = set()
    for place in ("secret", "../../../secret", "../../../none", "/etc/passwd", "/etc/none", "model.onnx", ".", "none"):
        status, _, text = server.ask("/export", outside(place))
        assert status == 422, text
        told.add(text.decode().replace(repr(place), "PLACE"))
    # The same whether there is such a file or not, and with nothing of this disk.
    assert told == {
        "NoSuchFile: tensor 'w' lies in the file PLACE, and only models without external data are compiled here: save "
        "the model as one file, with onnx.save(onnx.load(FILE), OTHER)"
    }
    slow = small_models.slow(1024, 400)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.ask, "/export", slow)
        while not (workers := server.workers()):
            assert not waiting.done(), waiting.result()
            time.sleep(0.02)
        # Where memory runs out, Linux is to end this process before the server.
        while Path(f"/proc/{workers[0]}/oom_score_adj").read_text().strip() != "1000":
            assert not waiting.done(), waiting.result()
            time.sleep(0.02)
        os.kill(workers[0], signal.SIGKILL)
        status, _, text = waiting.result()
    assert status == 422 and text.startswith(b"OutOfMemory: model.onnx: the process that compiled it was killed")
    # It is not tried repeatedly.
    assert server.ask(f"/export?sha256={sha256(slow)}")[0] == 422
    assert server.metrics()["failed_total"] == 9
    server.compiled(numbered(6))
    assert server.ask("/health")[0] == 200


def test_a_model_that_takes_too_long(compile_server: Serve) -> None:
    server = compile_server("--timeout", "2")
    status, _, text = server.ask("/export", small_models.slow(8, 20_000))
    assert status == 422 and b"took longer to compile than 2 s" in text


def test_the_store_is_bounded(compile_server: Serve) -> None:
    server = compile_server("--keep", "1")  # MiB: one of two
    first, second = server.compiled(two_thirds_of_a_megabyte(1)), server.compiled(two_thirds_of_a_megabyte(2))
    assert server.ask(first)[0] == 404 and server.ask(second)[0] == 200
    assert server.metrics()["evicted_total"] == 1
    assert server.compiled(two_thirds_of_a_megabyte(1)) == first and server.ask(first)[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_nothing_is_left_of_a_server(compile_server: Serve, tmp_path: Path, number: int) -> None:
    server = compile_server("--jobs", "1")
    with ThreadPoolExecutor(1) as pool:
        asked = functools.partial(server.ask, "/export", small_models.slow(1024, 400))
        waiting = pool.submit(asked)
        while not (workers := server.workers()):
            time.sleep(0.02)
        server.close(number)
        assert waiting.exception() is not None or waiting.result()[0] != 303
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers) or list((tmp_path / "store").iterdir()):
        assert time.monotonic() < deadline, list((tmp_path / "store").iterdir())
        time.sleep(0.05)


def test_what_is_told_of_a_model_is_short(compile_server: Serve) -> None:
    server = compile_server()
    node = helper.make_node("Frobnicate" + "z" * 1_000_000, ["x"], ["y"])
    model = small_models.model([node], [small_models.floats("x", [1])], [small_models.floats("y", [1])])
    status, _, text = server.ask("/export", model)
    assert status == 422 and b"Frobnicatezz" in text and len(text) < 5000 and len(server.log()) < 5000
    packed = server.ask("/export", numbered(1), Content_Encoding="gzip")
    assert packed[0] == 400 and b"cannot be decoded" in packed[2]
