"""`py-ort serve --watch`: plans and weights stay at their URLs and change with the files."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from py_ort.browser.http_server import HttpServer
from py_ort.cli.serve import Served
from py_ort.user_kernels import load_kernels, registered_kernels, unregister_kernel

KERNEL = "// kernel: served::Scaled\nstore_y(i, 2.0 * load_x(i));\n"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer()
    yield made
    made.close()
    if "served::Scaled" in registered_kernels():
        unregister_kernel("served::Scaled")


def write(file: Path, content: str | bytes) -> None:
    """Write a file so that its time differs for sure."""
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(file, ns=(before + 10_000_000, before + 10_000_000))


def model(weight: float) -> bytes:
    nodes = [
        helper.make_node("Scaled", ["x"], ["a"], domain="served"),
        helper.make_node("Mul", ["a", "w"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xy")
    weights = [numpy_helper.from_array(np.full(64, weight, np.float32), "w")]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("served", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def read(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def test_what_is_served_follows_the_files(server: HttpServer, tmp_path: Path) -> None:
    kernel, file = tmp_path / "scaled.wgsl", tmp_path / "model.onnx"
    write(kernel, KERNEL)
    write(file, model(1.0))
    load_kernels(kernel)
    served = Served(server, [file], ["webgpu"], [kernel])
    plan, weights = served.add(file)
    assert b"2.0 * load_x(i)" in read(plan)
    assert served.refresh() == []

    write(kernel, KERNEL.replace("2.0", "3.0"))
    (line,) = served.refresh()
    assert line.startswith(f"{file}: compiled again in ")
    assert b"3.0 * load_x(i)" in read(plan)

    write(file, model(5.0))
    assert len(served.refresh()) == 1
    assert np.frombuffer(read(weights), np.float32)[0] == 5.0

    good = read(plan)
    write(kernel, KERNEL.replace("kernel:", "colonel:"))
    (line,) = served.refresh()
    assert "has no line '// kernel: domain::Operator'" in line
    write(file, b"not a model")
    (line,) = served.refresh()
    assert "InvalidProtobuf" in line
    assert read(plan) == good
    assert served.refresh() == []
