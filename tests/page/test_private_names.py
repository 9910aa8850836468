"""Names beneath onnxruntime's Python classes that other people's code reads: with an underscore, native objects."""

import json
import logging

import numpy as np
import onnx
import pytest
from session_settings import settings
from shared_browser import BROWSER
from text_form import parse

import py_ort
from py_ort.exceptions import Fail, InvalidArgument, NotImplemented

native = pytest.importorskip("onnxruntime")
TEXT = "g (float[3] x) => (float[3] y) { s = Add(x, x)  t = Mul(s, x)  y = MatMul(t, w) }"
X = np.arange(1, 4, dtype=np.float32)
#: Steps of onnxruntime's own creation of a session, and of its graph capture: only onnxruntime calls them.
STEPS = {
    *("_captured_graph_bindings", "_register_ep_custom_ops", "_release_captured_graphs"),
    *("_validate_graph_capture_run_api", "_validate_ortvalue_ownership"),
    *("_capture_signature", "_reject_if_pinned", "_validate_capture_bindings"),
    "_pybind11_conduit_v1_",
}


def _model(config=None):
    model = parse(TEXT, {"w": np.eye(3, dtype=np.float32)}, opset=17)
    for node in model.graph.node:
        node.name = f"the_{node.op_type}"
    if config is not None:
        onnx.helper.set_model_props(model, {"ort_config": config})
    return model.SerializeToString()


@pytest.fixture(scope="module")
def installed():
    theirs = native.InferenceSession(_model(), providers=["CPUExecutionProvider"])
    with py_ort.install_as_onnxruntime(["wasm"], browser=BROWSER) as installed:
        yield theirs, installed.module.InferenceSession(_model())


def _pairs(installed):
    theirs, ours = installed
    bindings = theirs.io_binding(), ours.io_binding()
    values = native.OrtValue.ortvalue_from_numpy(X), py_ort.OrtValue.ortvalue_from_numpy(X)
    return {
        "session": installed,
        "session._sess": (theirs._sess, ours._sess),
        "binding": bindings,
        "binding._iobinding": tuple(binding._iobinding for binding in bindings),
        "value": values,
        "value._ortvalue": tuple(value._ortvalue for value in values),
        "device": (native.OrtDevice.make("cpu", 0), py_ort.OrtDevice.make("cpu", 0)),
        "options": (native.SessionOptions(), py_ort.SessionOptions()),
        "run options": (native.RunOptions(), py_ort.RunOptions()),
        "arg": (theirs.get_inputs()[0], ours.get_inputs()[0]),
        "metadata": (theirs.get_modelmeta(), ours.get_modelmeta()),
    }


def test_every_attribute_is_there(installed):
    for what, (theirs, ours) in _pairs(installed).items():
        missing = [name for name in dir(theirs) if not hasattr(ours, name) and name not in STEPS]
        assert not missing, what


def test_state_of_a_session(installed, tmp_path):
    _, session = installed
    assert session._model_path is None and session._model_bytes == _model()
    assert [arg.name for arg in (*session._inputs_meta, *session._outputs_meta)] == ["x", "y"]
    assert session._providers == ["CPUExecutionProvider"] == list(session._provider_options)
    (tmp_path / "model.onnx").write_bytes(_model())
    with type(session)(tmp_path / "model.onnx") as other:
        assert other._model_path == str(tmp_path / "model.onnx") and other._model_bytes is None
    for infos in (session.get_input_memory_infos(), session.get_output_memory_infos()):
        assert [(info.name, info.device_id) for info in infos] == [("Cpu", 0)]
    assert session.get_input_epdevices() == [None] and session.get_tuning_results() == []
    session.set_tuning_results([{"ep": "CUDAExecutionProvider"}])
    with pytest.raises(NotImplemented, match="tuning"):
        session.set_tuning_results([{}], error_on_invalid=True)
    with pytest.raises(NotImplemented, match="change while"):
        session.set_ep_dynamic_options({"a": "b"})


def test_the_native_session_runs(installed):
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    _, session = installed
    expected = session.run(None, {"x": X})[0]
    beneath = session._sess
    assert beneath is session._sess
    values = beneath.run_with_ort_values({"x": py_ort.OrtValue.ortvalue_from_numpy(X)}, ["y"], None)
    assert isinstance(values, state.OrtValueVector)
    np.testing.assert_array_equal(values[0].numpy(), expected)
    np.testing.assert_array_equal(beneath.run(["y"], {"x": X}, None)[0], expected)
    assert beneath.inputs_meta[0].name == "x" and not beneath.is_webgpu_graph_capture_enabled()
    made = state.InferenceSession(py_ort.SessionOptions(), _model(), False, False)
    made.initialize_session([], [], set())
    np.testing.assert_array_equal(made.run(["y"], {"x": X}, None)[0], expected)
    assert isinstance(made.session, type(session))


