"""Sessions in a real page: sharing, threads, asyncio, scripts, and the rest of onnxruntime's API."""

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import numpy as np
import pytest
import small_models
from devtools import chromium_with_devtools
from text_form import parse

import py_ort
from py_ort import BrowserOptions, InferenceSession, OrtValue, RunOptions, SessionOptions
from py_ort.browser.http_server import HttpServer
from py_ort.exceptions import InvalidArgument, PyOrtError

X, SCALE = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 10, 100], np.float32)
FEEDS = {"x": X, "scale": SCALE}
PROVIDERS = ["webgpu", "wasm"]


def test_sessions_share_a_page(new_session, provider):
    one, two = (new_session(small_models.add(), providers=[provider]) for _ in range(2))
    assert one._opened.runtime.lease is two._opened.runtime.lease
    for session in (one, two, one):
        np.testing.assert_array_equal(session.run(["y"], FEEDS)[0], X + SCALE)
    one.close()
    np.testing.assert_array_equal(two.run(None, FEEDS)[0], X + SCALE)


def test_threads_may_share_a_session(new_session, provider):
    session = new_session(small_models.add(), providers=[provider])

    def work(number: int) -> None:
        for step in range(10):
            x = np.full((number + 1, 3), number * 100 + step, np.float32)
            np.testing.assert_array_equal(session.run(None, {"x": x, "scale": SCALE})[0], x + SCALE)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4), timeout=60))


def test_inside_a_running_loop(new_session):
    async def main() -> None:
        session = new_session(small_models.add(), providers=["wasm"])
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
        results = await asyncio.gather(*(session.run_async(None, {**FEEDS, "x": X + i}) for i in range(5)))
        for i, (y,) in enumerate(results):
            np.testing.assert_array_equal(y, X + i + SCALE)

    asyncio.run(main())


def test_run_async_with_a_callback(new_session):
    session, told = new_session(small_models.add(), providers=["wasm"]), Queue()
    session.run_async(None, FEEDS, lambda *answer: told.put(answer), "mine")
    outputs, user_data, error = told.get(timeout=30)
    np.testing.assert_array_equal(outputs[0], X + SCALE)
    assert user_data == "mine" and error == ""


@pytest.mark.parametrize("shape", [(1, 3), (0, 3), (700_000, 3)], ids=str)
def test_sizes(new_session, provider, shape):
    """From no elements to messages of several frames."""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    (y,) = new_session(small_models.add(), providers=[provider]).run(None, {"x": x, "scale": SCALE})
    assert y.dtype == np.float32 and y.flags.writeable
    np.testing.assert_allclose(y, x + SCALE, rtol=1e-6)


def test_any_byte_but_0_is_true(new_session, provider):
    session = new_session(parse("g (bool[3] x) => (bool[3] y) { y = Not(x) }"), providers=[provider])
    (y,) = session.run(None, {"x": np.array([7, 0, 1], np.uint8).view(bool)})
    assert y.view(np.uint8).tolist() == [0, 1, 0]


def test_conditions_behind_the_end_of_an_axis(new_session, provider):
    """Native onnxruntime ignores them."""
    text = "g (float[3] x, bool[n] c) => (float[k] y) { y = Compress<axis=0>(x, c) }"
    session = new_session(parse(text), providers=[provider])
    (y,) = session.run(None, {"x": np.float32([1, 2, 3]), "c": np.array([True, False, True, True])})
    assert y.tolist() == [1, 3]


def test_operands_are_checked_whenever_their_sizes_change(new_session, provider):
    model = parse("g (float[n,c,4] x, float[k] s) => (float[n,c,4] y) { y = BatchNormalization(x, s, s, s, s) }", {})
    session = new_session(model, providers=[provider])
    for channels, scales in ((3, 3), (3, 3), (3, 2), (3, 3), (2, 2), (3, 2), (2, 3), (2, 2)):
        feeds = {"x": np.ones((1, channels, 4), np.float32), "s": np.ones(scales, np.float32)}
        if channels == scales:
            assert session.run(None, feeds)[0].shape == (1, channels, 4)
        else:
            with pytest.raises(PyOrtError, match=r"not that of Scale\[C\]"):
                session.run(None, feeds)


