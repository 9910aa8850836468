"""The pytest plugin, in a separate pytest."""

import json
import re
import shlex

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper, numpy_helper
from shared_browser import BROWSER

from py_ort.bench.peer import find_dist
from py_ort.exceptions import EngineError
from py_ort.folders import user_caches
from py_ort.testing.compare import InBrowser, Native, compare

#: pytester gives each test a separate home.
CACHES = user_caches()

MODULE = """
    import logging

    import numpy as np
    import pytest

    FEEDS = {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}

    def test_add(ort_session, ort_target):
        session = ort_session("add.onnx")
        assert session.run(None, FEEDS)[0].tolist() == [[2, 2, 2]]
        assert session.placement().counts()[ort_target.provider] == 1

    @pytest.mark.parametrize("scale", [1, 2])
    def test_wrong(ort_session, scale):
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[scale + 1] * 3]

    def test_page_error(ort_page_errors):
        logging.getLogger("py_ort.page").error("out of memory")

    def test_neither():
        pass
"""


#: Doubles have no form on the GPU.
DOUBLES = """
    import numpy as np
    import pytest

    FEEDS = {"x": np.ones((1, 3), np.float64), "scale": np.ones(3, np.float64)}

    def test_plain(ort_session):
        assert ort_session("doubles.onnx").run(None, FEEDS)[0].tolist() == [[2, 2, 2]]

    @pytest.mark.ort_no_fallback
    def test_marked(ort_session):
        ort_session("doubles.onnx")

    def test_shape_arithmetic(ort_session):
        ort_session("shape.onnx")

    def test_own_choice(ort_session):
        from py_ort import SessionOptions

        options = SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "0")
        options.add_session_config_entry("session.require_providers", "0")
        session = ort_session("doubles.onnx", options, providers=["webnn", "wasm"])
        assert list(session.placement().left_out) == ["webnn"]

    def test_named_here(ort_session):
        ort_session("doubles.onnx", providers=["webnn", "wasm"])
"""