def test_the_native_binding_takes_devices(installed):
    from onnxruntime.capi._pybind_state import OrtDevice, OrtValue, OrtValueVector, SessionIOBinding

    _, session = installed
    expected = session.run(None, {"x": X})[0]
    cpu = OrtDevice(OrtDevice.cpu(), OrtDevice.default_memory(), 0)
    binding = SessionIOBinding(session._sess)
    value = OrtValue.ortvalue_from_numpy(X, cpu)
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y", cpu)
    session._sess.run_with_iobinding(binding, None)
    assert isinstance(binding.get_outputs(), OrtValueVector)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), expected)
    binding.bind_input("x", cpu, np.float32, [3], value.data_ptr())
    target = OrtValue.ortvalue_from_shape_and_type([3], np.float32, cpu)
    binding.bind_output("y", cpu, np.float32, [3], target.data_ptr())
    session.run_with_iobinding(binding.binding)
    np.testing.assert_array_equal(target.numpy(), expected)
    python = session.io_binding()
    python._iobinding.bind_input("x", X)
    assert set(python._bound_inputs) == {"x"} and python._numpy_obj_references["x"] is X


def test_devices_of_native_onnxruntime_are_names():
    for module in (native, py_ort):
        found = [module.OrtDevice.make(name, 1) for name in ("cpu", "cuda", "dml", "npu", "cann", "webgpu")]
        assert [d.device_type() for d in found] == [0, 1, 1, 3, 3, 1]
        assert [int(d.device_vendor_id()) for d in found] == [0, 0x10DE, 0x1414, 0, 0x19E5, 0]
    with pytest.raises(NotImplemented, match="'cuda' is a device of native onnxruntime"):
        py_ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    with pytest.raises(InvalidArgument, match="'tpu'"):
        py_ort.OrtDevice.make("tpu", 0)


def test_which_node_is_where(installed):
    _, session = installed
    with pytest.raises(Fail, match="record_ep_graph_assignment_info"):
        session.get_provider_graph_assignment_info()
    options = settings(entries={"session.record_ep_graph_assignment_info": "1"})
    with type(session)(_model(), options) as session:
        found = session.get_provider_graph_assignment_info()
    assert {part.ep_name for part in found} == {"CPUExecutionProvider"}
    nodes = {(node.name, node.domain, node.op_type) for part in found for node in part.get_nodes()}
    assert nodes == {("the_Add", "", "Add"), ("the_Mul", "", "Mul"), ("the_MatMul", "", "MatMul")}


def _session(*arguments, **keywords):
    return py_ort.InferenceSession(*arguments, providers=["wasm"], browser=BROWSER, **keywords)


def test_keywords_of_onnxruntime(caplog):
    caplog.set_level(logging.WARNING, "py_ort")  # whatever severity other tests set
    with _session(_model(), disabled_optimizers=["ConstantFolding"], enable_fallback=1, nonsense=2) as session:
        assert session._enable_fallback
    assert "keywords without effect in a browser: disabled_optimizers, nonsense" in caplog.text
    caplog.clear()
    with _session(_model(), disabled_optimizers=None, enable_fallback=0, read_config_from_model=0) as session:
        assert not session._enable_fallback and "keywords" not in caplog.text


def test_warned_of_once_in_a_process(caplog):
    caplog.set_level(logging.WARNING, "py_ort")  # whatever severity other tests set
    for _ in range(2):
        with _session(_model(), disabled_optimizers=["ConstantFolding"], once=1):
            pass
    assert caplog.text.count("keywords without effect in a browser: disabled_optimizers, once") == 1


def test_who_disables_fusions_gets_a_file_without_them(caplog, tmp_path):
    """As in onnxruntime.transformers, whose own fusions look for exporters' operators."""
    options = settings(optimized_model_filepath=str(tmp_path / "optimized.onnx"))
    with _session(_model(), options, disabled_optimizers=["ConstantSharing", "MatMulAddFusion"]):
        written = onnx.load(tmp_path / "optimized.onnx")
    source = onnx.load_from_string(_model())
    assert written.opset_import == source.opset_import
    assert [node.op_type for node in written.graph.node] == [node.op_type for node in source.graph.node]
    assert "without effect" not in caplog.text and not options.config_entries


def test_options_in_the_model(monkeypatch, caplog):
    model = _model(json.dumps({"session_options": {"intra_op_num_threads": 2, "execution_mode": 1, "unknown": "x"}}))
    given = settings(intra_op_num_threads=3)
    with _session(model, given) as session:
        assert session.get_session_options().intra_op_num_threads == 3
    with _session(model, given, read_config_from_model=1) as session:
        options = session.get_session_options()
        assert (options.intra_op_num_threads, options.execution_mode) == (2, py_ort.ExecutionMode.ORT_PARALLEL)
        assert session._read_config_from_model
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    with _session(model) as session:
        assert session.get_session_options().intra_op_num_threads == 2
    with _session(_model(), given) as session:
        assert session.get_session_options().intra_op_num_threads == 3


WRONG = [json.dumps({"session_options": {k: v}}) for k, v in (("execution_mode", 7), ("enable_profiling", 2))]


@pytest.mark.parametrize("config", ["no JSON", *WRONG])
def test_options_in_the_model_that_cannot_be(config):
    with pytest.raises(InvalidArgument, match="ort_config"):
        _session(_model(config), read_config_from_model=1)
