"""Unusable models: the error, and its message."""

import processes
import pytest
import small_models

from py_ort import InferenceSession
from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented, PyOrtError


@pytest.mark.parametrize(
    "content, hint",
    [
        (b"", "empty"),
        (b"this is no model at all", "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (b"PK\x03\x04rest of a zip", "zip"),
        (b"\x08\x07", "no graph"),
    ],
    ids=["empty", "text", "lfs", "zip", "truncated"],
)
def test_not_a_model(new_session, tmp_path, content, hint):
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for source in (file, content):
        with pytest.raises(InvalidProtobuf, match=hint):
            new_session(source)


def test_no_file(new_session, tmp_path):
    with pytest.raises(NoSuchFile, match=r"missing\.onnx") as caught:
        new_session(tmp_path / "missing.onnx")
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("domain", ["", "my.domain"])
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_unknown_operator(new_session, provider, domain):
    with pytest.raises((InvalidGraph, NotImplemented), match="Frobnicate") as caught:
        new_session(small_models.unknown_operator(domain), providers=[provider])
    assert caught.value.op_type == "Frobnicate" and caught.value.domain == domain
    assert "frob" in str(caught.value)


def test_a_truncated_model(new_session):
    whole = small_models.add()
    with pytest.raises(PyOrtError):
        new_session(whole[: len(whole) // 2])


CUT_OFF = """
import copy, os
from pathlib import Path
import numpy as np
import onnx
from onnx import helper, numpy_helper
import py_ort
from py_ort.compiler.plan.cache import PlanCache
from py_ort.exceptions import InvalidGraph, InvalidProtobuf

STAGES = ("reading the model", "starting the browser", "compiling the model", "loading it into the page")
weights = [np.full((512, 512), number, np.float32) for number in (1, 2)]
value = helper.make_tensor_value_info
nodes = [helper.make_node("MatMul", ["x", "w0"], ["t"]), helper.make_node("Add", ["t", "w1"], ["y"])]
constants = [numpy_helper.from_array(each, f"w{number}") for number, each in enumerate(weights)]
graph = helper.make_graph(nodes, "g", [value("x", 1, [1, 512])], [value("y", 1, [512, 512])], constants)
made = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
x = np.ones((1, 512), np.float32)


def make(model, cached, progress=None):
    where, options = py_ort.BrowserOptions(webgpu="off", sandbox=False), py_ort.SessionOptions()
    options.add_session_config_entry("session.plan_cache", str(int(cached)))
    with py_ort.InferenceSession(model, options, providers=["wasm"], browser=where, progress=progress) as session:
        assert (session.run(None, {"x": x})[0] == 514).all()


for kind in ("external data", "a .pyort file", "a cached plan", "a cached plan with external data"):
    folder = Path(os.environ["FOLDER"], kind)
    folder.mkdir()
    model, file, cached = folder / "model.onnx", folder / "weights.data", "cached" in kind
    onnx.save(copy.deepcopy(made), model, save_as_external_data="external" in kind, location=file.name)
    if kind == "a .pyort file":
        py_ort.export(model, folder / "model.pyort", providers=["wasm"])
        file = model = folder / "model.pyort"
    plans = set(Path(os.environ["PY_ORT_CACHE_DIR"]).glob("*.plan"))
    make(model, cached)
    if kind == "a cached plan":
        PlanCache.default().flush()
        (file,) = set(Path(os.environ["PY_ORT_CACHE_DIR"]).glob("*.plan")) - plans
    whole = file.read_bytes()
    for stage in STAGES:
        for size in (0, len(whole) // 2):
            file.write_bytes(whole)

            def cut_off(at, done, total):
                if at == stage and file.exists():  # a cached plan that was cut off is removed, and compiled again
                    os.truncate(file, size)

            try:
                make(model, cached, cut_off)
                assert kind == "a cached plan", "it was made of half a file"
            except (InvalidGraph, InvalidProtobuf) as e:
                assert kind != "a cached plan" and file.name in str(e), e
    file.write_bytes(whole)
    make(model, cached)
    print(kind)
"""


def test_files_that_are_cut_off_while_a_session_is_made(tmp_path):
    """As when a program overwrites a file in place: an error that names the file, or another plan; never a signal."""
    done = processes.python(CUT_OFF, FOLDER=str(tmp_path), PY_ORT_CACHE="1", PY_ORT_CACHE_DIR=str(tmp_path / "cache"))
    assert len(done.stdout.splitlines()) == 4, (done.returncode, done.stdout, done.stderr)


def test_no_browser_is_needed_to_miss_a_kernel():
    with pytest.raises(NotImplemented, match=r"frob.*there is no kernel"):
        InferenceSession(small_models.unknown_operator("my.domain"), browser="/no/such/browser")
