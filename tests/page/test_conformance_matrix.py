"""`py-ort conformance` in several browsers, on several providers, from several sources."""

import json
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import onnx
import pytest
from relu_cases import X, right_and_wrong, write
from text_form import parse

from py_ort.testing.sources import load_cases

BOTH = ("--provider", "webgpu", "--provider", "wasm", "--webgpu", "software")
WASM = ("--provider", "wasm")


@pytest.fixture
def cases(tmp_path):
    return right_and_wrong(tmp_path / "cases")


@pytest.fixture
def conformance(py_ort_command, tmp_path):
    """Return the command's status, its JSON and its output."""

    def run(*arguments):
        file = tmp_path / "results.json"
        status, out, err = py_ort_command("conformance", *arguments, "--json", file)
        return status, json.loads(file.read_text()) if file.exists() else {}, out + err

    return run


def test_each_browser_and_provider_is_a_run(cases, conformance):
    """Only one of these browsers exists: the others continue."""
    status, results, said = conformance(cases, "--browser", "chromium", "--browser", "/no/browser", *BOTH)
    runs = results["runs"]
    wanted = [(browser, provider) for browser in ("chromium", "/no/browser") for provider in ("webgpu", "wasm")]
    assert [(run["browser"], run["provider"]) for run in runs] == wanted
    assert {run["engine"] for run in runs} == {"py_ort"}
    assert status == 1 and "/no/browser webgpu, /no/browser wasm: BrowserNotFound" in said  # each failure once
    assert "chromium webgpu, chromium wasm: wrong failed: wrong output" in said
    for run in runs[:2]:
        assert run["browser_version"][:1].isdigit() and not run["error"]
        assert (run["passed"], run["failed"], run["skipped"]) == (1, 1, 0)
        assert run["cases"]["right"]["status"] == "passed" and "wrong output" in run["cases"]["wrong"]["reason"]
    assert "swiftshader" in runs[0]["adapter"]
    assert runs[0]["cases"]["right"]["providers"] == {"webgpu": 1, "wasm": 0}
    for run in runs[2:]:
        assert "BrowserNotFound" in run["error"] and (run["passed"], run["failed"]) == (0, 2)
    assert "cases" not in results


def test_a_single_run_has_the_fields_of_its_own(cases, conformance):
    _, results, _ = conformance(cases, *WASM)
    (run,) = results["runs"]
    assert results["providers"] == ["wasm"] and "hromium" in results["browser"]
    assert results["cases"] == run["cases"] and (results["passed"], results["failed"]) == (1, 1)


def test_without_the_provider_in_one_run_the_others_go_on(cases, conformance):
    status, results, said = conformance(cases, *BOTH[:-1], "off", "--filter", "right")
    webgpu, wasm = results["runs"]
    assert status == 1 and "NoAdapter" in webgpu["error"] and "What helps" in said and wasm["passed"] == 1
    status, results, _ = conformance(cases, *BOTH[:-1], "off", "--filter", "right", "--skip-missing")
    assert status == 0 and [run["skipped"] for run in results["runs"]] == [1, 0]


def test_a_failure_has_the_command_that_repeats_it(cases, tmp_path, conformance, py_ort_command):
    """A model and its feeds, if they are files; the case, if not."""
    _, results, _ = conformance(cases, *WASM, "--webgpu", "software")
    assert results["cases"]["right"]["commands"] == []
    (command,) = results["cases"]["wrong"]["commands"]
    files = cases / "wrong/model.onnx", f"x={cases / 'wrong/test_data_set_0/input_0.pb'}"
    flags = ["--provider", "wasm", "--webgpu", "software"]
    assert shlex.split(command) == ["py-ort", "compare", str(files[0]), "--input", files[1], *flags]
    status, said, _ = py_ort_command(*shlex.split(command)[1:])
    assert status == 0 and "1 values on wasm against onnxruntime: 0 differ" in said  # wrong is only the expectation
    table = tmp_path / "table.py"
    model = str(cases / "right/model.onnx")
    table.write_text(
        "import numpy as np, py_ort\n"
        f"CASES = [py_ort.testing.model_case({model!r}, 'a (b)', {{'x': np.ones(2, 'f')}}, {{'y': np.zeros(2, 'f')}})]"
    )
    _, results, _ = conformance(table, cases, *WASM)
    (command,) = results["runs"][0]["cases"]["a (b)"]["commands"]
    status, said, err = py_ort_command(*shlex.split(command)[1:])
    assert status == 1 and "a (b) failed: wrong output" in err and "0 passed, 1 failed" in said