def test_more_rows_than_there_are_positions(new_session, provider):
    """Fused or not, a sum that does not broadcast is an error of the run; the session still works."""
    positions, scale = np.random.default_rng(0).standard_normal((1, 8, 4), np.float32), np.ones(4, np.float32)
    model = parse(
        "g (float[n,p,4] x) => (float[n,p,4] y) { h = Shape<start=1,end=2>(x)  "
        "t = Slice(positions, zero, h, one)  a = Add(x, t)  y = LayerNormalization(a, scale) }",
        {"positions": positions, "zero": np.array([0]), "one": np.array([1]), "scale": scale},
    )
    session = new_session(model, providers=[provider])
    for rows in (3, 16, 1, 8):
        x = np.arange(8 * rows, dtype=np.float32).reshape(2, rows, 4) ** 2
        if rows > 8:
            with pytest.raises(PyOrtError, match=r"Skip \[1, ?8, ?4\]"):
                session.run(None, {"x": x})
            continue
        total = x + positions[:, :rows]
        centered = total - total.mean(-1, keepdims=True)
        expected = centered / np.sqrt(np.square(centered).mean(-1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, atol=1e-4)


def test_feeds_that_numpy_understands(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    strided = np.ascontiguousarray(X.T).T
    for x in (strided, X.astype(">f4"), OrtValue.ortvalue_from_numpy(X)):
        np.testing.assert_array_equal(session.run(None, {"x": x, "scale": SCALE})[0], X + SCALE)


def test_io_binding(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    binding, target = session.io_binding(), OrtValue.ortvalue_from_shape_and_type((2, 3), np.float32)
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("scale", OrtValue.ortvalue_from_numpy(SCALE))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X + SCALE)
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target.numpy(), X + SCALE)
    (value,) = session.run_with_ort_values(None, {"x": OrtValue(X), "scale": OrtValue(SCALE)})
    assert value.shape() == [2, 3] and value.data_type() == "tensor(float)" and value.device_name() == "cpu"


TYPES = {"float32": 4, "int32": 4, "int64": 4, "uint8": 1, "bool": 4, "int8": 1, "uint64": 4, "bfloat16": 2}


@pytest.mark.parametrize("dtype", TYPES)
def test_values_on_the_gpu(dtype):
    array = (np.arange(7) % 5).astype(dtype)
    value = OrtValue.ortvalue_from_numpy(array, "webgpu")
    assert value.device_name() == "webgpu" and value.shape() == [7]
    assert value.tensor_size_in_bytes() == 7 * TYPES[dtype]
    got = value.numpy()
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)
    value.update_inplace(array[::-1].copy())
    np.testing.assert_array_equal(value.numpy(), array[::-1])
    value.release()
    with pytest.raises(PyOrtError, match="freed"):
        value.numpy()


def test_values_that_cannot_be_on_the_gpu():
    for array in (np.zeros(2), np.array(["a"]), np.array([2**40])):
        with pytest.raises(InvalidArgument, match="on webgpu"):
            OrtValue.ortvalue_from_numpy(array, "webgpu")


