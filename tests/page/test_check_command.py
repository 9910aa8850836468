"""`py-ort check`: it predicts a session's result, and lists everything missing."""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
import pytest
import small_models
from graphs import compiled, parse
from onnx import TensorProto
from session_settings import settings
from shared_browser import BROWSER

from py_ort import InferenceSession
from py_ort.compiler import CompileOptions
from py_ort.compiler.model_report import ModelReport, model_report
from py_ort.exceptions import NotImplemented, PyOrtError
from py_ort.testing.sources import onnx_node

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from mutations import mutated

#: One in this number of ONNX's node cases.
PART = 40
CASES = [case for case in onnx_node.cases() if zlib.crc32(case.id.encode()) % PART == 3]
WAYS = {"webgpu": (("webgpu",), "0"), "wasm": (("wasm",), "0"), "alone": (("webgpu",), "1")}


def judged(model: bytes, way: str) -> tuple[ModelReport, str]:
    """Return what is said of a model, and the error of the session, or ""."""
    providers, alone = WAYS[way]
    options = settings(entries={"session.disable_cpu_ep_fallback": alone}, log_severity_level=4)
    said = model_report(
        model, list(dict.fromkeys([*providers, "wasm"])), CompileOptions(disable_cpu_fallback=alone == "1")
    )
    try:
        InferenceSession(model, options, list(providers), browser=BROWSER).close()
    except PyOrtError as e:
        return said, type(e).__name__
    return said, ""


@pytest.mark.parametrize("way", WAYS)
def test_it_says_what_sessions_do_of_node_cases(way):
    wrong = []
    for case in CASES:
        said, error = judged(case.model, way)
        if said.error.partition(":")[0] != error:
            wrong.append(f"{case.id}: {said.error or 'runs'}, and the session {error or 'runs'}")
        if error == "NotImplemented":
            assert any(each.standing == "missing" for each in said.operators), case.id
    assert not wrong, "\n".join(wrong)


def test_it_says_what_sessions_do_of_broken_models():
    wrong, errors = [], 0
    for number, case in enumerate(CASES):
        model = mutated(f"check/{number}", case.model, 2)
        said, error = judged(model, "wasm")
        errors += bool(error)
        if bool(said.error) != bool(error):
            wrong.append(f"{number}, of {case.id}: {said.error or 'runs'}, and the session {error or 'runs'}")
    assert not wrong, "\n".join(wrong)
    assert errors > len(CASES) / 4


