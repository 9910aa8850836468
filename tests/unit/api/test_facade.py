"""The public names, and the module that replaces onnxruntime."""

import importlib
import logging
import pickle
import sys

import numpy as np
import pytest

import py_ort
from py_ort import OrtValue, exceptions
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.log import SessionLog

ERRORS = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, PyOrtError)]


def test_every_public_name_is_there():
    for name in py_ort.__all__:
        assert getattr(py_ort, name) is not None
        assert name in dir(py_ort)
    with pytest.raises(AttributeError, match="nope"):
        _ = py_ort.nope


def test_public_names_are_documented():
    undocumented = [name for name in py_ort.__all__ if not (getattr(py_ort, name).__doc__ or "").strip()]
    assert not undocumented


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_errors_have_fields_and_travel(error):
    made = error("boo", node="n1", op_type="Conv", domain="d", provider="wasm", shapes={"X": [1, 2]}, stack="at x")
    again = pickle.loads(pickle.dumps(made))
    for one in (made, again):
        assert isinstance(one, PyOrtError) and type(one) is error
        assert (one.node, one.op_type, one.provider, one.stack) == ("n1", "Conv", "wasm", "at x")
        for word in ("boo", "n1", "d::Conv", "wasm", "[1, 2]"):
            assert word in str(one)


def test_errors_have_onnxruntimes_names():
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    native = {n for n, v in vars(state).items() if isinstance(v, type) and issubclass(v, Exception)}
    ours = {error.__name__ for error in ERRORS}
    common = {"Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented"}
    assert common <= native & ours


def test_standing_in_for_onnxruntime():
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "onnxruntime"}
    with py_ort.install_as_onnxruntime() as installed:
        for name in ("onnxruntime", "onnxruntime.capi", "onnxruntime.capi._pybind_state"):
            assert importlib.import_module(name) is sys.modules[name]
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
        from onnxruntime.capi.onnxruntime_pybind11_state import NoSuchFile

        assert issubclass(InferenceSession, py_ort.InferenceSession) and NoSuchFile is exceptions.NoSuchFile
        assert installed.module.get_available_providers()[-1] == "CPUExecutionProvider"
        assert installed.module.__version__.startswith("1.")
        assert installed.sessions == []
    after = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "onnxruntime"}
    assert after == before


def test_values():
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    value = OrtValue.ortvalue_from_numpy(array)
    assert value.shape() == [2, 3] and value.data_type() == "tensor(int64)" and value.element_type() == 7
    assert value.data_ptr() == array.ctypes.data and value.tensor_size_in_bytes() == 48
    value.update_inplace(array * 2)
    np.testing.assert_array_equal(value.numpy(), [[0, 2, 4], [6, 8, 10]])
    np.testing.assert_array_equal(np.from_dlpack(value), value.numpy())
    np.testing.assert_array_equal(OrtValue.from_dlpack(np.ones(2)).numpy(), [1, 1])
    np.testing.assert_array_equal(np.asarray(value), value.numpy())
    with pytest.raises(InvalidArgument, match=r"int64\[2, 3\]"):
        value.update_inplace(array[0])
    assert OrtValue.ortvalue_from_shape_and_type([2], 1).numpy().dtype == np.float32
    with pytest.raises(InvalidArgument, match="abacus"):
        OrtValue.ortvalue_from_numpy(array, "abacus")


@pytest.fixture
def messages():
    """Yield the list to which messages go."""
    logger, given = logging.getLogger("py_ort"), []
    before = logger.level
    yield given
    py_ort.set_default_logger_callback(None)
    logger.setLevel(before)


def test_messages_go_to_a_function(messages):
    py_ort.set_default_logger_callback(lambda *told: messages.append(told), 1)
    SessionLog(name="mine").warning("%d left", 3)
    SessionLog().info("a number: %s", "mine: 4")
    SessionLog().debug("not wanted")
    logging.getLogger("py_ort.bridge").error("lost")
    assert [told[0] for told in messages] == [2, 1, 3]
    assert [told[1] for told in messages] == ["onnxruntime"] * 3
    assert [told[2] for told in messages] == ["mine", "Default", "Default"]
    assert [told[4] for told in messages] == ["3 left", "a number: mine: 4", "lost"]
    assert messages[2][3].startswith("test_facade.py:")
    py_ort.set_default_logger_callback(None, 0)
    assert logging.getLogger("py_ort").level == logging.INFO, "only a function sets it"
    SessionLog().warning("nobody is told")
    assert len(messages) == 3
    for wrong in ((3,), (print, 9), (None, 9)):
        with pytest.raises(InvalidArgument):
            py_ort.set_default_logger_callback(*wrong)


def test_a_function_that_fails_loses_no_message(messages, monkeypatch):
    lost, printed = [], []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    monkeypatch.setattr(logging, "lastResort", logging.Handler())
    monkeypatch.setattr(logging.lastResort, "emit", lambda record: printed.append(record.getMessage()))

    def fails(severity, category, logid, place, text):
        SessionLog().warning("inside")
        raise ValueError("no")

    py_ort.set_default_logger_callback(fails)
    SessionLog().warning("first")
    assert printed == ["inside", "first"]
    assert [told.exc_type for told in lost] == [ValueError] and lost[0].object is fails


def test_severity_is_the_loggers_level():
    logger = logging.getLogger("py_ort")
    before = logger.level
    try:
        py_ort.set_default_logger_severity(3)
        assert logger.level == logging.ERROR
        with pytest.raises(InvalidArgument):
            py_ort.set_default_logger_severity(9)
    finally:
        logger.setLevel(before)
