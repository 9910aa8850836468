"""The command line and the rules of onnxruntime-web's test runner."""

import json
import os
from shutil import copytree

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from karma_compat.arguments import parse
from karma_compat.run import entries, main
from karma_compat.suite import groups, matches
from py_ort.exceptions import InvalidArgument

ADD = """[
  // two cases, one session
  {"name": "Add", "operator": "Add", "cases": [
    {"name": "first",
     "inputs": [{"data": [1, 2], "dims": [2], "type": "float32"}, {"data": [3], "dims": [1], "type": "float32"}],
     "outputs": [{"data": [4, 5], "dims": [2], "type": "float32"}]},
    {"name": "second",
     "inputs": [{"data": [1], "dims": [1], "type": "float32"}, {"data": [3], "dims": [1], "type": "float32"}],
     "outputs": [{"data": [4], "dims": [1], "type": "float32"}]},
  ]},
]"""


@pytest.fixture
def data(tmp_path):
    """A folder like js/web/test."""
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops/add.jsonc").write_text(ADD)
    (tmp_path / "ops/wrong.jsonc").write_text(ADD.replace("[4, 5]", "[4, 6]"))
    (tmp_path / "suite-test-list.jsonc").write_text(
        json.dumps(
            {
                "wasm": {"node": ["test_abs"], "ops": ["add.jsonc"], "onnx": []},
                "webgpu": {"node": ["opset{7}/test_add"], "ops": ["add.jsonc"], "onnx": ["resnet50"]},
            }
        )
    )
    return tmp_path


def test_defaults():
    found = parse([])
    assert (found.mode, found.backends, found.named, found.browser) == (
        "suite0",
        ("webgl", "webgpu", "wasm"),
        False,
        "chromium",
    )


def test_flags():
    line = "model some/folder -b=wasm,webgpu -e=firefox -P=3 -x=2 --webgl-pack -o=basic --chromium-flags=--a"
    with pytest.raises(SystemExit):
        parse(line.split())  # --webgl-pack was never a flag
    found = parse([*line.replace("--webgl-pack", "--webgl.pack").split(), "--webgpu-profiling-mode=default"])
    assert found.backends == ("wasm", "webgpu") and found.named
    assert found.browser == "firefox" and found.perf == 3 and found.profile
    assert found.env["wasm.numThreads"] == "2" and found.chromium_flags == ("--a",)
    assert "--webgl.pack=true" in found.without_effect
    found = parse(["op", "add", "-b=webnn,webgpu", "-i=ml-location", "--webnn-device-type=npu"])
    assert (found.bound("webnn"), found.bound("webgpu")) == ("gpu-location", "none")
    assert entries(found) == {"ep.webnnexecutionprovider.deviceType": "npu"}


@pytest.mark.parametrize(
    "line, said",
    [
        ("op", "parameter"),
        ("suite0 x", "no parameter"),
        ("everything", "no mode"),
        ("-b=cuda", "cuda"),
        ("-e=node", "no browser"),
        ("op add -P", "model"),
        ("--wasm.threads=2", "--wasm.threads"),
    ],
)
def test_wrong_lines(line, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(line.split())
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    "rule, folder, named",
    [
        ("test_abs", "opset9/test_abs", True),
        ("test_abs", "opset9/test_abs_2", False),
        ("opset{7,18}/test_abs", "opset18/test_abs", True),
        ("opset{7,18}/test_abs", "opset8/test_abs", False),
        ("!(opset14)/test_abs", "opset14/test_abs", False),
        ("!(opset14)/test_abs", "opset15/test_abs", True),
        ("opset7/test_abs", "opset7/test_abs", True),
    ],
)
def test_rules(rule, folder, named):
    assert matches(rule, folder) == named


def test_suite(data):
    arguments = parse(["suite1", "-b=wasm", f"--test-data={data}"])
    node, models, add, wrong = groups(arguments, "wasm", "Chromium on Linux")
    assert [case.id.partition("/")[2] for case in node.cases] == ["test_abs"] and not node.cases[0].skip
    assert not models.cases and not add.cases[0].skip and wrong.cases[0].skip
    node, models, *_ = groups(arguments, "webgpu", "Chromium on Linux")
    assert [name for name, _ in (*node.missing, *models.missing)] == ["opset{7}/test_add", "resnet50"]
    assert not node.cases and not models.cases


def test_a_rule_twice(data):
    (data / "suite-test-list.jsonc").write_text(json.dumps({"wasm": {"node": ["test_abs", "!(opset7)/test_abs"]}}))
    with pytest.raises(InvalidArgument, match="two rules"):
        groups(parse(["suite1", f"--test-data={data}"]), "wasm", "")


def status_of(monkeypatch, *line: str) -> int:
    monkeypatch.setattr("sys.argv", ["karma_compat", *line])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "name, flags, status",
    [
        ("add", ["-b=wasm"], 0),
        ("wrong", ["-b=wasm"], 1),
        ("add", ["-b=webgpu", "-i=gpu-tensor"], 0),
        ("add", ["-b=webgpu", "-i=gpu-location"], 0),
        ("wrong", ["-b=webgpu", "-i=gpu-tensor"], 1),
        ("add", ["-b=webgl"], 0),
        ("wrong", ["-b=webgl"], 1),
        ("none", ["-b=wasm"], 1),
    ],
)
def test_operator_files(data, monkeypatch, capsys, name, flags, status):
    assert status_of(monkeypatch, "op", name, *flags, f"--test-data={data}") == status
    printed = capsys.readouterr().out
    assert ("✔ 1 test completed" in printed) == (status == 0)