MISSING = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1, "my": 1, "ai.onnx.preview.training": 1]>
g (float[2,2] x) => (float[2,2] z) {
    a = com.microsoft.Frobnicate(x)
    b = my.Frobnicate(a)
    c = my.Frobnicate(b)
    d = Relu(c)
    z = ai.onnx.preview.training.Gradient<xs=["x"], y="x">(d)
}"""


def test_all_that_is_missing_is_listed():
    model = onnx.parser.parse_model(MISSING).SerializeToString()
    said = model_report(model, ["webgpu", "wasm"])
    missing = {f"{each.domain}::{each.op_type}": each for each in said.operators}
    assert not said.runs
    assert {name: len(each.nodes) for name, each in missing.items()} == {
        "com.microsoft::Frobnicate": 1,
        "my::Frobnicate": 2,
        "ai.onnx.preview.training::Gradient": 1,  # no kernel has it, either
    }
    with pytest.raises(NotImplemented) as caught:
        InferenceSession(model, providers=["wasm"], browser=BROWSER)
    assert [each.domain for each in caught.value.missing] == ["com.microsoft", "my", "my"]
    assert "2 more nodes" in str(caught.value) and "register_kernel" not in str(caught.value)


def test_what_placement_misses_is_listed_at_once():
    model = parse("g (float[3,3] x) => (float y, float z) { y = Det(x)  a = Relu(x)  z = Det(a) }")
    with pytest.raises(NotImplemented) as caught:
        compiled(model, providers=["webgpu"])
    missing = [(each.op_type, dict(each.reasons)) for each in caught.value.missing]
    assert missing == [("Det", {"webgpu": "no kernel"})] * 2


@pytest.fixture
def check(py_ort_command, py_ort_json, tmp_path):
    def run(model, *arguments):
        file = tmp_path / "m.onnx"
        file.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        status, said, err = py_ort_json("check", file, *arguments)
        assert "Traceback" not in err
        text_status, text, _ = py_ort_command("check", file, *arguments)
        assert text_status == status and ("it will not run" in text) == (status == 1)
        return status, {**said, "text": text}

    return run


def test_what_stands_in(check):
    """Kernels, other providers, other operators, functions of the model, and removed or fused nodes."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (double[2,2] d, float[2,2] x) => (double[2,2] y, float[2,2] z) {
            y = Abs(d)
            a = own.twice(x)
            b = Identity(a)
            c = Softmax(b)
            z = HardSwish(c)
        }
        <domain: "own", opset_import: ["": 17]> twice (x) => (y) { y = MatMul(x, x) }"""
    )
    status, said = check(model, "--all")
    found = {each["op_type"]: each for each in said["operators"]}
    assert status == 0 and said["runs"] and {name: each["standing"] for name, each in found.items()} == {
        "Abs": "other provider", "twice": "function", "Identity": "gone", "Softmax": "kernel",
        "HardSwish": "kernel",
    }  # fmt: skip
    assert found["Abs"]["becomes"] == [["wasm", "Abs"]] and "float64" in found["Abs"]["reasons"][0][1]
    assert found["twice"]["becomes"] == [["webgpu", "MatMul"]] and found["twice"]["nodes"] == ["a"]
    assert "own::twice" in said["text"]
    assert check(model, "--no-fallback")[0] == 1


def test_sizes_and_memory(check):
    text = "g (float[N,3] x) => (float[N,M] y) { m = MatMul(x, w)  y = Relu(m) }"
    model = parse(text, {"w": np.ones((3, 1000), np.float32)})
    _, said = check(model)
    assert said["open_dimensions"] == {"x": ["N"]} and said["tensor_bytes"] is None and said["open_values"] > 0
    assert "--dim N=NUMBER" in said["text"]
    for option in (("--dim", "N=10"), ("--shape", "x=10x3")):
        _, said = check(model, *option)
        assert said["open_dimensions"] == {} and said["open_values"] == 0
        assert 10 * 4 * (3 + 1000) <= said["tensor_bytes"] <= 10 * 4 * (3 + 2000)
        assert said["weights"]["all"] >= 12000
    assert check(model, "--provider", "wasm")[1]["counts"].keys() == {"wasm"}


def test_memory_that_no_page_has(check):
    """A tensor of more than 4 GiB fits nowhere, a large total only a device; large bindings are a warning."""
    text = "g (float[batch,3,size,size] x) => (float[batch,m,h,w] y) { y = Conv(x, w) }"
    model = parse(text, {"w": np.ones((64, 3, 3, 3), np.float32)})
    status, said = check(model, "--dim", "batch=1", "--dim", "size=8192")
    assert status == 1 and said["error"].startswith("OutOfMemory: 'y' [1, 64, 8190, 8190] takes")
    assert said["largest"]["bytes"] == 4 * 64 * 8190**2
    for way, (status, cautious) in {"webgpu": (0, True), "wasm": (1, False)}.items():
        given = ("--dim", "batch=15", "--dim", "size=1024", "--provider", way)
        found, said = check(model, *given)
        assert (found, "caution" in said["text"]) == (status, cautious), said["text"]
        assert ("`py-ort browsers --json -`" in said["text"]) == cautious


def test_several_models_on_a_page(py_ort_command, tmp_path):
    """Sizes apply to models that have them; an unreadable model is a row; the status is the worst one."""
    models = (small_models.add(), small_models.add(TensorProto.DOUBLE), small_models.add()[:-20])
    paths = [tmp_path / f"{name}.onnx" for name in ("add", "doubles", "cut")]
    for path, model in zip(paths, models, strict=True):
        path.write_bytes(model)
    status, out, _ = py_ort_command("check", *paths, "--shape", "x=5x3", "--json", "-", "--html", tmp_path / "c.html")
    assert status == 1 and [each["runs"] for each in json.loads(out)["models"]] == [True, True, False]
    assert [each["inputs"][0]["dims"] for each in json.loads(out)["models"][:2]] == [[5, 3]] * 2
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    for words in ("2 of 3 models will run", "no kernel for float64", "truncated", "weights: 0 bytes"):
        assert words in page
    assert py_ort_command("check", *paths[:2])[0] == 0
    status, _, said = py_ort_command("check", *paths, "--shape", "z=1")
    assert status == 2 and "no input 'z'" in said


@pytest.mark.parametrize(
    "model, words",
    [
        (small_models.add()[:-20], "truncated"),
        (small_models.unknown_operator(), "Frobnicate"),
        (small_models.add(TensorProto.BOOL), "tensor(bool)"),
    ],
    ids=["truncated", "unknown", "types"],
)
def test_what_does_not_run(check, model, words):
    status, said = check(model)
    assert status == 1 and not said["runs"] and words in said["error"] and words in said["text"]