REFERENCE = """
    import numpy as np
    import pytest

    from py_ort.exceptions import NotImplemented

    def test_same(assert_matches_reference):
        session = assert_matches_reference("add.onnx", {"x": np.full((4, 3), 2, np.float32)})
        assert session.get_outputs()[0].name == "y"

    def test_random_feeds(assert_matches_reference):
        assert_matches_reference("add.onnx", tolerance=0)

    def test_differs(assert_matches_reference):
        assert_matches_reference("random.onnx", {"x": np.zeros(8, np.float32)})

    def test_no_reference(assert_matches_reference):
        with pytest.raises(NotImplemented, match="no reference to compare with: onnxruntime .* refuses"):
            assert_matches_reference("add.onnx", {"z": np.zeros(3, np.float32)})
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(test_models=MODULE)
    (pytester.path / "add.onnx").write_bytes(small_models.add())
    return pytester


@pytest.fixture
def doubles(pytester):
    pytester.makepyfile(test_doubles=DOUBLES)
    (pytester.path / "doubles.onnx").write_bytes(small_models.add(TensorProto.DOUBLE))
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    shape = small_models.model([helper.make_node("Shape", ["x"], ["y"])], [small_models.floats("x", ["N", 3])], [y])
    (pytester.path / "shape.onnx").write_bytes(shape)
    return pytester


def run(project, *flags):
    # Importing unneeded plugins takes a third of a second.
    alone = [f"-pno:{plugin}" for plugin in ("cacheprovider", "hypothesispytest", "playwright", "xdist")]
    return project.runpytest_subprocess(*alone, "-v", *flags)


def test_both_providers(project):
    result = run(project, "--ort-webgpu", "software")
    result.assert_outcomes(passed=6, failed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*test_add?chromium-webgpu? PASSED*", "*test_add?chromium-wasm? PASSED*", "*out of memory*"]
    )


def test_one_provider(project):
    result = run(project, "--ort-provider", "wasm", "-k", "add")
    result.assert_outcomes(passed=1, deselected=4)


def test_no_such_browser(project):
    result = run(project, "--ort-browser", "/no/such/browser", "-k", "add and wasm")
    result.assert_outcomes(failed=1, deselected=7)
    result.stdout.fnmatch_lines(["*BrowserNotFound*/no/such/browser*"])


def test_without_webgpu_nothing_passes_as_webgpu(project):
    result = run(project, "--ort-webgpu", "off", "-k", "add")
    result.assert_outcomes(passed=1, failed=1, deselected=6)
    result.stdout.fnmatch_lines(["*test_add?chromium-webgpu? FAILED*", "*NoAdapter: *What helps: *"])


def test_the_variable_decides_without_the_option(project, monkeypatch):
    monkeypatch.setenv("PY_ORT_WEBGPU", "off")
    run(project, "-k", "add and webgpu").assert_outcomes(failed=1, deselected=7)
    run(project, "-k", "add and webgpu", "--ort-webgpu", "software").assert_outcomes(passed=1, deselected=7)


def test_without_webgpu_tests_are_skipped_if_asked(project):
    result = run(project, "--ort-webgpu", "off", "--ort-skip-missing", "-rs", "-k", "add or wrong")
    result.assert_outcomes(passed=2, failed=1, skipped=3, deselected=2)
    result.stdout.fnmatch_lines(["*test_add?chromium-webgpu? SKIPPED*", "SKIPPED*WebGPU*What helps: *"])


def test_that_there_is_no_gpu_is_asked_once(project):
    """The search for a GPU tries several times; later tests are skipped without it."""
    project.makepyfile(
        test_gpu="""
    import pytest

    @pytest.mark.ort(webgpu="hardware")
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_fast(ort_session, number):
        ort_session("add.onnx")
    """
    )
    result = run(project, "test_gpu.py", "--ort-provider", "webgpu", "-rs", "--durations=0", "-vv")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["SKIPPED*a GPU was asked for*"])
    took = [float(each) for each in re.findall(r"([\d.]+)s call .*test_fast", str(result.stdout))]
    assert len(took) == 3 and sorted(took)[1] < max(took) / 4, took


def test_a_provider_that_is_named_in_the_test_is_not_left_out_either(doubles):
    result = run(doubles, "--ort-provider", "wasm", "-k", "own_choice or named")
    result.assert_outcomes(passed=1, failed=1, deselected=3)
    result.stdout.fnmatch_lines(["*NoAdapter: *webnn: *"])


def test_nodes_that_fall_back_are_told(doubles):
    result = run(doubles, "--ort-provider", "webgpu", "--ort-webgpu", "software", "-k", "plain or marked or shape")
    result.assert_outcomes(passed=2, failed=1, deselected=2, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "*test_plain?chromium-webgpu? PASSED*",
            "*test_marked?chromium-webgpu? FAILED*",
            "*NotImplemented: *1 nodes do not run on webgpu*float64*",
            "*FallbackWarning: 1 of 1 nodes do not run on webgpu (Add on wasm: webgpu: no kernel for float64*",
            "*FallbackWarning: 1 of 1 nodes do not run on webgpu (Shape on wasm: shape arithmetic)",
        ]
    )


def test_webgl(project):
    result = run(project, "--ort-provider", "webgl", "--ort-no-fallback", "-k", "add")
    result.assert_outcomes(passed=1, deselected=4)
    result.stdout.fnmatch_lines(["*test_add?chromium-webgl? PASSED*"])


def test_no_fallback_for_all(doubles):
    result = run(doubles, "--ort-webgpu", "software", "--ort-no-fallback", "-k", "plain or own_choice")
    result.assert_outcomes(passed=3, failed=1, deselected=6)  # on wasm no node falls back


def test_outputs_are_compared_with_native_onnxruntime(pytester, py_ort_command):
    pytester.makepyfile(test_reference=REFERENCE)
    (pytester.path / "add.onnx").write_bytes(small_models.add())
    drawn = helper.make_node("RandomUniformLike", ["x"], ["y"])  # one of 8 may be close by chance
    ends = [small_models.floats("x", [8])], [small_models.floats("y", [8])]
    (pytester.path / "random.onnx").write_bytes(small_models.model([drawn], *ends))
    result = run(pytester, "--ort-provider", "wasm")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*on chromium-wasm outputs differ from native onnxruntime's:*",
            "*output 'y': ? of 8 elements differ, first at ???: got *, wanted * (worst: * of the largest)*",
            "*the first value that differs is 'y' of RandomUniformLike '': ? of 8 elements differ*",
        ]
    )
    (command,) = re.findall(r"E +all values: py-ort (.*)", str(result.stdout))
    status, said, _ = py_ort_command(*shlex.split(command))
    assert status == 1 and "first: 'y' of RandomUniformLike" in said


def test_the_engine_that_others_ship(project, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHES))  # it is fetched there once
    try:
        find_dist()
    except EngineError as e:
        pytest.skip(str(e))
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Softmax", ["product"], ["y"])]
    ends = [small_models.floats("x", ["rows", 8])], [small_models.floats("y", None)]
    model = small_models.model(nodes, *ends, [numpy_helper.from_array(np.cos(x), "w")])
    (project.path / "exact.onnx").write_bytes(model)
    np.save(project.path / "x.npy", x)
    project.makepyfile(
        test_peer="""
    import numpy as np
    import pytest

    from py_ort import SessionOptions

    FEEDS = {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}

    def test_both(ort_session):
        ours, theirs = ort_session("add.onnx"), ort_session("add.onnx", engine="onnxruntime-web")
        assert ours.run(None, FEEDS)[0].tolist() == theirs.run(None, FEEDS)[0].tolist()
        assert theirs.get_providers() == ours.get_providers()[:1]

    @pytest.mark.ort(engine="onnxruntime-web")
    def test_theirs(ort_session, ort_target):
        assert ort_target.engine in repr(ort_session("add.onnx"))

    def test_as_exact(assert_matches_reference):
        options = SessionOptions()
        options.add_free_dimension_override_by_name("rows", 8)
        assert_matches_reference("exact.onnx", {"x": np.load("x.npy")}, sess_options=options, tolerance=0)
    """
    )
    alone = (project, "test_peer.py", "--ort-webgpu", "software", "-W", "error")
    result = run(*alone, "-k", "not exact", "-rs")
    result.assert_outcomes(passed=2, skipped=1, deselected=2)
    result.stdout.fnmatch_lines(["SKIPPED*onnxruntime-web is not among --ort-engine (py_ort)"])
    engines = ("--ort-engine", "py_ort", "--ort-engine", "onnxruntime-web", "--ort-provider", "wasm")
    result = run(*alone, *engines)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*test_theirs?chromium-wasm-onnxruntime-web? PASSED*"])
    differs = r"on chromium-wasm-onnxruntime-web outputs differ.*\n.*\n.*(the first value that .*)"
    (told,) = set(re.findall(f"Failed: {differs}", str(result.stdout)))  # in CI, the summary repeats it
    peer = InBrowser("wasm", "onnxruntime-web", {"browser": BROWSER})
    assert told.endswith(str(compare(model, {"x": x}, peer, Native(), tolerance=0).first))


FAILING = """
    import pytest

    def test_missing(ort_session):
        ort_session("nowhere.onnx")

    def test_feed(ort_session):
        session = ort_session("add.onnx")
        session.run(None, {"z": [1.0]})

    @pytest.mark.parametrize("number", [1, 2])
    def test_differs(assert_matches_reference, number):
        assert_matches_reference("many.onnx")

    @pytest.mark.parametrize("number", [1, 2])
    def test_fine(ort_session, number):
        ort_session("add.onnx")
