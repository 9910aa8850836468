"""Models with user kernels in the tools for testers: the reference is the function of each kernel."""

import json
import re
import shlex
from pathlib import Path

import pytest
import user_kernel as sample

pytestmark = pytest.mark.usefixtures("kernels_as_before")
KERNELS = ("--kernels", sample.__file__)
WEBGPU = ("--provider", "webgpu", "--webgpu", "software")


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(sample.model())
    return file


@pytest.fixture
def wrong(tmp_path):
    """The sample's kernels, of which one does not compute what its reference does."""
    file = tmp_path / "wrong.py"
    text = Path(sample.__file__).read_text("utf-8")
    file.write_text(text.replace('expression="x * sigmoid(beta * x)"', 'expression="x * sigmoid(x)"'), "utf-8")
    return "--kernels", file


def test_compare(model, wrong, py_ort_command):
    status, out, said = py_ort_command("compare", model, *KERNELS, *WEBGPU)
    assert status == 0, said
    assert "3 values on webgpu against onnxruntime: 0 differ" in out
    status, out, _ = py_ort_command("compare", model, *wrong, *WEBGPU)
    assert status == 1 and "first: 'b' of Swoosh 'swoosh': " in out


@pytest.mark.parametrize("jobs", [1, 2])
def test_conformance(model, wrong, jobs, py_ort_command, tmp_path):
    table = tmp_path / "table.toml"
    count = 1 if jobs == 1 else 21  # more cases than one process gets at a time
    table.write_text("".join(f'[[case]]\nmodel = "model.onnx"\nid = "case{i}"\n' for i in range(count)))
    status, out, said = py_ort_command("conformance", table, *KERNELS, *WEBGPU, "--jobs", jobs)
    assert status == 0 and " passed, 0 failed" in out, said
    if jobs == 1:
        status, out, said = py_ort_command("conformance", table, *wrong, *WEBGPU, "--jobs", jobs)
        assert status == 1 and "wrong output: y" in out + said


def test_export_and_check(model, wrong, py_ort_command, tmp_path):
    for kernels, outcome in ((KERNELS, "same"), (wrong, "differs")):
        options = ("-o", tmp_path, "--check", "--browser", "chromium", "--json", "-")
        status, out, said = py_ort_command("export", model, *kernels, *options)
        assert status == (outcome == "differs"), said
        told, found = json.loads(out), json.loads((tmp_path / "model.check.json").read_text())
        assert told["check"] == found and told["files"][0]["path"] == str(tmp_path / "model.pyort")
        assert found["reference"].startswith("onnxruntime ")
        assert [(row["provider"], row["outcome"]) for row in found["rows"]] == [("webgpu", outcome)]


def test_assert_matches_reference(model, wrong, pytester, py_ort_command):
    (pytester.path / "model.onnx").write_bytes(model.read_bytes())
    pytester.makepyfile(
        test_kernels=f"""
        from dataclasses import replace
        from pathlib import Path

        from py_ort import register_kernel
        from py_ort.user_kernels import load_kernels

        KERNELS = {{kernel.op_type: kernel for kernel in load_kernels(Path({sample.__file__!r}))}}

        def test_same(assert_matches_reference):
            assert_matches_reference("model.onnx")

        def test_differs(assert_matches_reference):
            register_kernel(replace(KERNELS["Swoosh"], expression="x * sigmoid(x)"))
            assert_matches_reference("model.onnx")

        def test_file_differs(assert_matches_reference):
            load_kernels({str(wrong[1])!r})
            assert_matches_reference("model.onnx")
        """
    )
    alone = [f"-pno:{plugin}" for plugin in ("cacheprovider", "hypothesispytest", "playwright", "xdist")]
    result = pytester.runpytest_subprocess(*alone, "--ort-provider", "webgpu", "--ort-webgpu", "software")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*the first value that differs is 'b' of Swoosh 'swoosh': *"])
    of_replaced, of_file = re.findall(r"^E +all values: py-ort (.*)", str(result.stdout), re.MULTILINE)
    assert of_replaced.endswith("  # without --kernels FILE with sample::Swoosh")
    status, out, said = py_ort_command(*shlex.split(of_file))
    assert status == 1 and "first: 'b' of Swoosh 'swoosh': " in out, said
