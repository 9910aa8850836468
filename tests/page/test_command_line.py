"""The command `py-ort`, as a user types it."""

import json
import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
import small_models
from onnx import TensorProto, helper

from py_ort.browser import find

GPU, WASM = ("--provider", "webgpu", "--webgpu", "software"), ("--provider", "wasm")


def py_ort(*arguments, status=0):
    command = [sys.executable, "-m", "py_ort.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_run(add_file, tmp_path):
    """In a separate process, like the first error below: the others run in this one, with its browsers."""
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    options = ("--input", f"x={tmp_path / 'x.npy'}", "--random", "--json", "-", "--output-dir", tmp_path / "out")
    done = py_ort("run", add_file, *options, *WASM)
    said = json.loads(done.stdout)
    assert said["nodes"] == {"wasm": 1} and said["providers"] == ["CPUExecutionProvider"]
    assert said["outputs"][0]["shape"] == [2, 3] and said["create_ms"] > 0 and said["browser_ms"] >= 0
    assert np.load(said["outputs"][0]["file"]).shape == (2, 3)
    assert "reading the model" in done.stderr


def test_run_prints_a_table(py_ort_command, add_file):
    status, out, _ = py_ort_command("run", add_file, "--random", *GPU, "--launcher", "process")
    assert status == 0 and "1 on webgpu" in out and "float32" in out and "swiftshader" in out
    assert "first run " in out and "last run" not in out
    _, out, _ = py_ort_command("run", add_file, *WASM, "--runs", 2)
    assert "first run " in out and "last run " in out


def test_placement(py_ort_command, py_ort_json, add_file):
    status, said, _ = py_ort_json("placement", add_file, *GPU)
    (node,) = said["nodes"]
    assert status == 0 and node["op_type"] == "Add" and node["provider"] == "webgpu"
    assert "1 nodes on webgpu" in py_ort_command("placement", add_file, *GPU)[1]


def test_browsers(py_ort_json):
    status, found, _ = py_ort_json("browsers", "--webgpu", "software", "--browser", "chromium")
    assert status == 0
    assert [each["name"] for each in found] == ["chromium"], "no other one is started"
    assert "hromium" in found[0]["version"] and "swiftshader" in found[0]["adapter"]
    assert found[0]["cross_origin_isolated"]


def test_each_browser_is_listed_once(py_ort_command, py_ort_json, tmp_path, monkeypatch):
    """Under one name, whatever commands start it."""
    for command, version in (("firefox", "Fox 1.2"), ("firefox-esr", "Fox 1.2"), ("firefox-nightly", "Fox 3.4")):
        (tmp_path / command).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    status, listed, _ = py_ort_json("browsers", "--no-probe")
    found = [each for each in listed if each["version"].startswith("Fox")]
    assert status == 0 and {each["name"] for each in found} == {"firefox"}
    assert [each["version"] for each in found] == ["Fox 1.2", "Fox 3.4"]
    assert found[0]["also"] == [str(tmp_path / "firefox-esr")]
    missing = re.search(r"^not found: (.*); py-ort browsers", py_ort_command("browsers", "--no-probe")[1], re.MULTILINE)
    assert missing is None or "firefox" not in missing[1]
    monkeypatch.setattr(find, "installed", lambda family: [tmp_path / "firefox"] if family == "firefox" else [])
    assert "not found: chromium, webkit, qtwebengine; " in py_ort_command("browsers", "--no-probe")[1]
    _, found, _ = py_ort_json("browsers", "--no-probe", "--browser", tmp_path / "firefox")
    assert [each["version"] for each in found] == ["Fox 1.2"]


def test_help_of_browsers_names_them_all(py_ort_command):
    assert all(name in py_ort_command("run", "--help")[1] for name in ("chromium", "firefox", "webkit"))


def test_an_error_is_one_message_and_status_1():
    done = py_ort("run", "/no/such.onnx", status=1)
    assert "Traceback" not in done.stderr and "NoSuchFile" in done.stderr and "/no/such.onnx" in done.stderr


#: A function registered before the command's own is called after it.
AT_EXIT = """
import atexit, gc, sys
from py_ort.cli import main

atexit.register(lambda: print(gc.get_freeze_count() > 0))
sys.argv = ["py-ort", "--version"]
main()
"""


def test_no_garbage_is_looked_for_at_the_end():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("run", __file__), ["InvalidProtobuf"]),
        (("browsers", "--browser", "/no/such/browser"), ["BrowserNotFound", "/no/such/browser"]),
    ],
    ids=["no model", "no browser"],
)
def test_errors_are_one_message_and_status_1(py_ort_command, arguments, words):
    status, _, err = py_ort_command(*arguments)
    assert status == 1 and "Traceback" not in err
    assert all(word in err for word in words)


