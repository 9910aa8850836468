"""Code written for onnxruntime runs with our sessions, values and options, in a page."""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import external_data_helper
from session_settings import settings
from shared_browser import BROWSER
from text_form import parse

import py_ort
from py_ort import AsyncInferenceSession, BrowserOptions, OrtValue, RunOptions, SessionOptions
from py_ort.exceptions import Cancelled, InvalidArgument, ModelLoadCanceled, NoSuchFile

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.array([1, 2, 3], np.float32)


def model(text: str, **initializers: np.ndarray) -> onnx.ModelProto:
    return parse(text, initializers, 17)


def add(w_is_an_input: bool = True) -> bytes:
    w = ", float[3] w" if w_is_an_input else ""
    text = f"g (float[N, 3] x{w}) => (float[N, 3] y, float[N, 3] z) {{ y = Add(x, w) z = Neg(x) }}"
    return model(text, w=W).SerializeToString()


def test_initializers_that_are_inputs_may_be_fed(new_session):
    session = new_session(add(), providers=["wasm"])
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [str(arg) for arg in session.get_overridable_initializers()] == [
        "NodeArg(name='w', type='tensor(float)', shape=[3])"
    ]
    for feeds, expected in (({}, X + W), ({"w": W * 5}, X + W * 5), ({"w": W * 7}, X + W * 7), ({}, X + W)):
        np.testing.assert_array_equal(session.run(["y"], {"x": X, **feeds})[0], expected)
    assert len(session._engine.sessions.variants) == 1, "one more session in the page serves all values that are fed"
    with pytest.raises(InvalidArgument, match="'w'"):
        session.run(["y"], {"x": X, "w": W[:2]})


def test_before_ir_4_initializers_are_constants_though_they_are_inputs(new_session):
    old = onnx.load_from_string(add())
    old.ir_version = 3
    assert new_session(old, providers=["wasm"]).get_overridable_initializers() == []


def test_only_the_path_to_what_is_fetched(new_session):
    """Integer division by zero fails in its kernel; a run that does not fetch its result need not compute it."""
    session = new_session(add(), providers=["wasm"])
    options = RunOptions()
    options.only_execute_path_to_fetches = True
    np.testing.assert_array_equal(session.run(["z"], {"x": X}, options)[0], -X)
    (variant,) = session._engine.sessions.variants.values()
    assert [node.op_type for node in variant.placement.nodes] == ["Neg"]
    np.testing.assert_array_equal(session.run(["z", "y"], {"x": X}, options)[1], X + W)
    assert len(session._engine.sessions.variants) == 1, "all outputs: the session itself"


def external(tmp_path) -> str:
    """A model whose data is in a file that is not there."""
    made = model("g (float[N, 3] x) => (float[N, 3] y) { y = Add(x, w) }", w=W)
    external_data_helper.set_external_data(made.graph.initializer[0], "w.bin", offset=4, length=12)
    made.graph.initializer[0].ClearField("raw_data")
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    return str(tmp_path / "model.onnx")


def test_external_data_from_memory(new_session, tmp_path):
    path, other = external(tmp_path), np.array([7, 8, 9], np.float32)
    with pytest.raises(NoSuchFile, match=r"w\.bin"):
        new_session(path, providers=["wasm"])
    values, files = SessionOptions(), SessionOptions()
    values.add_external_initializers(["w"], [OrtValue.ortvalue_from_numpy(other)])
    files.add_external_initializers_from_files_in_memory(["w.bin"], [b"????" + other.tobytes() + b"more"], [16])
    for options in (values, files):
        np.testing.assert_array_equal(new_session(path, options, ["wasm"]).run(None, {"x": X})[0], X + other)


WRONG = {"no such name": ("v", W), "another shape": ("w", W[:2]), "another type": ("w", W.astype(np.int32))}


@pytest.mark.parametrize("case", WRONG)
def test_initializers_that_do_not_fit(new_session, case):
    options, (name, array) = SessionOptions(), WRONG[case]
    options.add_initializer(name, OrtValue(array))
    with pytest.raises(InvalidArgument, match=name):
        new_session(add(w_is_an_input=False), options, ["wasm"])


@pytest.mark.parametrize("how", ["name", "denotation"])
def test_free_dimensions_show_in_inputs_and_outputs(new_session, how):
    made = onnx.load_from_string(add())
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = SessionOptions()
    getattr(options, f"add_free_dimension_override_by_{how}")("N" if how == "name" else "DATA_BATCH", 2)
    session = new_session(made, options, ["wasm"])
    assert [arg.shape for arg in (*session.get_inputs(), *session.get_outputs())] == [[2, 3]] * 3
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + W)
    with pytest.raises(InvalidArgument, match="dimension 0"):
        session.run(["y"], {"x": X[:1]})


