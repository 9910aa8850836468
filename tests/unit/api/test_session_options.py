"""Options as in onnxruntime: defaults, typos, and options without an effect."""

import numpy as np
import pytest

from py_ort import ExecutionMode, GraphOptimizationLevel, OrtValue, RunOptions, SessionOptions
from py_ort.exceptions import InvalidArgument, NotImplemented


def test_a_typo_is_not_swallowed():
    with pytest.raises(AttributeError, match="intra_op_threads"):
        SessionOptions().intra_op_threads = 4


def test_what_has_no_effect_is_known():
    options = SessionOptions()
    assert options.changed_without_effect() == []
    options.execution_mode = ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 4
    options.enable_mem_reuse = True  # the existing behavior
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_session_config_entry("session.load_model_format", "ORT")
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    expected = ["execution_mode", "inter_op_num_threads", "session.set_denormal_as_zero"]
    assert options.changed_without_effect() == expected


@pytest.mark.parametrize("kind", ["session", "run"])
def test_config_entries(kind):
    options = SessionOptions() if kind == "session" else RunOptions()
    getattr(options, f"add_{kind}_config_entry")("key", "1")
    assert getattr(options, f"get_{kind}_config_entry")("key") == "1"
    assert options.config_entries == {"key": "1"}
    with pytest.raises(InvalidArgument, match="other"):
        getattr(options, f"get_{kind}_config_entry")("other")


def test_free_dimensions_and_initializers():
    options = SessionOptions()
    options.add_free_dimension_override_by_name("batch", 4)
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    value = OrtValue.ortvalue_from_numpy(np.ones(2))
    options.add_initializer("v", value)
    options.add_external_initializers(["w"], [value])
    assert options.free_dimensions_by_name == {"batch": 4}
    assert options.free_dimensions_by_denotation == {"DATA_BATCH": 2}
    assert options.initializers == {"v": value, "w": value}


REFUSED = {
    "no OrtValue": lambda o: o.add_initializer("w", np.ones(2)),
    "given twice": lambda o: [o.add_initializer("w", OrtValue(np.ones(2))) for _ in range(2)],
    "a value too many": lambda o: o.add_external_initializers(["w"], [OrtValue(np.ones(2))] * 2),
    "a file without a length": lambda o: o.add_external_initializers_from_files_in_memory(["f"], [b"ab"], []),
    "a file too long": lambda o: o.add_external_initializers_from_files_in_memory(["f"], [b"ab"], [3]),
    "an empty key": lambda o: o.add_session_config_entry("", "1"),
    "threads below none": lambda o: setattr(o, "intra_op_num_threads", -1),
    "threads without end": lambda o: setattr(o, "intra_op_num_threads", 257),
    "a key too long": lambda o: o.add_session_config_entry("k" * 1025, "1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_refused(case):
    """onnxruntime raises RuntimeError for most of these."""
    with pytest.raises(InvalidArgument) as caught:
        REFUSED[case](SessionOptions())
    assert isinstance(caught.value, RuntimeError) and isinstance(caught.value, ValueError)


WRONG_TYPES = [
    *(("intra_op_num_threads", value) for value in ("4", True, None)),
    *(("inter_op_num_threads", value) for value in (1.5, 1 << 31)),
    *(("logid", value) for value in (1, None, [])),
    *(("enable_profiling", value) for value in ("yes", [])),
    *(("execution_mode", value) for value in ("x", None, 1.5, True, 7, GraphOptimizationLevel.ORT_ENABLE_BASIC)),
    *(("graph_optimization_level", value) for value in ("all", None, 1.0, -1, ExecutionMode.ORT_PARALLEL)),
]


@pytest.mark.parametrize(("name", "value"), WRONG_TYPES)
def test_types_are_checked(name, value):
    """With native onnxruntime's error for each."""
    with pytest.raises(TypeError, match=name):
        setattr(SessionOptions(), name, value)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        *(("enable_profiling", value, bool(value)) for value in (None, 0, 1, 1.5, np.True_)),
        *(("logid", value, "x") for value in ("x", b"x")),
        ("inter_op_num_threads", np.int32(3), 3),
        ("graph_optimization_level", 1, GraphOptimizationLevel.ORT_ENABLE_BASIC),
    ],
)
def test_types_that_are_taken(name, value, kept):
    """As accepted by native onnxruntime, and numbers for choices."""
    options = SessionOptions()
    setattr(options, name, value)
    assert getattr(options, name) == kept and type(getattr(options, name)) is type(kept)


def test_a_session_keeps_a_copy():
    options = SessionOptions()
    copy = options._copy()
    options.add_session_config_entry("key", "1")
    options.add_free_dimension_override_by_name("N", 1)
    options.set_load_cancellation_flag(True)
    assert copy.config_entries == {} and copy.free_dimensions_by_name == {}
    assert copy._load_cancelled == [True]


def test_native_libraries_are_refused():
    with pytest.raises(NotImplemented, match="browser"):
        SessionOptions().register_custom_ops_library("libops.so")


def test_terminate_calls_what_is_under_way():
    options, called = RunOptions(), []
    options._cancel.append(lambda: called.append(1))
    assert not options.terminate
    options.terminate = True
    assert options.terminate and called == [1]
