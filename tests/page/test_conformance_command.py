"""`py-ort conformance` on a folder: reasons for a failure, and the files that it writes."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from relu_cases import X, right_and_wrong, write

from py_ort.testing.results import expectations_of

WEBGPU = ("--provider", "webgpu", "--webgpu", "software")
WITHOUT = ("--provider", "webgpu", "--webgpu", "off")
WASM = ("--provider", "wasm")


@pytest.fixture
def cases(tmp_path):
    return right_and_wrong(tmp_path / "cases")


@pytest.fixture
def conformance(py_ort_command):
    """Return the command's status and output."""

    def run(*arguments):
        status, out, err = py_ort_command("conformance", *arguments)
        return status, out + err

    return run


def expectations(tmp_path, *names):
    file = tmp_path / "known.toml"
    file.write_text("[known_failures]\n" + "".join(f'{name} = "planted"\n' for name in names))
    return "--expectations", file


@pytest.mark.parametrize("provider", [WEBGPU, WASM], ids=["webgpu", "wasm"])
def test_a_wrong_case_fails_the_run(cases, conformance, provider):
    status, said = conformance(cases, *provider)
    assert status == 1 and "1 passed, 1 failed" in said and "wrong output" in said
    assert conformance(cases, *provider, "--filter", "^right$")[0] == 0


def test_expectations_are_to_be_right(cases, conformance, tmp_path):
    assert conformance(cases, *WASM, *expectations(tmp_path, "wrong"))[0] == 0
    for names, words in (
        (("wrong", "right"), "right passed, but is listed as a known failure: planted"),
        ((), "wrong failed: wrong output: y"),
        (("wrong", "gone"), "gone is listed"),
    ):
        status, said = conformance(cases, *WASM, *expectations(tmp_path, *names))
        assert status == 1 and words in said, names
    # A filter skips expectations as it skips cases.
    assert conformance(cases, *WASM, *expectations(tmp_path, "wrong", "gone"), "--filter", "r")[0] == 0


def test_without_webgpu_nothing_passes_as_webgpu(cases, conformance, tmp_path):
    status, said = conformance(cases, *WITHOUT)
    assert status == 1 and "NoAdapter" in said and "What helps" in said and "passed" not in said
    # It does not fail as expected, either.
    status, said = conformance(cases, *WITHOUT, *expectations(tmp_path, "wrong"), "--filter", "wrong")
    assert status == 1 and "NoAdapter" in said
    status, said = conformance(cases, "--provider", "webnn")
    assert status == 1 and "NoAdapter" in said and "WebNN" in said and "passed" not in said


def test_without_webgpu_cases_are_skipped_if_asked(cases, conformance, tmp_path):
    file = tmp_path / "results.json"
    status, said = conformance(cases, *WITHOUT, "--skip-missing", "--json", file)
    results = json.loads(file.read_text())
    assert status == 0 and "0 passed, 0 failed, 2 skipped" in said and "WebGPU" in said
    assert results["providers"] == ["webgpu"] and results["browser"] == results["adapter"] == ""
    assert all("What helps" in case["reason"] for case in results["cases"].values()) and len(results["cases"]) == 2


