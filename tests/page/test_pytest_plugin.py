"""The pytest plugin, in a pytest of its own."""

import json
import re
import shlex
import sys

import numpy as np
import pytest
import small_models
from _pytest.pytester import SysModulesSnapshot
from npm_packages import peer_dist
from onnx import TensorProto
from shared_browser import BROWSER
from text_form import parse

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

    from py_ort import GraphOptimizationLevel, SessionOptions
    from py_ort.exceptions import InvalidArgument, NotImplemented

    def test_same(assert_matches_reference):
        session = assert_matches_reference("add.onnx", {"x": np.full((4, 3), 2, np.float32)})
        assert session.get_outputs()[0].name == "y"

    def test_random_feeds(assert_matches_reference):
        assert_matches_reference("add.onnx", tolerance=0)

    def test_differs(assert_matches_reference):
        assert_matches_reference("random.onnx", {"x": np.zeros(8, np.float32)})

    def test_own_session(assert_matches_reference):
        options = SessionOptions()
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        feeds = {"x": np.zeros(8, np.float32)}
        assert_matches_reference("random.onnx", feeds, sess_options=options, providers=["wasm"])

    def test_no_reference(assert_matches_reference):
        with pytest.raises(NotImplemented, match="no reference to compare with: onnxruntime .* refuses"):
            assert_matches_reference("reshape.onnx", {"x": np.zeros(4, np.float32)})

    def test_wrong_feeds(assert_matches_reference):
        with pytest.raises(InvalidArgument, match="no input 'z'.*: it has 'x': tensor.float.*, 'scale': "):
            assert_matches_reference("add.onnx", {"z": np.zeros(3, np.float32)})
        with pytest.raises(InvalidArgument, match="input 'x' is tensor.float. of shape .*; got tensor.double.: "):
            assert_matches_reference("add.onnx", {"x": np.zeros((4, 3))})
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(test_models=MODULE)
    write(pytester, add=small_models.add())
    return pytester


@pytest.fixture
def doubles(pytester):
    pytester.makepyfile(test_doubles=DOUBLES)
    shape = parse("g (float[N,3] x) => (int64[2] y) { y = Shape(x) }").SerializeToString()
    write(pytester, doubles=small_models.add(TensorProto.DOUBLE), shape=shape)
    return pytester


def write(project, **models: bytes) -> None:
    for name, model in models.items():
        (project.path / f"{name}.onnx").write_bytes(model)


@pytest.fixture(autouse=True)
def modules_stay(monkeypatch):
    """Keep the modules that a run imports, but for its tests: a second import would make their classes again.

    Test modules of this process are hidden meanwhile: a run may have one of the same name.
    """
    for name in [name for name in sys.modules if name.startswith("test_")]:
        monkeypatch.delitem(sys.modules, name)

    def snapshot(pytester):
        return SysModulesSnapshot(lambda name: not name.startswith("test_"))

    monkeypatch.setattr(pytest.Pytester, "_Pytester__take_sys_modules_snapshot", snapshot)


def run(project, *flags, lines=(), process=False, **outcomes):
    """Run tests; check the numbers of their outcomes, and lines of the output.

    Their browsers are those of this process. `process` starts another one, for runs in which each warning counts.
    """
    # Importing unneeded plugins takes a third of a second.
    alone = [f"-pno:{plugin}" for plugin in ("cacheprovider", "hypothesispytest", "playwright", "xdist")]
    result = (project.runpytest_subprocess if process else project.runpytest_inprocess)(*alone, "-v", *flags)
    if outcomes:
        result.assert_outcomes(**outcomes)
    result.stdout.fnmatch_lines(lines)
    return result


def test_both_providers(project, page_errors):
    lines = ["*test_add?chromium-webgpu? PASSED*", "*test_add?chromium-wasm? PASSED*", "*out of memory*"]
    run(project, "--ort-webgpu", "software", passed=6, failed=2, errors=1, lines=lines)
    page_errors.clear()


def test_one_provider(project):
    run(project, "--ort-provider", "wasm", "-k", "add", passed=1, deselected=4)


def test_no_such_browser(project):
    lines = ["*BrowserNotFound*/no/such/browser*"]
    run(project, "--ort-browser", "/no/such/browser", "-k", "add and wasm", failed=1, deselected=7, lines=lines)


def test_without_webgpu_nothing_passes_as_webgpu(project):
    lines = ["*test_add?chromium-webgpu? FAILED*", "*NoAdapter: *What helps: *"]
    run(project, "--ort-webgpu", "off", "-k", "add", passed=1, failed=1, deselected=6, lines=lines)


def test_the_variable_decides_without_the_option(project, monkeypatch):
    monkeypatch.setenv("PY_ORT_WEBGPU", "off")
    run(project, "-k", "add and webgpu", failed=1, deselected=7)
    run(project, "-k", "add and webgpu", "--ort-webgpu", "software", passed=1, deselected=7)