"""


@pytest.fixture
def failing(project):
    """Tests that fail in all possible ways; `many.onnx` has twenty outputs, all of them random."""
    project.makepyfile(test_failing=FAILING)
    names = [f"y{number}" for number in range(20)]
    nodes = [helper.make_node("RandomUniformLike", ["x"], [name], name=f"draw {name}") for name in names]
    ends = [small_models.floats("x", [64])], [small_models.floats(name, [64]) for name in names]
    (project.path / "many.onnx").write_bytes(small_models.model(nodes, *ends))
    return project


def test_a_failure_is_told_in_25_lines(failing):
    """The test's line, the error or the difference, the first differing node; without py_ort's own frames."""
    options = ("test_failing.py", "--ort-provider", "wasm", "-k", "not fine", "--show-capture=no")
    text = str(run(failing, *options).stdout)
    told = dict(re.findall(r"\n_+ (test_\w+)\S* _+\n(.*?)(?=\n_+ test_|\n=+ short)", text, re.DOTALL))
    assert told.keys() == {"test_missing", "test_feed", "test_differs"}
    for name, words in {
        "test_missing": ('ort_session("nowhere.onnx")', "no model at"),
        "test_feed": ('session.run(None, {"z"', "the model has no input 'z'"),
        "test_differs": ('reference("many.onnx")', "15 more outputs", "the first value that differs is 'y0'"),
    }.items():
        assert all(each in told[name] for each in words), told[name]
        assert len(told[name].splitlines()) <= 25 and "py_ort/" not in told[name], told[name]
    assert "runtime/session_creation.py" in str(run(failing, *options, "-k", "missing", "--full-trace").stdout)


@pytest.mark.parametrize("spread", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_page_of_a_run(failing, spread):
    """Tests are rows, targets columns, with reasons, adapters and nodes; the controller writes it, not each worker."""
    command = ("-pno:cacheprovider", "-pno:hypothesispytest", "-pno:playwright", "--ort-webgpu", "software", *spread)
    targets = ("-k", "missing or fine", "--ort-html", "build/run.html")
    failing.runpytest_subprocess(*command, *targets, "test_failing.py").assert_outcomes(passed=4, failed=2)
    html = (failing.path / "build/run.html").read_text(encoding="utf-8")
    data = json.loads(html.partition('id="data">')[2].partition("</script>")[0])
    assert sorted(data["runs"]) == ["chromium wasm", "chromium webgpu"]
    cases = {name: cells for name, _, cells in data["cases"]}
    assert list(cases) == [f"test_failing.py::{name}" for name in ("test_fine[1]", "test_fine[2]", "test_missing")]
    column = data["runs"].index("chromium webgpu")
    assert [cells[column][0] for cells in cases.values()] == ["p", "p", "f"]
    assert "no model at" in data["reasons"][cases["test_failing.py::test_missing"][column][1]]
    assert cases["test_failing.py::test_fine[1]"][column][3:] == ["1 webgpu", []] and "swiftshader" in html
    (command,) = cases["test_failing.py::test_missing"][column][4]
    program, *again = shlex.split(command)
    result = failing.runpytest_subprocess("-pno:cacheprovider", *again)
    assert program == "pytest" and "--ort-webgpu=software" in again
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no model at*"])