def test_a_chain_of_sessions_on_the_gpu(new_session):
    """The second session reads the first one's output in place; none of it is sent over the websocket."""
    one, two = (new_session(small_models.add(), providers=["webgpu"]) for _ in range(2))
    binding = one.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("scale", OrtValue.ortvalue_from_numpy(SCALE, "webgpu"))
    binding.bind_output("y", "webgpu")
    for _ in range(3):
        one.run_with_iobinding(binding)
    (between,) = binding.get_outputs()
    assert between.device_name() == "webgpu"
    target = OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32), "webgpu")
    second = two.io_binding()
    second.bind_ortvalue_input("x", between)
    second.bind_ortvalue_input("scale", OrtValue.ortvalue_from_numpy(SCALE, "webgpu"))
    second.bind_ortvalue_output("y", target)
    for _ in range(2):
        two.run_with_iobinding(second)
        assert two.stats()["last_run"]["counters"]["downloads"] == 0
    np.testing.assert_array_equal(target.numpy(), X + SCALE + SCALE)
    np.testing.assert_array_equal(between.numpy(), X + SCALE)
    second.bind_ortvalue_output("y", OrtValue.ortvalue_from_numpy(np.zeros((3, 2), np.float32), "webgpu"))
    with pytest.raises(InvalidArgument, match=r"float32\[3,2\]"):
        two.run_with_iobinding(second)
    with pytest.raises(InvalidArgument, match="'x'"):
        two.run(None, {"x": OrtValue.ortvalue_from_numpy(SCALE, "webgpu"), "scale": SCALE})


def test_a_value_of_another_page_goes_through_the_cpu(new_session):
    value = OrtValue.ortvalue_from_numpy(X, "webgpu")
    other = BrowserOptions(launcher="process", webgpu="software")
    session = new_session(small_models.add(), providers=["webgpu"], browser=other)
    np.testing.assert_array_equal(session.run(None, {"x": value, "scale": SCALE})[0], X + SCALE)


def test_initializers_may_be_replaced(new_session):
    options = SessionOptions()
    options.add_initializer("data", OrtValue(np.array([5, 6, 7, 8], np.float32)))
    session = new_session(small_models.gather(), options, providers=["wasm"])
    assert session.run(None, {"index": np.array([2])})[0].tolist() == [7]
    options.add_initializer("nope", OrtValue(SCALE))
    with pytest.raises(InvalidArgument, match="'nope'"):
        new_session(small_models.gather(), options)


def test_the_model_is_that_of_the_beginning(new_session, tmp_path, monkeypatch):
    """Other outputs need another plan, of the file that existed when the session was made."""
    for folder, op_type in (("a", "Neg"), ("b", "Abs")):
        (tmp_path / folder).mkdir()
        model = parse(f"g (float[1] x) => (float[1] y, float[1] z) {{ y = {op_type}(x)  z = Exp(x) }}")
        (tmp_path / folder / "model.onnx").write_bytes(model.SerializeToString())
    monkeypatch.chdir(tmp_path / "a")
    session, feeds = new_session("model.onnx"), {"x": np.ones(1, np.float32)}
    options = RunOptions()
    options.only_execute_path_to_fetches = True
    monkeypatch.chdir(tmp_path / "b")
    assert session.run(["y"], feeds, options)[0].tolist() == [-1]
    with pytest.raises(InvalidArgument):
        session.set_providers(["nonsense"])
    assert session.run(["z"], feeds, options)[0].tolist() == pytest.approx([np.e])


def test_what_a_session_says(new_session):
    session = new_session(small_models.add(), providers=["webgpu", "wasm"])
    assert [str(arg) for arg in session.get_inputs()] == [
        "NodeArg(name='x', type='tensor(float)', shape=['N', 3])",
        "NodeArg(name='scale', type='tensor(float)', shape=[3])",
    ]
    assert session.get_outputs()[0].shape == ["N", 3]
    assert session.get_modelmeta().graph_name == "small"
    assert session.get_providers() == ["WebGpuExecutionProvider", "CPUExecutionProvider"]
    assert "1 nodes on webgpu" in str(session.placement())
    assert "hromium" in repr(session) and "swiftshader" in session.adapter
    session.run(None, FEEDS)
    stats = session.stats()
    assert stats["create_ms"] > 0 and stats["first_run_ms"] > 0 and stats["page"]["heap_bytes"] > 0
    assert stats["browser_ms"] >= 0
    html = session._repr_html_()
    assert "swiftshader" in html and "creation" in html and "first run" in html and ">Add<" in html
    session.close()
    assert "closed" in session._repr_html_()


