"""WebNN: sessions and ONNX's cases in a Chromium that has it (`make webnn` fetches one), and errors elsewhere."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import processes
import pytest
import small_models
from click.testing import CliRunner
from numpy.testing import assert_allclose
from onnx import TensorProto, helper, numpy_helper
from text_form import parse

import py_ort
from py_ort import BrowserOptions
from py_ort.cli import cli
from py_ort.exceptions import DeviceLost, InvalidArgument, NoAdapter, NotImplemented, PyOrtError

pytestmark = pytest.mark.browser
CHROMIUM = Path(__file__).parents[2] / "build/webnn/chromium"
RNG = np.random.default_rng(5)
needs_webnn = pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium with WebNN is there (make webnn)")


def weights(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def network() -> bytes:
    """Convolution, pool and product for WebNN; Det between them for the CPU."""
    made = {"w": weights(8, 3, 3, 3), "b": weights(8), "m": weights(8, 4)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("MatMul", ["f", "m"], ["y"], name="product"),
        helper.make_node("Det", ["r"], ["d"], name="det"),
        helper.make_node("Tanh", ["d"], ["z"], name="tanh"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 6, 6])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "yz"]
    constants = [numpy_helper.from_array(array, name) for name, array in made.items()]
    graph = helper.make_graph(nodes, "net", [x], outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


MODEL = network()
NATIVE = onnxruntime.InferenceSession(MODEL)


def check(got: list[np.ndarray], x: np.ndarray) -> None:
    for a, b in zip(got, NATIVE.run(None, {"x": x}), strict=True):
        assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def session() -> Iterator[py_ort.InferenceSession]:
    with py_ort.InferenceSession(MODEL, providers=["webnn"], browser=str(CHROMIUM)) as session:
        yield session


@needs_webnn
def test_graphs_of_any_shape(session: py_ort.InferenceSession) -> None:
    assert session.get_providers() == ["WebNNExecutionProvider", "CPUExecutionProvider"]
    assert {node.op_type: node.provider for node in session.placement().nodes}["Det"] == "wasm"
    for size in (1, 2, 1, 2):
        x = RNG.normal(size=(size, 3, 6, 6)).astype(np.float32)
        check(session.run(None, {"x": x}), x)


@needs_webnn
def test_values_stay_there(session: py_ort.InferenceSession) -> None:
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    binding = session.io_binding()
    value = session.create_ortvalue_from_shape_and_type(x.shape, np.float32, "webnn")
    for _ in range(3):
        x = x + 1
        value.update_inplace(x)
        binding.bind_ortvalue_input("x", value)
        binding.bind_output("y", "webnn")
        binding.bind_output("z")
        session.run_with_iobinding(binding)
        y, z = binding.get_outputs()
        assert (y.device_name(), z.device_name()) == ("webnn", "cpu")
        check([y.numpy(), z.numpy()], x)


@needs_webnn
def test_values_are_written_in_place() -> None:
    """Including a value that is fed, such as a cache, and an output that is an input."""
    feeds = [small_models.floats("x", [1, 3]), small_models.floats("w", [3])]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Identity", ["x"], ["z"])]
    model = small_models.model(nodes, feeds, [small_models.floats(name, [1, 3]) for name in "yz"])
    with py_ort.InferenceSession(model, providers=["webnn"], browser=str(CHROMIUM)) as session:
        x, y = (session.create_ortvalue_from_shape_and_type((1, 3), np.float32, "webnn") for _ in range(2))
        w = np.array([10, 20, 30], np.float32)
        binding = session.io_binding()
        binding.bind_cpu_input("w", w)
        for place in (y, y, x, x):
            x.update_inplace(np.ones((1, 3), np.float32))
            binding.bind_ortvalue_input("x", x)
            binding.bind_ortvalue_output("y", place)
            binding.bind_output("z", "webnn")
            for times in (1, 2):
                session.run_with_iobinding(binding)
                fed = 1 + (times - 1) * w if place is x else np.ones(3)
                _, z = binding.get_outputs()
                assert_allclose(place.numpy(), [fed + w])
                assert_allclose(z.numpy(), [fed])


@needs_webnn
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_context_that_is_lost() -> None:
    """The session reports it, and the next one, in the same page, has a new context."""
    flag = f"--py-ort-test={uuid.uuid4().hex}"
    options = BrowserOptions(browser=str(CHROMIUM), flags=(flag,), idle_timeout=0.1)
    x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
    with py_ort.InferenceSession(MODEL, providers=["webnn"], browser=options) as session:
        check(session.run(None, {"x": x}), x)
        value = session.create_ortvalue_from_shape_and_type(x.shape, np.float32, "webnn")
        killed = processes.children(flag, "gpu-process")
        processes.kill(killed)
        while set(killed) & set(processes.command_lines()):
            time.sleep(0.05)
        for _ in range(2):
            with pytest.raises(DeviceLost, match="lost") as told:
                session.run(None, {"x": x})
            assert told.value.provider == "webnn"
        with py_ort.InferenceSession(MODEL, providers=["webnn"], browser=options) as fresh:
            assert fresh.get_providers()[0] == "WebNNExecutionProvider"
            check(fresh.run(None, {"x": x}), x)
            with pytest.raises(PyOrtError, match="lost device"):
                fresh.run(None, {"x": value})
        session.enable_fallback()
        check(session.run(None, {"x": x}), x)
        assert session.get_providers() == ["CPUExecutionProvider"]


@needs_webnn
def test_options() -> None:
    asked = [("webnn", {"deviceType": "gpu", "powerPreference": "low-power", "deviceId": 3})]
    with py_ort.InferenceSession(MODEL, providers=asked, browser=str(CHROMIUM)) as session:
        x = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32)
        check(session.run(None, {"x": x}), x)
    with pytest.raises(InvalidArgument, match="deviceType of webnn is one of cpu, gpu, npu"):
        py_ort.InferenceSession(MODEL, providers=[("webnn", {"deviceType": "tpu"})], browser=str(CHROMIUM))


def cut() -> bytes:
    """Rows from s to e of x, before x: WebNN has no operand without rows."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Slice", ["r", "s", "e"], ["t"], name="cut"),
        helper.make_node("Concat", ["t", "r"], ["y"], axis=0, name="join"),
    ]
    inputs = [value("x", TensorProto.FLOAT, [4, 3]), *(value(name, TensorProto.INT64, [1]) for name in "se")]
    graph = helper.make_graph(nodes, "cut", inputs, [value("y", TensorProto.FLOAT, ["n", 3])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@needs_webnn
def test_what_the_browser_refuses_goes_to_the_next_provider() -> None:
    x = np.abs(RNG.normal(size=(4, 3))).astype(np.float32)

    def run(session: py_ort.InferenceSession, start: int, end: int) -> np.ndarray:
        return session.run(None, {"x": x, "s": np.array([start]), "e": np.array([end])})[0]

    with py_ort.InferenceSession(cut(), providers=["webnn"], browser=str(CHROMIUM)) as session:
        for start, end in ((1, 3), (5, 9), (0, 2)):
            assert_allclose(run(session, start, end), np.concatenate([x[start:end], x]))
        placed = {node.name: node.provider for node in session.placement().nodes}
        assert (placed["cut"], placed["relu"]) == ("wasm", "webnn")
        [reason] = [node.reason for node in session.placement().nodes if node.name == "cut"]
        assert reason.startswith("webnn: WebNN takes no Slice like this")
    strict = py_ort.SessionOptions()
    strict.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with py_ort.InferenceSession(cut(), strict, providers=["webnn"], browser=str(CHROMIUM)) as session:
        with pytest.raises(NotImplemented, match="WebNN takes no Slice like this") as told:
            run(session, 5, 9)
        assert (told.value.node, told.value.provider) == ("cut", "webnn")
        assert_allclose(run(session, 1, 3), np.concatenate([x[1:3], x]))


@needs_webnn
def test_limits_are_listed() -> None:
    done = CliRunner().invoke(cli, ["browsers", "--browser", str(CHROMIUM), "--json", "-"])
    [found] = json.loads(done.stdout)
    assert "float32" in found["devices"]["webnn"]["limits"]["conv2d"]["input"]["dataTypes"]


@needs_webnn
def test_exported(tmp_path: Path) -> None:
    [file] = py_ort.export(MODEL, tmp_path / "net.pyort", providers=["webnn", "wasm"])
    with py_ort.InferenceSession(file, providers=["webnn"], browser=str(CHROMIUM)) as session:
        x = RNG.normal(size=(2, 3, 6, 6)).astype(np.float32)
        check(session.run(None, {"x": x}), x)


@needs_webnn
def test_node_cases() -> None:
    """One in twelve of ONNX's: none has a wrong result, whatever runs on the CPU."""
    cases = [
        "conformance",
        "onnx-node",
        "--provider",
        "webnn",
        "--browser",
        str(CHROMIUM),
        "--sample",
        "12",
        "--jobs",
        "1",
    ]
    done = CliRunner().invoke(cli, cases)
    assert done.exit_code == 0, done.output


def test_a_browser_without_it_says_so() -> None:
    with pytest.raises(NoAdapter, match="WebNN") as told:
        py_ort.InferenceSession(MODEL, providers=["webnn"], browser=BrowserOptions(webgpu="off"))
    assert told.value.provider == "webnn"
    assert "built with WebNN" in str(told.value)


@needs_webnn
def test_the_browser_is_asked_before_a_node_is_placed() -> None:
    value = helper.make_tensor_value_info
    shape = [2] * 9  # more axes than it supports
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="relu"),
        helper.make_node("Reshape", ["r", "s"], ["f"], name="view"),
        helper.make_node("Tanh", ["f"], ["y"], name="tanh"),
    ]
    inputs, outputs = [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, [8, 64])]
    graph = helper.make_graph(nodes, "wide", inputs, outputs, [numpy_helper.from_array(np.array([8, 64]), "s")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    for _ in range(2):  # compiled, then from the cache
        with py_ort.InferenceSession(model, providers=["webnn"], browser=str(CHROMIUM)) as session:
            placed = {node.name: node for node in session.placement().nodes}
            assert (placed["relu"].provider, placed["tanh"].provider) == ("wasm", "webnn")
            assert "maximum rank" in placed["relu"].reason
            x = RNG.normal(size=shape).astype(np.float32)
            assert_allclose(session.run(None, {"x": x})[0], np.tanh(np.maximum(x, 0)).reshape(8, 64), rtol=1e-5)
    strict = py_ort.SessionOptions()
    strict.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    with pytest.raises(NotImplemented, match="maximum rank"):
        py_ort.InferenceSession(model, strict, providers=["webnn"], browser=str(CHROMIUM))


def of_text(text: str, constants: dict[str, np.ndarray] | None = None) -> bytes:
    return parse(text, constants, 20).SerializeToString()


@needs_webnn
def test_runs_at_the_same_time_have_feeds_of_their_own() -> None:
    model = of_text("g (float[n,4] x) => (float[n,4] y, float[n,4] z) { y = Relu(x)  a = Exp(y)  z = Add(a, x) }")
    with py_ort.InferenceSession(model, providers=["webnn"], browser=str(CHROMIUM)) as session:

        def run(number: int) -> bool:
            x = np.random.default_rng(number).normal(size=(1 + number % 4, 4)).astype(np.float32)
            y, z = session.run(None, {"x": x})
            return np.allclose(y, np.maximum(x, 0)) and np.allclose(z, np.exp(np.maximum(x, 0)) + x, rtol=1e-5)

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(run, range(60)))


@needs_webnn
def test_values_left_there_by_runs_at_the_same_time() -> None:
    model = of_text("g (float[2,4] x) => (float[2,4] y) { a = Relu(x)  y = Add(a, x) }")
    with py_ort.InferenceSession(model, providers=["webnn"], browser=str(CHROMIUM)) as session:

        def run(number: int) -> bool:
            x = np.full((2, 4), number, np.float32)
            binding = session.io_binding()
            binding.bind_cpu_input("x", x)
            binding.bind_output("y", "webnn")
            session.run_with_iobinding(binding)
            return np.array_equal(binding.get_outputs()[0].numpy(), 2 * x)

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(run, range(1, 40)))