def test_without_webgpu_tests_are_skipped_if_asked(project):
    lines = ["*test_add?chromium-webgpu? SKIPPED*", "SKIPPED*WebGPU*What helps: *"]
    flags = ("--ort-webgpu", "off", "--ort-skip-missing", "-rs", "-k", "add or wrong")
    run(project, *flags, passed=2, failed=1, skipped=3, deselected=2, lines=lines)


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
    flags = ("test_gpu.py", "--ort-provider", "webgpu", "-rs", "--durations=0", "-vv")
    result = run(project, *flags, skipped=3, lines=["SKIPPED*a GPU was asked for*"])
    took = [float(each) for each in re.findall(r"([\d.]+)s call .*test_fast", str(result.stdout))]
    assert len(took) == 3 and sorted(took)[1] < max(took) / 4, took


def test_a_provider_that_is_named_in_the_test_is_not_left_out_either(doubles):
    flags = ("--ort-provider", "wasm", "-k", "own_choice or named")
    run(doubles, *flags, passed=1, failed=1, deselected=3, lines=["*NoAdapter: *webnn: *"])


def test_nodes_that_fall_back_are_told(doubles):
    lines = [
        "*test_plain?chromium-webgpu? PASSED*",
        "*test_marked?chromium-webgpu? FAILED*",
        "*NotImplemented: *1 nodes do not run on webgpu*float64*",
        "*FallbackWarning: 1 of 1 nodes do not run on webgpu (Add on wasm: webgpu: no kernel for float64*",
        "*FallbackWarning: 1 of 1 nodes do not run on webgpu (Shape on wasm: shape arithmetic)",
    ]
    flags = ("--ort-provider", "webgpu", "--ort-webgpu", "software", "-k", "plain or marked or shape")
    run(doubles, *flags, process=True, passed=2, failed=1, deselected=2, warnings=2, lines=lines)


def test_webgl(project):
    flags = ("--ort-provider", "webgl", "--ort-no-fallback", "-k", "add")
    run(project, *flags, passed=1, deselected=4, lines=["*test_add?chromium-webgl? PASSED*"])


def test_no_fallback_for_all(doubles):
    flags = ("--ort-webgpu", "software", "--ort-no-fallback", "-k", "plain or own_choice")
    run(doubles, *flags, passed=3, failed=1, deselected=6)  # on wasm no node falls back


def test_outputs_are_compared_with_native_onnxruntime(pytester, py_ort_command):
    pytester.makepyfile(test_reference=REFERENCE)
    # One of 8 may be close by chance.
    random = parse("g (float[8] x) => (float[8] y) { y = RandomUniformLike(x) }").SerializeToString()
    reshape = parse("g (float[N] x) => (y) { shape = Constant<value_ints=[5]>()  y = Reshape(x, shape) }")
    write(pytester, add=small_models.add(), random=random, reshape=reshape.SerializeToString())
    lines = [
        "*on chromium-wasm outputs differ from native onnxruntime's:*",
        "*output 'y': ? of 8 elements differ, first at ???: got *, wanted * (worst: * of the largest)*",
        "*the first value that differs is 'y' of RandomUniformLike '': ? of 8 elements differ*",
    ]
    result = run(pytester, "--ort-provider", "wasm", "-k", "not own", passed=4, failed=1, deselected=1, lines=lines)
    (command,) = re.findall(r"E +all values: py-ort (.*)", str(result.stdout))
    status, said, _ = py_ort_command(*shlex.split(command))
    assert status == 1 and "first: 'y' of RandomUniformLike" in said
    lines = ["*on chromium-wasm outputs differ *", "*all values: * --provider wasm*  # without sess_options="]
    run(pytester, "--ort-provider", "webgpu", "-k", "own", failed=1, deselected=5, lines=lines)


def test_the_engine_that_others_ship(project, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHES))  # it is fetched there once
    peer_dist()
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
    text = "g (float[rows,8] x) => (y) { product = MatMul(x, w)  y = Softmax(product) }"
    model = parse(text, {"w": np.cos(x)}).SerializeToString()
    write(project, exact=model)
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
    lines = ["SKIPPED*onnxruntime-web is not among --ort-engine (py_ort)"]
    run(*alone, "-k", "not exact", "-rs", process=True, passed=2, skipped=1, deselected=2, lines=lines)
    engines = ("--ort-engine", "py_ort", "--ort-engine", "onnxruntime-web", "--ort-provider", "wasm")
    lines = ["*test_theirs?chromium-wasm-onnxruntime-web? PASSED*"]
    result = run(*alone, *engines, process=True, passed=3, failed=2, lines=lines)
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
    outputs = ", ".join(f"float[64] y{number}" for number in range(20))
    nodes = "  ".join(f"y{number} = RandomUniformLike(x)" for number in range(20))
    write(project, many=parse(f"g (float[64] x) => ({outputs}) {{ {nodes} }}").SerializeToString())
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