def test_progress_of_a_first_run(new_session):
    """Its errors are warnings: the run goes on."""
    stages: list[tuple[str, int, int]] = []

    def progress(*report) -> None:
        stages.append(report)
        if report[0] == "compiling shaders":
            raise ValueError("no more")

    # An operator that no other test here has: the page compiles each shader once.
    model = parse("g (float[n] x) => (float[n] y) { y = Acosh(x) }")
    session = new_session(model, providers=["webgpu"], progress=progress)
    assert {stage for stage, _, _ in stages} >= {"reading the model", "starting the browser", "compiling the model"}
    np.testing.assert_allclose(session.run(None, {"x": np.float32([1, 2])})[0], np.arccosh([1, 2]), rtol=1e-5)
    assert [(done, total) for stage, done, total in stages if stage == "compiling shaders"][-1] == (1, 1)


def test_the_process_launcher(new_session):
    browser = BrowserOptions(launcher="process", webgpu="software")
    session = new_session(small_models.add(), providers=["webgpu"], browser=browser)
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
    assert session._opened.runtime.lease.launcher.name == "process"


def test_cdp(new_session, tmp_path):
    """A session in a browser that py_ort did not start, and that stays open after it."""
    with chromium_with_devtools(tmp_path) as (websocket, process):
        browser = BrowserOptions(browser=f"cdp:http://{websocket.split('/')[2]}", idle_timeout=0)
        session = new_session(small_models.add(), providers=["webgpu"], browser=browser)
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
        session.close()
        assert process.poll() is None


SCRIPT = """
    import json, sys, time
    began = time.perf_counter()
    import py_ort
    imported = time.perf_counter() - began
    heavy = [name for name in ("onnx", "numpy", "playwright") if name in sys.modules]
    import numpy as np
    session = py_ort.InferenceSession(sys.argv[1], providers=["wasm"])
    (y,) = session.run(None, {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)})
    print(json.dumps({"y": y.tolist(), "imported": imported, "heavy": heavy}))
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "add.onnx").write_bytes(small_models.add())
    return tmp_path / "add.onnx"


def test_a_plain_script_ends_by_itself(model):
    """Nothing keeps Python alive, nothing is printed at its end, and `import py_ort` is cheap."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(model)]
    trusted = {**os.environ, "PY_ORT_SANDBOX": "0"}  # otherwise root gets a warning
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=trusted)
    said = json.loads(done.stdout)
    assert said["y"] == [[2, 2, 2]] and said["heavy"] == [] and said["imported"] < 0.2
    assert done.stderr == ""


def test_installed_as_onnxruntime(model):
    before = sys.modules.get("onnxruntime")
    with py_ort.install_as_onnxruntime(["wasm"]) as installed:
        import onnxruntime as ort
        from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

        assert ort is installed.module
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = ort.InferenceSession(str(model), options, providers=["CUDAExecutionProvider"])
        assert isinstance(session, InferenceSession) and installed.sessions == [session]
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
        with pytest.raises(InvalidArgument):
            session.run(None, {})
        session.close()
    assert sys.modules.get("onnxruntime") is before


@pytest.mark.parametrize("most", [-1, 1 << 18], ids=["fetched", "sent"])
def test_plans_are_sent_or_fetched(monkeypatch, most):
    """Plans of a few bytes come with the request."""
    published = []
    publish = HttpServer.publish
    monkeypatch.setattr(HttpServer, "publish", lambda *given: published.append(given[1]) or publish(*given))
    monkeypatch.setattr("py_ort.browser.loading.SENT", most)
    with InferenceSession(small_models.add(), providers=["wasm"]) as session:
        np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
    assert len(published) == (2 if most < 0 else 1)  # the weights, and before them the plan


def test_a_session_is_not_pickled(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    for work in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot pickle 'InferenceSession' object"):
            work(session)
    copy.copy(session)
    np.testing.assert_array_equal(session.run(None, FEEDS)[0], X + SCALE)