def test_sources_together(cases, tmp_path, conformance):
    write(tmp_path / "more/right", np.maximum(X, 0))
    write(tmp_path / "more/other", np.maximum(X, 0))
    status, results, _ = conformance(cases, tmp_path / "more", *WASM, "--filter", "right|other")
    names = {f"{cases}/right", f"{tmp_path}/more/right", "other"}
    assert status == 0 and results["cases"].keys() == names


def test_what_cannot_be_read_is_a_case_that_fails(cases, conformance):
    (cases / "wrong/model.onnx").write_bytes(b"no model")
    (cases / "right/test_data_set_0/input_0.pb").write_bytes(b"\xff")
    write(cases / "good", np.maximum(X, 0))
    status, results, said = conformance(cases, *WASM)
    assert status == 1 and (results["passed"], results["failed"]) == (1, 2)
    assert "InvalidProtobuf" in results["cases"]["wrong"]["reason"] and "DecodeError" in said


def test_a_table_in_toml(cases, tmp_path, conformance):
    np.save(tmp_path / "x.npy", -X)
    np.save(tmp_path / "y.npy", np.maximum(-X, 0))
    (tmp_path / "table.toml").write_text(
        '[[case]]\nmodel = "cases/right/model.onnx"\n'  # random inputs, native outputs
        '[[case]]\nid = "files"\nmodel = "cases/right/model.onnx"\n'
        'inputs = { x = "x.npy" }\noutputs = { y = "y.npy" }\nrtol = 0\natol = 0\n'
        '[[case]]\nid = "not so"\nmodel = "cases/right/model.onnx"\noutputs = { y = "y.npy" }\n'
        '[[case]]\nid = "gone"\nmodel = "gone.onnx"\n'
        '[[case]]\nid = "typo"\nmodel = "cases/right/model.onnx"\ninputs = { z = "x.npy" }\n'
        '[[case]]\nid = "later"\nmodel = "gone.onnx"\nskip = "not made yet"\n'
    )
    status, results, _ = conformance(tmp_path / "table.toml", *WASM)
    got = {name: (case["status"], case["reason"]) for name, case in results["cases"].items()}
    assert status == 1 and got["model"] == got["files"] == ("passed", "")
    assert got["later"] == ("skipped", "not made yet")
    for name, why in (("not so", "wrong output: y"), ("gone", "NoSuchFile"), ("typo", "no input 'z'")):
        assert got[name][0] == "failed" and why in got[name][1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[cases]]\nmodel='m'", "[[case]]"),
        ("[[case]]\nid='m'", "names no model"),
        ("[[case]]\nmodel='m'\ninput={}", "did you mean 'inputs'?"),
        ("[[case]]\nmodel=3", "another type"),
        ("[[case", "table.toml"),
    ],
)
def test_tables_that_are_none(tmp_path, conformance, text, said):
    (tmp_path / "table.toml").write_text(text)
    status, results, printed = conformance(tmp_path / "table.toml", *WASM)
    assert status == 1 and said in printed and not results


def test_a_table_in_python(cases, tmp_path, conformance):
    (tmp_path / "table.py").write_text(
        "from pathlib import Path\nimport numpy as np\nfrom py_ort.testing import Case, DataSet, Tolerance\n"
        "model = Path(__file__).parent / 'cases/right/model.onnx'\n"
        "x = np.array([3, -3], np.float32)\n"
        "CASES = [Case('mine', model, [DataSet({'x': x}, [np.maximum(x, 0)])], {'': Tolerance()})]\n"
    )
    assert conformance(tmp_path / "table.py", *WASM)[1]["cases"]["mine"]["status"] == "passed"
    (tmp_path / "table.py").write_text("CASES = ['mine']")
    status, _, said = conformance(tmp_path / "table.py", *WASM)
    assert status == 1 and "py_ort.testing.Case, not str" in said
    (tmp_path / "table.py").write_text("1 / 0")
    assert "ZeroDivisionError" in conformance(tmp_path / "table.py", *WASM)[2]


