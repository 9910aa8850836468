"""The compiler without processes, sockets, threads and mapped files, as in Python compiled to WebAssembly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_models
from language_models import language_model
from onnx import helper, numpy_helper

import py_ort

#: Modules that Pyodide lacks, and those for browsers and servers only.
MISSING = [
    *("_multiprocessing", "_posixsubprocess", "_ssl", "fcntl", "resource", "ssl", "termios"),
    *("aiohttp", "playwright", "segno", "websockets"),
]
FORBIDDEN = ["subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "os.exec", "socket.", "mmap."]
SCRIPT = f"""
import sys
sys.platform = "emscripten"
for name in {MISSING!r}:
    sys.modules[name] = None

import _thread
def no_thread(*arguments, **more):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = _thread.start_joinable_thread = no_thread
import threading
threading._start_new_thread = no_thread

def forbid(event, arguments):
    if event.startswith(tuple({FORBIDDEN!r})):
        raise RuntimeError(f"not to be had here: {{event}}")
sys.addaudithook(forbid)

from pathlib import Path
from py_ort.exporting.in_page import export_bytes
for model in sorted(Path(sys.argv[1]).glob("*.onnx")):
    told = []
    made = export_bytes(memoryview(model.read_bytes()), ["webgpu", "wasm"], lambda *stage: told.append(stage))
    model.with_suffix(".alone").write_bytes(made)
    assert told[0][0].startswith("compiling for webgpu") and all(type(word) in (str, int) for word in sum(told, ()))
print(",".join(sorted(name for name in sys.modules if "." not in name)))
"""


def with_function() -> bytes:
    """A model with a function, which ONNX's C++ inlines."""
    body = [helper.make_node("Mul", ["a", "a"], ["s"]), helper.make_node("Add", ["s", "a"], ["b"])]
    function = helper.make_function("mine", "Poly", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("Poly", ["x"], ["h"], domain="mine"), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "g", [small_models.floats("x", ["N", 4])], [small_models.floats("y", ["N", 4])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=10).SerializeToString()


def unusual() -> bytes:
    """A model with an attribute for which ONNX's C++ runs in another process elsewhere."""
    nodes = [helper.make_node("EyeLike", ["x"], ["e"], k=1 << 40), helper.make_node("Add", ["e", "x"], ["y"])]
    return small_models.model(nodes, [small_models.floats("x", [2, 3])], [small_models.floats("y", [2, 3])])


def large() -> bytes:
    """Weights that are hashed in pieces."""
    weight = numpy_helper.from_array(np.ones((1500, 1500), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return small_models.model(
        [node], [small_models.floats("x", [1, 1500])], [small_models.floats("y", [1, 1500])], [weight]
    )


@pytest.mark.skipif(sys.platform == "win32", reason="it takes the paths of POSIX to be there")
def test_models_are_exported_alone(tmp_path: Path) -> None:
    models = {
        "add": small_models.add(),
        "products": small_models.integer_products(),
        "windows": small_models.windows(),
        "loop": small_models.endless_loop(),
        "decoder": language_model("growing").SerializeToString(),
        "function": with_function(),
        "unusual": unusual(),
        "large": large(),
    }
    for name, model in models.items():
        (tmp_path / f"{name}.onnx").write_bytes(model)
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    loaded = set(done.stdout.strip().split(","))
    assert not loaded & {"multiprocessing", "asyncio", "rich", "click"}
    for name, model in models.items():
        file = tmp_path / name / "model.pyort"  # the name is in the file
        file.parent.mkdir()
        py_ort.export(model, file)
        assert file.read_bytes()[64:] == (tmp_path / f"{name}.alone").read_bytes()[64:], name
