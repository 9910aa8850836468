"""WebGL: sessions on fragment shaders, in Chromium's software renderer."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import processes
import pytest
import small_models
from numpy.testing import assert_allclose, assert_array_equal
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from shared_browser import BROWSER

import py_ort
from py_ort import BrowserOptions
from py_ort.exceptions import DeviceLost, InvalidArgument, NotImplemented
from py_ort.runtime.available import of_browser
from py_ort.runtime.jsep import JsepBackend

pytestmark = pytest.mark.browser
RNG = np.random.default_rng(7)
FLOAT = TensorProto.FLOAT

Feeds = dict[str, np.ndarray]


def model(nodes: list, inputs: dict[str, tuple], outputs: list[str], constants: dict[str, np.ndarray]) -> bytes:
    """Return a model; `inputs` are types and shapes."""
    ins = [helper.make_tensor_value_info(name, *given) for name, given in inputs.items()]
    outs = [ValueInfoProto(name=name) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", ins, outs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def network() -> bytes:
    """A convolution of each kind, a pool, a normalization and a product."""
    made = {
        "w": floats(8, 3, 3, 3),
        "b": floats(8),
        "d": floats(8, 1, 3, 3),
        "g": floats(12, 4, 1, 1),
        "m": floats(12, 5),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "d"], ["e"], pads=[2, 2, 2, 2], dilations=[2, 2], group=8),
        helper.make_node("Conv", ["e", "g"], ["f"], group=2),
        helper.make_node("HardSwish", ["f"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["p"]),
        helper.make_node("Flatten", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "m"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    return model(nodes, {"x": (FLOAT, ["n", 3, 9, 9])}, ["y"], made)


def check(session: py_ort.InferenceSession, proto: bytes, feeds: Feeds) -> None:
    for got, wanted in zip(session.run(None, feeds), onnxruntime.InferenceSession(proto).run(None, feeds), strict=True):
        assert got.dtype == wanted.dtype
        assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture
def on_webgl() -> Iterator[Callable[[bytes], py_ort.InferenceSession]]:
    """Make sessions all of whose nodes run on WebGL."""
    made = []

    def on_webgl(proto: bytes) -> py_ort.InferenceSession:
        options = py_ort.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        made.append(py_ort.InferenceSession(proto, options, providers=["webgl"]))
        return made[-1]

    yield on_webgl
    for session in made:
        session.close()


def test_a_network_of_any_batch(on_webgl) -> None:
    proto = network()
    session = on_webgl(proto)
    assert session.get_providers() == ["WebGLExecutionProvider", "CPUExecutionProvider"]
    for size in (1, 3, 1):
        check(session, proto, {"x": floats(size, 3, 9, 9)})


def test_later_runs_compile_and_make_nothing(on_webgl) -> None:
    session = on_webgl(network())
    x = floats(1, 3, 9, 9)
    session.run(None, {"x": x})
    session.run(None, {"x": x + 1})
    counters = session.stats()["last_run"]["counters"]
    assert counters["dispatches"] > 0 and counters["downloads"] == 1
    assert not any(counters[name] for name in ("pipelines", "buffers", "walks"))


@pytest.mark.parametrize("dtype", ["float16", "int64", "int32", "uint8", "int8", "bool"])
def test_each_type_goes_there_and_back(on_webgl, dtype: str) -> None:
    """More elements than a row of a texture, and not whole texels."""
    values = RNG.integers(0, 2 if dtype == "bool" else 100, size=(3, 11111)).astype(dtype)
    form = helper.np_dtype_to_tensor_dtype(values.dtype)
    proto = model([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], {"x": (form, ["a", "b"])}, ["y"], {})
    assert_array_equal(on_webgl(proto).run(None, {"x": values})[0], values.T)


def test_what_is_no_number_stays(on_webgl) -> None:
    proto = model([helper.make_node("Max", ["x", "z"], ["y"])], {"x": (FLOAT, ["n"]), "z": (FLOAT, ["n"])}, ["y"], {})
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 3e38], np.float32)
    assert_array_equal(on_webgl(proto).run(None, {"x": x, "z": x})[0], x)


def test_a_tensor_beyond_the_largest_texture(on_webgl) -> None:
    """2 GiB, of which no byte is allocated."""
    node = helper.make_node("Expand", ["x", "shape"], ["y"], name="wide")
    proto = model([node], {"x": (FLOAT, [1]), "shape": (TensorProto.INT64, [1])}, ["y"], {})
    words = r"Expand: a tensor of shape \[536870912\] is beyond this device's limit of \d+ bytes .* on wasm"
    with pytest.raises(NotImplemented, match=words) as caught:
        on_webgl(proto).run(None, {"x": floats(1), "shape": np.array([2**29])})
    assert (caught.value.node, caught.value.provider) == ("wide", "webgl")


def test_many_tensors_are_joined(on_webgl) -> None:
    """More tensors than a shader has textures."""
    names = [f"x{i}" for i in range(37)]
    nodes = [helper.make_node("Relu", [name], [f"r{name}"]) for name in names]
    nodes.append(helper.make_node("Concat", [f"r{name}" for name in names], ["y"], axis=1))
    proto = model(nodes, {name: (FLOAT, [2, "n"]) for name in names}, ["y"], {})
    check(on_webgl(proto), proto, {name: floats(2, 1 + i % 3) for i, name in enumerate(names)})


def test_values_stay_there(on_webgl) -> None:
    proto = network()
    session = on_webgl(proto)
    x = floats(2, 3, 9, 9)
    binding = session.io_binding()
    value = session.create_ortvalue_from_shape_and_type(x.shape, np.float32, "webgl")
    value.update_inplace(x)
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", "webgl")
    for _ in range(2):
        session.run_with_iobinding(binding)
    wanted = onnxruntime.InferenceSession(proto).run(None, {"x": x})[0]
    assert_allclose(binding.get_outputs()[0].numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gpu", "texture", "webgl"])
def test_names_of_the_device(name: str) -> None:
    """`gpu` is the device of the session, whichever that is."""
    options, x, scale = py_ort.SessionOptions(), np.ones((1, 3), np.float32), np.ones(3, np.float32)
    options.preferred_output_location = name
    for provider in ("webgl", "webgpu") if name == "gpu" else ("webgl",):
        with py_ort.InferenceSession(small_models.add(), options, providers=[provider], browser=BROWSER) as session:
            value = session.create_ortvalue_from_shape_and_type([1, 3], np.float32, name)
            value.update_inplace(x)
            (left,) = session.run(None, {"x": value, "scale": scale})
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", left)
            binding.bind_cpu_input("scale", scale)
            binding.bind_output("y", name)
            session.run_with_iobinding(binding)
            (bound,) = binding.get_outputs()
            assert {each.device_name() for each in (value, left, bound)} == {provider}
            assert bound.numpy().tolist() == [[3, 3, 3]]


def test_a_value_of_another_device(on_webgl) -> None:
    """It is copied if it is fed; as a place for outputs it is refused."""
    session = on_webgl(small_models.add())
    value = py_ort.OrtValue.ortvalue_from_numpy(np.ones((1, 3), np.float32), "webgpu")
    assert session.run(None, {"x": value, "scale": np.ones(3, np.float32)})[0].tolist() == [[2, 2, 2]]
    with pytest.raises(InvalidArgument, match="on device 0 of webgl: nothing of device 0 of webgpu"):
        session.io_binding().bind_output("y", "webgpu")


@pytest.mark.parametrize("number", [-1, 2**32])
def test_numbers_of_devices_that_cannot_be(on_webgl, number: int) -> None:
    session = on_webgl(small_models.add())
    for make in (session.create_ortvalue_from_shape_and_type, py_ort.OrtValue.ortvalue_from_shape_and_type):
        with pytest.raises(InvalidArgument, match=f"device_id of webgl is a whole number from 0 to .*, not {number}"):
            make([1, 3], np.float32, "webgl", number)


def test_runs_of_several_threads(on_webgl) -> None:
    """Of one session and of others on its context, with feeds of several shapes; outputs stay there, or do not."""
    proto = network()
    native = onnxruntime.InferenceSession(proto)
    sessions = [on_webgl(proto), on_webgl(proto), on_webgl(small_models.add())]

    def run(number: int) -> None:
        feeds = {"x": np.random.default_rng(number).normal(0, 0.1, (1 + number % 4, 3, 9, 9)).astype(np.float32)}
        session = sessions[number % 3]
        if session is sessions[2]:
            rows = {"x": np.full((1, 3), number, np.float32), "scale": np.full(3, number, np.float32)}
            assert session.run(None, rows)[0].tolist() == [[2 * number] * 3]
            return
        binding = session.io_binding()
        binding.bind_cpu_input("x", feeds["x"])
        binding.bind_output("y", "webgl" if number % 2 else "cpu")
        session.run_with_iobinding(binding)
        assert_allclose(binding.get_outputs()[0].numpy(), native.run(None, feeds)[0], rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(36)))


def test_outputs_in_tensors_that_are_there(on_webgl) -> None:
    """In one of two in turn, then in the one that is read; what an earlier run left there stays."""
    session = on_webgl(small_models.add())
    tensors = [session.create_ortvalue_from_shape_and_type([1, 3], np.float32, "webgl") for _ in range(2)]
    tensors[0].update_inplace(np.array([[1, 2, 3]], np.float32))
    kept = []

    def add(source: py_ort.OrtValue, target: py_ort.OrtValue | None) -> None:
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", source)
        binding.bind_cpu_input("scale", np.ones(3, np.float32))
        if target is None:
            binding.bind_output("y", "webgl")
        else:
            binding.bind_ortvalue_output("y", target)
        session.run_with_iobinding(binding)
        kept.extend(binding.get_outputs() if target is None else ())

    for run in range(4):
        add(tensors[run % 2], tensors[1 - run % 2])
        add(tensors[0], None)
    add(tensors[0], tensors[0])
    assert [value.numpy().tolist() for value in tensors] == [[[6, 7, 8]], [[4, 5, 6]]]
    assert [value.numpy()[0, 0] for value in kept] == [2, 4, 4, 6]


def test_a_write_to_a_part_leaves_the_rest() -> None:
    """For a tensor in a texture, too; a copy from another tensor does not change the bytes after it."""
    data, other = (RNG.integers(0, 256, 40_000, np.uint8).tobytes() for _ in range(2))
    with JsepBackend(browser=BROWSER, provider="webgl") as backend:
        first, second, third = (backend.alloc(len(data)) for _ in range(3))
        backend.copy(data, first)
        backend.copy(first, second, len(data))  # both are textures from here on
        backend.copy(other[:1000], second)
        assert backend.copy_async(second, len(data)).result() == other[:1000] + data[1000:]
        backend.copy(second, third, len(data))
        backend.copy(first, third, 20)
        assert backend.copy_async(third, len(data)).result() == data[:20] + other[20:1000] + data[1000:]


def test_options(caplog: pytest.LogCaptureFixture) -> None:
    proto = small_models.add()
    names = ("async", "contextId", "matmulMaxBatchSize", "pack", "textureCacheMode")
    for given in (names, [f"ep.webglexecutionprovider.{name}" for name in names]):
        py_ort.InferenceSession(proto, providers=[("webgl", dict.fromkeys(given, "1"))]).close()
        assert f"options of provider webgl without effect in a browser: {', '.join(names)}" in caplog.text
        caplog.clear()
    with pytest.raises(InvalidArgument, match="nope"):
        py_ort.InferenceSession(proto, providers=[("webgl", {"nope": "1"})])


def test_an_open_context_keeps_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a device of WebGPU does. A context that no session uses, as after a question for providers, opens again."""
    monkeypatch.delenv("PY_ORT_PROBE")
    assert "WebGLExecutionProvider" in of_browser(BROWSER, None)["get_available_providers"]()

    def session(**options: str) -> py_ort.InferenceSession:
        return py_ort.InferenceSession(small_models.add(), providers=[("webgl", options)], browser=BROWSER)

    for power, other in (("low-power", "high-performance"), ("high-performance", "low-power")):
        with session(powerPreference=power), session():
            with pytest.raises(InvalidArgument, match=f"device 0 was opened with powerPreference {power}"):
                session(powerPreference=other)
            session(powerPreference=other, deviceId="1").close()
    with session(), pytest.raises(InvalidArgument, match="device 0 was opened without checkWrites"):
        session(checkWrites="1")


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_lost_context(page_errors) -> None:
    """The session reports that its context is lost, and the next session gets a new one."""
    flag = f"--py-ort-test={uuid.uuid4().hex}"
    browser = BrowserOptions(launcher="playwright", webgpu="software", flags=(flag,), idle_timeout=0.1)
    feeds = {"x": np.zeros((1, 3), np.float32), "scale": np.ones(3, np.float32)}

    def is_lost() -> bool:
        try:
            session.run(None, feeds)
        except DeviceLost as e:
            return "again" in str(e)
        return False

    with py_ort.InferenceSession(small_models.add(), providers=["webgl"], browser=browser) as session:
        session.run(None, feeds)
        processes.kill(processes.children(flag, "gpu-process"))
        deadline = time.monotonic() + 60
        while not is_lost():
            assert time.monotonic() < deadline, "the context stays"
            time.sleep(0.1)
        with py_ort.InferenceSession(small_models.add(), providers=["webgl"], browser=browser) as fresh:
            assert fresh.run(None, feeds)[0].tolist() == [[1, 1, 1]]
        session.enable_fallback()
        assert session.run(None, feeds)[0].tolist() == [[1, 1, 1]]
    page_errors.clear()