def test_results_say_where_they_are_from(cases, conformance, tmp_path):
    status, _ = conformance(cases, *WEBGPU, "--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    results, page = json.loads((tmp_path / "a.json").read_text()), (tmp_path / "a.html").read_text()
    assert status == 1 and "swiftshader" in results["adapter"] and "hromium" in results["browser"]
    assert results["cases"]["right"]["providers"] == {"webgpu": 1, "wasm": 0}
    assert "swiftshader" in page


def test_fallback_may_be_a_failure(tmp_path, conformance):
    doubles = X.astype(np.float64)  # have no form on the GPU
    write(tmp_path / "double", np.maximum(doubles, 0), doubles)
    assert conformance(tmp_path, *WEBGPU)[0] == 0
    status, said = conformance(tmp_path, *WEBGPU, "--no-fallback")
    assert status == 1 and "NotImplemented" in said


def test_shape_arithmetic_is_no_test_of_a_gpu(tmp_path, conformance):
    write(tmp_path / "shape", np.array([2], np.int64), operator="Shape")
    assert conformance(tmp_path, *WEBGPU)[0] == 0
    status, said = conformance(tmp_path, *WEBGPU, "--no-fallback", "--json", "-")
    assert status == 1 and "no node runs on webgpu: " in said and "shape arithmetic" in said


def test_nothing_to_run_is_an_error(cases, conformance):
    for pattern, said in (("nothing", "InvalidArgument: no case to run"), ("(", "no regular expression")):
        status, printed = conformance(cases, *WASM, "--filter", pattern)
        assert status != 0 and said in printed
    (cases / "right/test_data_set_0/input_0.pb").parent.rename(cases / "elsewhere")
    (cases / "right/test_data_set_0").mkdir()
    assert conformance(cases, *WASM, "--filter", "right")[0] == 1  # no data, so no comparison


def test_models_of_one_folder_are_cases_of_their_own(tmp_path, conformance):
    write(tmp_path / "wrong", X, model="a")
    write(tmp_path / "wrong", X, model="b")
    status, _ = conformance(tmp_path, *WASM, "--json", tmp_path / "a.json")
    assert status == 1 and json.loads((tmp_path / "a.json").read_text())["cases"].keys() == {"wrong/a", "wrong/b"}
    conformance(tmp_path / "wrong", *WASM, "--json", tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text())["cases"].keys() == {"wrong/a", "wrong/b"}


def test_the_terminal_names_cases_and_prints_no_empty_table(cases, conformance):
    _, said = conformance(cases, *WASM)
    table = said[said.index("reason") : said.index("1 passed")]
    assert "wrong output" in table and table.rstrip().endswith("wrong")
    status, said = conformance(cases, *WASM, "--filter", "right")
    assert status == 0 and "1 passed, 0 failed, 0 skipped" in said and "reason" not in said


def test_our_own_expectations_are_the_default(conformance):
    """For cases that are known to fail, expected or not."""
    known = expectations_of("onnx-node", "wasm")
    name = next(name for name in known if name.endswith("_bf16"))
    status, said = conformance("onnx-node", *WASM, "--filter", f"^({name}|test_relu)$", "--jobs", 1)
    assert status == 0 and "1 passed, 1 failed" in said and "(known)" in said
    assert expectations_of("onnx-node", "webgpu", fallback=False) and expectations_of("ort-web:x", "wasm")
    assert not expectations_of("onnx-node/folder", "wasm") and not expectations_of("ort-web", "wasm")


def test_sizes_and_files(tmp_path, conformance):
    """Feeds of the command take the place of the cases' own inputs."""
    write(tmp_path / "cases/one", np.maximum(X, 0))
    np.save(tmp_path / "x.npy", -X)
    status, said = conformance(tmp_path / "cases", *WASM, "--input", f"x={tmp_path / 'x.npy'}")
    assert status == 1 and "one failed: wrong output" in said
    status, said = conformance(tmp_path / "cases", *WASM, "--shape", "y=2")
    assert status == 2 and "no input 'y'" in said


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_it(tmp_path, jobs):
    """With several processes, too, whatever they are doing."""
    for number in range(300):
        write(tmp_path / f"{number}", np.maximum(X, 0))
    command = [sys.executable, "-m", "py_ort.cli", "conformance", str(tmp_path), "--provider", "wasm"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, "--jobs", str(jobs)], stderr=pipe, stdout=pipe, text=True) as process:
        assert process.stderr is not None
        said = [next(line for line in process.stderr if "running" in line)]
        process.send_signal(signal.SIGINT)
        said += process.stderr.readlines()
        assert process.wait(60) == 130, said
    assert "Traceback" not in "".join(said) and "KeyboardInterrupt" not in "".join(said)