@needs_webnn
def test_what_constants_make_on_the_cpu_stays_in_later_runs() -> None:
    text = """g (float[1,1,3] x, float[1] v) => (float[1,1,3] y, float[1] z) {
        q = Unsqueeze(b, axes)  e = Expand(q, sizes)  h = Reshape(e, row)  y = Add(x, h)  z = Exp(v)
    }"""
    constants = {
        "b": np.array([5], np.float32),
        "axes": np.array([1]),
        "sizes": np.array([1, 1]),
        "row": np.array([-1]),
    }
    options = py_ort.SessionOptions()
    options.graph_optimization_level = py_ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    with py_ort.InferenceSession(
        of_text(text, constants), options, providers=["webnn"], browser=str(CHROMIUM)
    ) as session:
        for number in range(4):
            x, v = np.full((1, 1, 3), number, np.float32), np.array([number], np.float32)
            y, z = session.run(None, {"x": x, "v": v})
            assert_allclose(y, x + 5)
            assert_allclose(z, np.exp(v), rtol=1e-5)


@needs_webnn
def test_feeds_that_no_provider_takes_move_no_node() -> None:
    model = of_text("g (float[n,k] x, float[m,p] w) => (float[n,p] y) { a = MatMul(x, w)  y = Relu(a) }")
    with py_ort.InferenceSession(model, providers=["webnn"], browser=str(CHROMIUM)) as session:
        good = {"x": np.ones((2, 3), np.float32), "w": np.ones((3, 4), np.float32)}
        session.run(None, good)
        with pytest.raises(py_ort.exceptions.PyOrtError, match="MatMul"):
            session.run(None, {**good, "w": np.ones((4, 5), np.float32)})
        assert_allclose(session.run(None, good)[0], np.full((2, 4), 3, np.float32))
        assert session.placement().counts()["webnn"] == 2