def test_python_values_become_the_inputs_type(new_session):
    session = new_session(add(), providers=["wasm"])
    np.testing.assert_array_equal(session.run(["y"], {"x": X.tolist()})[0], X + W)
    np.testing.assert_array_equal(session.run(["y"], {"x": [[1, 2, 3]]})[0], [[2, 4, 6]])
    for wrong in ([["a", "b", "c"]], [[1, 2], [1]], None):
        with pytest.raises(InvalidArgument, match="'x'"):
            session.run(["y"], {"x": wrong})
    for arguments in (("y", {"x": X}), (["y"], [X])):
        with pytest.raises(InvalidArgument):
            session.run(*arguments)


def test_addresses_are_bound_as_onnxruntimes_manual_does(new_session):
    session, y = new_session(add(), providers=["wasm"]), np.zeros((2, 3), np.float32)
    x, binding = OrtValue.ortvalue_from_numpy(X), session.io_binding()
    binding.bind_input("x", x.device_name(), 0, np.float32, x.shape(), x.data_ptr())
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, X + W)
    assert binding.get_outputs()[0].data_ptr() == y.ctypes.data
    for wrong in (lambda: binding.bind_cpu_input("nope", X), lambda: binding.bind_cpu_input("x", [1])):
        with pytest.raises(RuntimeError):
            wrong()
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="no output"):
        session.run_with_iobinding(binding)


def test_gpu_buffers_are_bound_by_their_numbers(new_session):
    session = new_session(add(), providers=["webgpu"])
    x = session.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    y = session.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    py_ort.copy_tensors([OrtValue(X)], [x])
    binding = session.io_binding()
    binding.bind_input("x", x.device_name(), 0, np.float32, x.shape(), x.data_ptr())
    binding.bind_output("y", "webgpu", 0, np.float32, y.shape(), y.data_ptr())
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y.numpy(), X + W)


def test_values_that_are_no_tensors(new_session):
    text = "g (float[3] x) => (seq(float[3]) s) { s = SequenceConstruct(x, x) }"
    session = new_session(model(text), providers=["wasm"])
    (value,) = session.run_with_ort_values(None, {"x": OrtValue(W)})
    assert value.is_tensor_sequence() and not value.is_tensor() and value.has_value()
    assert value.data_type() == "seq(tensor(float))" and value.element_type() == 1
    with pytest.raises(RuntimeError, match="not a tensor"):
        value.numpy()
    at = model("g (seq(float[3]) s, int64 i) => (float[3] y) { y = SequenceAt(s, i) }")
    session = new_session(at, providers=["wasm"])
    np.testing.assert_array_equal(session.run(None, {"s": value, "i": 1})[0], W)