def test_suite_run(data, monkeypatch, capsys):
    assert status_of(monkeypatch, "suite1", "-b=wasm", f"--test-data={data}") == 0
    printed = capsys.readouterr().out
    assert "2 tests completed" in printed and "1 test skipped" in printed


def test_a_listed_test_that_does_not_exist_fails(data, monkeypatch, capsys):
    assert status_of(monkeypatch, "suite1", "-b=webgpu", f"--test-data={data}") == 1
    printed = capsys.readouterr().out
    assert "1 test completed" in printed and "2 tests failed" in printed
    told = printed.partition("FAILED TESTS:\n")[2].splitlines()
    assert told[0].startswith("  ") and not told[0].startswith("   ")  # the suite, and its tests below it
    assert (
        any(line.startswith("    ✖ ") and "opset{7}/test_add" in line for line in told) and "no such model" in printed
    )


@pytest.mark.parametrize("flags", [["-b=webgpu"], []], ids=["named", "by default"])
def test_a_backend_that_the_browser_has_not(data, monkeypatch, capsys, flags):
    monkeypatch.setenv("PY_ORT_WEBGPU", "off")
    assert status_of(monkeypatch, "op", "add", *flags, f"--test-data={data}") == 1
    printed = capsys.readouterr().out
    assert "WebGPU has no adapter" in printed and "1 test failed" in printed
    assert ("2 tests completed" in printed) == (not flags)  # wasm, WebGL


def test_performance_of_a_backend_that_the_browser_has_not(relu, monkeypatch, capsys):
    monkeypatch.setenv("PY_ORT_WEBGPU", "off")
    assert status_of(monkeypatch, "model", str(relu), "-b=webgpu", "-P=1") == 1
    printed = capsys.readouterr().out
    assert "NoAdapter" in printed and "P50" not in printed


def test_flags_that_do_less_than_they_say(data, monkeypatch, capsys):
    line = ["-b=wasm", "--log-verbose=webgpu,webgl", "-i=gpu-tensor", f"--test-data={data}"]
    assert status_of(monkeypatch, "op", "add", *line) == 0
    printed = capsys.readouterr().out
    assert "'webgpu,webgl' of --log-verbose has no effect" in printed and "no effect on wasm" in printed
    assert not parse(["--log-verbose"]).without_effect


def test_switches(data, monkeypatch, capsys):
    """Switches that sessions have are theirs; the others say nothing for values that ask for what happens anyway."""
    monkeypatch.setenv("PY_ORT_TRACE", "0")
    line = ["-b=wasm", "--trace", "--wasm.simd=fixed", "--wasm.proxy", f"--test-data={data}"]
    assert status_of(monkeypatch, "op", "add", *line) == 0
    assert "no effect" not in capsys.readouterr().out
    assert os.environ["PY_ORT_TRACE"] == "1"
    assert entries(parse(line)) == {"ep.cpuexecutionprovider.simd": "fixed"}
    said = parse(["--wasm.simd=false", "--wasm.proxy=false", "--wasm.initTimeout=5"]).without_effect
    assert said == {
        "--wasm.simd=false": "py_ort has no build without SIMD",
        "--wasm.proxy=false": "sessions of Python always run in a worker",
        "--wasm.initTimeout=5": "py_ort has no such switch",
    }


def test_models_of_one_name(relu, monkeypatch, capsys):
    """Each has its own result."""
    copytree(relu, relu.parent / "again/relu")
    (relu.parent / "again/relu/test_data_set_0/output_0.pb").write_bytes(
        numpy_helper.from_array(np.array([5, 5], np.float32)).SerializeToString()
    )
    monkeypatch.chdir(relu.parent)
    assert status_of(monkeypatch, "model", "**/relu", "-b=wasm") == 1
    printed = capsys.readouterr().out
    assert "1 test completed" in printed and "1 test failed" in printed and "again/relu" in printed


@pytest.fixture
def relu(tmp_path):
    """A folder with a model and its data."""
    folder = tmp_path / "relu/test_data_set_0"
    folder.mkdir(parents=True)
    x = np.array([-1, 2], np.float32)
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "relu",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    onnx.save(helper.make_model(graph, ir_version=10), tmp_path / "relu/model.onnx")
    for kind, array in (("input", x), ("output", np.maximum(x, 0))):
        (folder / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    return tmp_path / "relu"


def test_performance_of_a_model(relu, monkeypatch, capsys):
    assert status_of(monkeypatch, "model", str(relu), "-b=wasm") == 0
    assert status_of(monkeypatch, "model", str(relu), "-b=wasm", "-P=4") == 0
    printed = capsys.readouterr().out
    assert "P50:" in printed and printed.partition("Runs: ")[2].partition("\n")[0].count(",") == 3
