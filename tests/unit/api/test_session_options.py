"""Options as onnxruntime has them: defaults, typos, and what does nothing here."""

import pytest

from py_ort import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from py_ort.exceptions import InvalidArgument, NotImplemented


def test_defaults_are_onnxruntimes():
    native = pytest.importorskip("onnxruntime").SessionOptions()
    ours = SessionOptions()
    for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_profiling", "inter_op_num_threads", "logid"):
        assert getattr(ours, name) == getattr(native, name), name
    for name in ("graph_optimization_level", "execution_mode"):
        assert int(getattr(ours, name)) == int(getattr(native, name)), name


def test_enums_have_onnxruntimes_numbers():
    onnxruntime = pytest.importorskip("onnxruntime")
    for ours, native in (
        (GraphOptimizationLevel, onnxruntime.GraphOptimizationLevel),
        (ExecutionMode, onnxruntime.ExecutionMode),
    ):
        for member in ours:
            assert int(getattr(native, member.name)) == int(member)


def test_a_typo_is_not_swallowed():
    with pytest.raises(AttributeError, match="intra_op_threads"):
        SessionOptions().intra_op_threads = 4


def test_what_has_no_effect_is_known():
    options = SessionOptions()
    assert options.changed_without_effect() == []
    options.enable_profiling = True
    options.intra_op_num_threads = 4
    assert options.changed_without_effect() == ["enable_profiling", "intra_op_num_threads"]


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
    options.add_external_initializers(["w"], ["value"])
    assert options.free_dimensions_by_name == {"batch": 4}
    assert options.free_dimensions_by_denotation == {"DATA_BATCH": 2}
    assert options.initializers == {"w": "value"}


def test_native_libraries_are_refused():
    with pytest.raises(NotImplemented, match="browser"):
        SessionOptions().register_custom_ops_library("libops.so")


def test_terminate_calls_what_is_under_way():
    options, called = RunOptions(), []
    options._cancel.append(lambda: called.append(1))
    assert not options.terminate
    options.terminate = True
    assert options.terminate and called == [1]