def test_other_providers_for_the_same_session(new_session):
    session = new_session(add(), providers=["webgpu"])
    session.set_providers(["CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + W)
    with pytest.raises(InvalidArgument):
        session.set_providers(["nope"])
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + W)


def test_a_seed_makes_random_numbers_come_again(new_session, monkeypatch):
    text = "g () => (float[4] y, float[4] z) { y = RandomUniform <shape=[4]> () z = RandomUniform <shape=[4]> () }"
    random = model(text).SerializeToString()
    monkeypatch.setattr("py_ort.runtime.available._seed", None)
    py_ort.set_seed(3)
    one, two = (new_session(random, providers=["wasm"]).run(None, {}) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(*one), "each operator has numbers of its own"
    py_ort.set_seed(4)
    assert not np.array_equal(one, new_session(random, providers=["wasm"]).run(None, {}))


def test_a_flag_ends_the_making_of_a_session(new_session):
    options = SessionOptions()
    with pytest.raises(ModelLoadCanceled, match="compiling"):
        new_session(
            add(), options, ["wasm"], progress=lambda stage, *_: options.set_load_cancellation_flag("starting" in stage)
        )


def test_large_outputs_that_are_kept_stay_what_they_are(new_session, provider):
    """Feeds are fetched, and memory is reused: only memory that is not referenced any more."""
    text = "g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Identity(x) }"
    session = new_session(model(text), providers=[provider])
    feeds = [np.full(1_500_000 + 7 * i, i + 0.5, np.float32) for i in range(4)]
    kept = []
    for x in feeds:
        session.run(None, {"x": x + 100})
        kept.append(session.run(None, {"x": x})[0][3:])  # a view references the whole
    with ThreadPoolExecutor(4) as pool:
        kept += pool.map(lambda x: session.run(["y"], {"x": x})[0][3:], feeds, timeout=60)
    assert sorted((y.size, y.min(), y.max()) for y in kept) == sorted(
        (x.size - 3, -x[0], -x[0]) for x in [*feeds, *feeds]
    )


def messages(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "py_ort"]


def test_what_has_no_effect_is_warned_about(new_session, caplog):
    parallel, entries = py_ort.ExecutionMode.ORT_PARALLEL, {"session.set_denormal_as_zero": "1"}
    options, run = settings(entries=entries, execution_mode=parallel, logid="mine"), RunOptions()
    run.logid = "this run"
    run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    with caplog.at_level(logging.WARNING, "py_ort"):
        session = new_session(add(), options, ["cpu", "CPUExecutionProvider"])
        session.run(["y"], {"x": X}, run)
    assert messages(caplog) == [
        "mine: session options without effect in a browser: execution_mode, session.set_denormal_as_zero",
        "mine: provider CPUExecutionProvider is named twice: the first place counts",
        "this run: run options without effect in a browser: memory.enable_memory_arena_shrinkage",
    ]


def test_a_sessions_own_severity_counts(new_session, caplog):
    quiet, loud = settings(log_severity_level=4, use_deterministic_compute=True), settings(log_severity_level=0)
    with caplog.at_level(logging.WARNING, "py_ort"):
        caplog.handler.setLevel(logging.DEBUG)
        new_session(add(), quiet, ["wasm"])
        assert not messages(caplog)
        new_session(add(), loud, ["wasm"]).run(["y"], {"x": X})
    assert any(text.startswith("run: ") for text in messages(caplog))
    loud.log_severity_level = 5
    with pytest.raises(RuntimeError, match="log_severity_level"):
        new_session(add(), loud, ["wasm"])


def slow() -> bytes:
    """Some seconds of work for the CPU, in many steps."""
    body = "b (int64 i, bool c, float[N] a) => (bool d, float[N] r) { d = Identity(c) r = Sin(a) }"
    text = f"g (float[N] x) => (float[N] y) {{ y = Loop <body = {body}> (n, , x) }}"
    return model(text, n=np.array(100_000, np.int64)).SerializeToString()


def test_terminate_ends_a_run_from_another_thread(new_session):
    session, options, x = new_session(slow(), providers=["wasm"]), RunOptions(), np.ones(20_000, np.float32)
    timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
    timer.start()
    with pytest.raises(Cancelled):
        session.run(None, {"x": x}, options)
    with pytest.raises(py_ort.exceptions.Fail, match="terminate"):
        session.run(None, {"x": x[:1]}, options)
    options.terminate = False
    assert session.run(None, {"x": x[:0]}, options)[0].shape == (0,)


def test_the_asyncio_twin():
    async def main() -> None:
        async with await AsyncInferenceSession.create(add(), providers=["wasm"], browser=BROWSER) as session:
            assert [arg.name for arg in session.get_inputs()] == ["x"]
            results = await asyncio.gather(*(session.run(["y"], {"x": X + i}) for i in range(5)))
            for i, (y,) in enumerate(results):
                np.testing.assert_array_equal(y, X + i + W)
            np.testing.assert_array_equal((await session.run(["y"], {"x": X, "w": W * 2}))[0], X + W * 2)
            with pytest.raises(InvalidArgument):
                await session.run(["nope"], {"x": X})
        assert "closed" in repr(session)
        async with await AsyncInferenceSession.create(slow(), providers=["wasm"], browser=BROWSER) as session:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.run(None, {"x": np.ones(20_000, np.float32)}), 0.3)
            assert (await session.run(None, {"x": np.ones(0, np.float32)}))[0].shape == (0,)

    asyncio.run(main())


#: A separate browser: no other sessions are in its pages.
TWO_PAGES = BrowserOptions(webgpu="off", flags=("--lang=en",), pages=2)


def test_sessions_spread_over_pages(new_session):
    sessions = [new_session(add(), providers=["wasm"], browser=TWO_PAGES) for _ in range(3)]
    pages = [session._opened.runtime.lease.page for session in sessions]
    assert len(set(map(id, pages))) == 2
    for session in sessions:
        np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + W)
    assert len({session.browser for session in sessions}) == 1