@pytest.mark.parametrize("command", ["bench", "profile"])
@pytest.mark.parametrize("threads", ["-1", "257", "99999999999999999999"])
def test_numbers_of_threads_are_refused_at_once(py_ort_command, command, threads):
    status, _, err = py_ort_command(command, "--threads", threads, "model.onnx")
    assert status == 2 and "--threads" in err and "range" in err


def test_inputs_without_a_file_are_random(py_ort_command, add_file):
    """As in all other commands; --random is accepted as before."""
    for more in ((), ("--random",)):
        status, out, err = py_ort_command("run", add_file, *WASM, "--webgpu", "software", *more)
        assert status == 0 and "x: random float32 [1, 3]" in err and "float32" in out


def test_where_it_did_not_run(py_ort_command, py_ort_json, add_file):
    """Without WebGPU there is no run on it; as one of two it is skipped, and the result says so."""
    status, out, err = py_ort_command("run", add_file, "--random", "--provider", "webgpu", "--webgpu", "off")
    assert status == 1 and "NoAdapter" in err and not out
    status, said, _ = py_ort_json("run", add_file, "--random", "--webgpu", "off")
    assert status == 0 and said["nodes"] == {"wasm": 1} and not said["adapter"]
    assert said["providers"] == ["CPUExecutionProvider"]
    assert "What helps" in said["left_out"]["webgpu"]


@pytest.mark.parametrize("command", ["placement", "profile"])
def test_reports_of_where_it_did_not_run(py_ort_command, py_ort_json, add_file, tmp_path, command):
    options = ("--runs", 1, "--html", tmp_path / "page.html") if command == "profile" else ()
    status, out, _ = py_ort_command(command, add_file, "--webgpu", "off", *options)
    assert status == 0 and "webgpu is left out: " in out and "What helps" in out
    _, said, _ = py_ort_json(command, add_file, "--webgpu", "off", *options[:2])
    assert "What helps" in said["left_out"]["webgpu"]
    if options:
        assert "WebGPU has no adapter" in (tmp_path / "page.html").read_text()


@pytest.fixture
def plans(tmp_path, monkeypatch):
    """A cache of this test."""
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))


def test_cache(py_ort_command, py_ort_json, add_file, tmp_path, plans, monkeypatch):
    assert py_ort_command("run", add_file, "--random", *WASM)[0] == 0
    status, said, _ = py_ort_json("cache")
    assert status == 0 and said["folder"].startswith(str(tmp_path)) and [p["model"] for p in said["plans"]] == ["small"]
    assert "1 plans" in py_ort_command("cache")[1]
    assert "1 plans removed" in py_ort_command("cache", "--clear")[1]
    assert py_ort_json("cache")[1]["plans"] == []
    monkeypatch.setenv("PY_ORT_CACHE", "0")
    status, _, err = py_ort_command("cache")
    assert status == 1 and "PY_ORT_CACHE=0" in err


def test_placement_gives_the_page_no_model(py_ort_command, add_file, monkeypatch):
    """No shader is compiled, and no weight is sent."""
    from py_ort.runtime.page_runtime import PageRuntime

    def load(*arguments, **options):
        raise AssertionError("a model was loaded into the page")

    monkeypatch.setattr(PageRuntime, "load", load)
    status, out, said = py_ort_command("placement", add_file, *GPU)
    assert status == 0 and "1 nodes on webgpu" in out, said


def test_the_cache_says_what_it_holds_and_removes_parts(
    py_ort_command, py_ort_json, add_file, tmp_path, plans, monkeypatch
):
    monkeypatch.setenv("PY_ORT_CACHE_MB", "77")
    other = tmp_path / "other.onnx"
    other.write_bytes(small_models.gather())
    for file, option in ((add_file, ()), (add_file, ("--dim", "N=4")), (other, ())):
        assert py_ort_command("run", file, "--random", *WASM, *option)[0] == 0
    held = py_ort_json("cache")[1]["plans"]
    found = sorted(((p["file"], p["inputs"].get("x")) for p in held), key=str)
    assert found == [(str(add_file), ["N", 3]), (str(add_file), [4, 3]), (str(other), None)]
    assert all(p["bytes"] > 0 and p["providers"] == ["wasm"] for p in held)
    _, out, _ = py_ort_command("cache")
    assert all(words in out.replace("\n", "") for words in ("4×3", "N×3", "just now", "of at most 81 MB", "wasm"))
    status, _, err = py_ort_command("cache", "--remove", str(add_file) + "x")
    assert status == 2 and "did you mean" in err
    (key,) = (p["key"] for p in held if p["file"] == str(other))
    assert "1 plans removed" in py_ort_command("cache", "--remove", key[:12])[1]
    assert "2 plans removed" in py_ort_command("cache", "--remove", add_file)[1]
    assert py_ort_json("cache")[1]["plans"] == []