def test_what_changed(cases, tmp_path, conformance):
    _, before, _ = conformance(cases, *WASM)
    run = before["runs"][0]
    for name, status, reason in (("right", "failed", "wrong output: y"), ("wrong", "passed", "")):
        run["cases"][name] |= {"status": status, "reason": reason}
    run["cases"]["gone"] = run["cases"]["right"]
    run["browser_version"] = "1.2"
    (tmp_path / "old.json").write_text(json.dumps(before))
    write(cases / "new", np.maximum(X, 0))
    html = tmp_path / "page.html"
    _, results, said = conformance(cases, *BOTH, "--against", tmp_path / "old.json", "--html", html)
    changes = {(change["where"], change["case"]): change["what"] for change in results["changes"]}
    assert "has another version" in changes.pop(("chromium wasm", ""))
    assert changes == {
        ("chromium webgpu", ""): "was not run then",
        ("chromium wasm", "right"): "now passes",
        ("chromium wasm", "wrong"): "now fails",
        ("chromium wasm", "gone"): "is gone",
        ("chromium wasm", "new"): "is new",
    }
    assert "1 now fails, 1 is gone, 1 is new, 1 now passes" in said and "What changed" in html.read_text()
    (tmp_path / "old.json").write_text(json.dumps(results))
    assert "no case has another result" in conformance(cases, *BOTH, "--against", tmp_path / "old.json")[2]
    for text in ("{}", "[]", "no JSON", '{"runs": [{}]}', '{"runs": [1]}'):
        (tmp_path / "old.json").write_text(text)
        status, _, said = conformance(cases, *WASM, "--against", tmp_path / "old.json")
        assert status == 1 and "no results of" in said, text


def test_junit(cases, tmp_path, conformance):
    write(cases / "known", X)
    (tmp_path / "known.toml").write_text('[known_failures]\nknown = "planted"\n')
    file = tmp_path / "junit.xml"
    browsers = ("--browser", "chromium", "--browser", "/no/\x0bbrowser")
    status, _, _ = conformance(cases, *browsers, *WASM, "--expectations", tmp_path / "known.toml", "--junit", file)
    chromium, none = ET.parse(file).getroot().findall("testsuite")
    found = {case.get("name"): [child.tag for child in case] for case in chromium.findall("testcase")}
    assert status == 1 and found == {"right": [], "wrong": ["failure"], "known": ["skipped"]}
    assert "wrong output" in (chromium.find("testcase/failure").text or "")
    assert (chromium.get("tests"), chromium.get("failures"), chromium.get("skipped")) == ("3", "1", "1")
    assert none.get("errors") == "3" and none.find("testcase/error") is not None
    properties = {item.get("name"): item.get("value") for item in chromium.findall("properties/property")}
    assert properties["browser"] == "chromium" and properties["browser_version"] and properties["provider"] == "wasm"


def test_a_model_with_its_data_elsewhere_is_run_from_its_file(tmp_path, conformance):
    """So that its size does not matter: it is never assembled in memory."""
    write(tmp_path / "external", X + 1)
    file = tmp_path / "external/model.onnx"
    model = parse("g (float[2] x) => (float[2] y) { y = Add(x, one) }", {"one": np.ones(2, np.float32)})
    onnx.save(model, file, save_as_external_data=True, size_threshold=0)
    (case,) = load_cases(str(tmp_path))
    assert case.model == file
    assert conformance(tmp_path, *WASM)[0] == 0


def test_a_sample(conformance):
    cases = {case.id for case in load_cases("onnx-node", "^test_relu|^test_abs|^test_a")}
    status, results, _ = conformance("onnx-node", *WASM, "--filter", "^test_a", "--sample", 40)
    assert status == 0 and 0 < len(results["cases"]) < len(cases) / 20 and results["cases"].keys() < cases


def test_models_in_use(conformance):
    """The models of `make matrix` all have a row."""
    table = Path(__file__).parents[2] / "samples/models.py"
    status, results, said = conformance(table, *WASM, "--jobs", 1)
    assert status == 0 and len(results["cases"]) == results["passed"] == 3, said