def test_terminate_ends_a_run_that_is_just_starting(new_session, monkeypatch):
    session, options = new_session(slow(), providers=["wasm"]), RunOptions()
    runtime = session._opened.runtime
    start_run = runtime.start_run

    def started(*args, **kwargs):
        future = start_run(*args, **kwargs)
        options.terminate = True
        return future

    with monkeypatch.context() as patch, pytest.raises(Cancelled):
        patch.setattr(runtime, "start_run", started)
        session.run(None, {"x": np.ones(20_000, np.float32)}, options)
    assert options._cancel == []


def test_two_pages_run_at_the_same_time(new_session):
    """A short run ends while a long one is running in the other page; in one page it would wait."""
    slow_one, quick = (new_session(made, providers=["wasm"], browser=TWO_PAGES) for made in (slow(), add()))
    assert quick._opened.runtime.lease.page is not slow_one._opened.runtime.lease.page
    options = RunOptions()
    future = slow_one.run_async(None, {"x": np.ones(20_000, np.float32)}, run_options=options)
    np.testing.assert_array_equal(quick.run(["y"], {"x": X})[0], X + W)
    assert not future.done()
    options.terminate = True
    with pytest.raises(Cancelled):
        future.result(30)


def test_code_for_onnxruntime_runs_as_it_is(tmp_path):
    """Code as skl2onnx's and PyTorch's manuals tell users to write it."""
    (tmp_path / "model.onnx").write_bytes(add())
    with py_ort.install_as_onnxruntime(browser=BROWSER):
        import importlib.util

        import onnxruntime as rt
        from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument as TheirInvalidArgument

        assert importlib.util.find_spec("onnxruntime") is not None
        options = rt.SessionOptions()
        options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.intra_op_num_threads = 1
        sess = rt.InferenceSession(str(tmp_path / "model.onnx"), options, providers=rt.get_available_providers())
        input_name, label_name = sess.get_inputs()[0].name, sess.get_outputs()[0].name
        (predicted,) = sess.run([label_name], {input_name: X.astype(np.float32)})
        np.testing.assert_array_equal(predicted, X + W)
        with pytest.raises(TheirInvalidArgument):
            sess.run([label_name], {input_name: X.astype(np.float64)})
        assert sess.get_modelmeta().custom_metadata_map == {} and rt.get_device().startswith("CPU")
        import onnxruntime.backend

        assert onnxruntime.backend.supports_device("CPU")
        sess.close()


def test_the_optimized_model_and_its_initializers(new_session, tmp_path):
    made = model("g (float[2,8] x) => (float[2,8] y) { y = MatMul(x, w) }", w=np.eye(8, dtype=np.float32))
    external = "session.optimized_model_external_initializers"
    entries = {f"{external}_file_name": "weights.bin", f"{external}_min_size_in_bytes": "100"}
    options = settings(entries=entries, optimized_model_filepath=str(tmp_path / "optimized.onnx"))
    new_session(made, options, providers=["wasm"])
    assert (tmp_path / "weights.bin").stat().st_size == 256
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_array_equal(
        new_session(tmp_path / "optimized.onnx", providers=["wasm"]).run(None, {"x": x})[0], x
    )


def test_a_file_in_onnxruntimes_own_format(new_session, tmp_path, provider):
    native, path = onnxruntime.SessionOptions(), tmp_path / "model.ort"
    native.add_session_config_entry("session.save_model_format", "ORT")
    native.optimized_model_filepath = str(path)
    made = model("g (float[n,3] x) => (float[n,1] y) { m = MatMul(x, w) y = Relu(m) }", w=W.reshape(3, 1))
    reference = onnxruntime.InferenceSession(made.SerializeToString(), native, providers=["CPUExecutionProvider"])
    feeds = {"x": X - 2}
    for source in (path, path.read_bytes()):
        session = new_session(source, providers=[provider])
        np.testing.assert_allclose(session.run(None, feeds)[0], reference.run(None, feeds)[0], rtol=1e-6)
        assert session.get_modelmeta().producer_name == reference.get_modelmeta().producer_name


@pytest.mark.parametrize("names", [None, "", []], ids=repr)
def test_no_names_are_all_outputs(new_session, names):
    """As natively, for any false value."""
    session = new_session(model("g (float[1] x) => (float[1] y, float[1] z) { y = Neg(x)  z = Abs(x) }"))
    assert [y.item() for y in session.run(names, {"x": np.float32([2])})] == [-2, 2]