KERNEL = """
import numpy as np
import py_ort

double = py_ort.UserKernel(
    name="test.cli::Double",
    expression="x * 2.0",
    reference=lambda x: x * {factor},
    example={{"x": np.ones(4, np.float32)}},
)
"""


@pytest.mark.parametrize(
    "text, webgpu, status, said",
    [
        (KERNEL.format(factor=2), "software", 0, "test.cli::Double"),
        (KERNEL.format(factor=3), "software", 1, "error 3.3e-01"),
        (KERNEL.format(factor=2), "off", 1, "What helps"),
        ("import py_ort\n", "software", 1, "no kernel"),
        ("1 / 0\n", "software", 1, "ZeroDivisionError"),
    ],
    ids=["right", "wrong", "no webgpu", "none", "broken"],
)
def test_kernel(py_ort_command, tmp_path, text, webgpu, status, said):
    (tmp_path / "mine.py").write_text(text)
    found, out, err = py_ort_command("kernel", tmp_path / "mine.py", "--once", "--runs", 1, "--webgpu", webgpu)
    assert found == status and said in out + err


def test_run_of_what_gives_sequences_of_maps_and_strings(py_ort_command, py_ort_json, tmp_path):
    """Like scikit-learn's classifiers: their type, their length, and a readable file."""
    maps, texts = onnx.TypeProto(), helper.make_tensor_value_info("name", TensorProto.STRING, [3])
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    maps.sequence_type.elem_type.map_type.key_type = TensorProto.INT64
    maps.sequence_type.elem_type.map_type.value_type.CopyFrom(number)
    constant = helper.make_tensor("c", TensorProto.STRING, [3], ["a", "é", ""])
    nodes = [
        helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[5, 7]),
        helper.make_node("Constant", [], ["name"], value=constant),
    ]
    ends = [small_models.floats("x", [1, 2])], [onnx.ValueInfoProto(name="y", type=maps), texts]
    (tmp_path / "m.onnx").write_bytes(small_models.model(nodes, *ends, domains=["ai.onnx.ml"]))
    np.save(tmp_path / "x.npy", np.array([[0.25, 0.75]], np.float32))
    arguments = ("run", tmp_path / "m.onnx", *WASM, "--input", f"x={tmp_path / 'x.npy'}")
    status, out, said = py_ort_command(*arguments, "--output-dir", tmp_path / "out")
    assert status == 0 and "seq(map(int64,tensor(float)))" in out, said
    assert json.loads((tmp_path / "out/y.json").read_text()) == [{"5": 0.25, "7": 0.75}]
    assert np.load(tmp_path / "out/name.npy").tolist() == ["a", "é", ""]
    assert [output["shape"] for output in py_ort_json(*arguments)[1]["outputs"]] == [[1], [3]]


def test_run_in_each_browser_on_each_provider(py_ort_command, py_ort_json, add_file, tmp_path):
    """A missing one is a row that says so; outputs of the others are compared, and written side by side."""
    where = ("--browser", "chromium", "--browser", "/no/browser", "--provider", "webgpu", "--provider", "wasm")
    arguments = ("run", add_file, "--random", "--webgpu", "software", *where)
    status, told, said = py_ort_json(*arguments, "--output-dir", tmp_path / "out")
    runs = told["runs"]
    assert status == 1 and "BrowserNotFound" in said and "outputs" not in told
    wanted = [(browser, provider) for browser in ("chromium", "/no/browser") for provider in ("webgpu", "wasm")]
    assert [(run["browser"], run["provider"]) for run in runs] == wanted
    assert runs[1]["max_rel_err"] == 0 and runs[1]["reference"] == "chromium webgpu" and runs[0]["reference"] == ""
    assert runs[0]["nodes"]["webgpu"] and runs[1]["nodes"]["wasm"] and "BrowserNotFound" in runs[2]["error"]
    assert {file.parent.name for file in (tmp_path / "out").rglob("*.npy")} == {"chromium-webgpu", "chromium-wasm"}
    status, out, _ = py_ort_command(*arguments)
    assert "chromium webgpu" in out and "0.0e+00" in out
    status, alone, _ = py_ort_json("run", add_file, "--random", *WASM)
    assert status == 0 and alone["outputs"] == alone["runs"][0]["outputs"] and alone["runs"][0]["provider"] == "wasm"
