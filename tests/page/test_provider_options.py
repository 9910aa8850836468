"""Effects of the WebGPU provider's options: separate devices, buffer caches, validation, layout."""

from typing import Any

import numpy as np
import pytest
import small_models
from session_settings import settings
from text_form import parse

from py_ort import OrtValue, RunOptions
from py_ort.exceptions import InvalidArgument
from py_ort.providers import PROVIDERS

SCALE = np.array([1, 10, 100], np.float32)


def webgpu(**options: Any) -> list[Any]:
    return [("webgpu", options)]


def feeds(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.full((rows, 3), rows, np.float32), "scale": SCALE}


# --- given options and reports


def test_options_are_told_with_their_defaults(new_session):
    options = {"storageBufferCacheMode": "simple", "forceCpuNodeNames": ["a", "b"], "enableGraphCapture": False}
    session = new_session(small_models.add(), providers=["webgpu", "wasm"], provider_options=[options, {}])
    told = session.get_provider_options()["WebGpuExecutionProvider"]
    assert told["storageBufferCacheMode"] == "simple" and told["forceCpuNodeNames"] == "a\nb"
    assert told["uniformBufferCacheMode"] == "simple" and told["queryResolveBufferCacheMode"] == "disabled"
    assert told["defaultBufferCacheMode"] == "disabled" and told["deviceId"] == "0"
    assert set(told) == {option.key for option in PROVIDERS["webgpu"].options} and all(
        isinstance(value, str) for value in told.values()
    )
    assert session.get_provider_options()["CPUExecutionProvider"] == {"simd": "auto"}
    modes = {name: cache["mode"] for name, cache in session.stats()["session"]["buffer_caches"].items()}
    assert modes == {"storage": "simple", "uniform": "simple", "queryResolve": "disabled", "default": "disabled"}


def test_options_among_configuration_entries(new_session):
    options = settings(entries={"ep.webgpuexecutionprovider.preferredLayout": "NCHW"})
    options.add_provider("WebGpuExecutionProvider", {"validationMode": "full"})
    session = new_session(small_models.add(), options)
    told = session.get_provider_options()["WebGpuExecutionProvider"]
    assert (told["preferredLayout"], told["validationMode"]) == ("NCHW", "full")


@pytest.mark.parametrize("layout, nodes", [("NHWC", "com.ms.internal.nhwc"), ("NCHW", "")])
def test_the_layout_reaches_the_compiler(new_session, layout, nodes):
    text = "g (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w) }"
    made = parse(text, {"w": np.ones((4, 3, 3, 3), np.float32)})
    session = new_session(made, providers=webgpu(preferredLayout=layout))
    assert {node.domain for node in session.placement().nodes if node.op_type == "Conv"} == {nodes}
    np.testing.assert_array_equal(session.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})[0], 27)


# --- devices


def test_sessions_of_one_id_share_a_device(new_session):
    one, two, other = (new_session(small_models.add(), providers=webgpu(deviceId=i)) for i in (21, 21, 22))
    for session in (one, two, other):
        np.testing.assert_array_equal(session.run(None, feeds(2))[0], feeds(2)["x"] + SCALE)
    assert {"21", "22"} <= set(one.stats()["page"]["devices"])
    value = one.create_ortvalue_from_shape_and_type([2, 3], np.float32, "webgpu")
    assert two.run(None, {"x": value, "scale": SCALE})[0].tolist() == [SCALE.tolist()] * 2
    with pytest.raises(InvalidArgument, match='input "x" is on device 21 of webgpu, and this session on device 22'):
        other.run(None, {"x": value, "scale": SCALE})
    binding = other.io_binding()
    for name, array in feeds(2).items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_output("y", value)
    with pytest.raises(InvalidArgument, match='bound to output "y" is on device 21'):
        other.run_with_iobinding(binding)
    with pytest.raises(InvalidArgument, match="on device 22 of webgpu: nothing of device 21"):
        binding.bind_output("y", "webgpu", 21)
    np.testing.assert_array_equal(other.run(None, feeds(1))[0], feeds(1)["x"] + SCALE)
    value.release()
    one.close()
    assert "21" in other.stats()["page"]["devices"]  # the second session still exists
    two.close()
    assert "21" not in other.stats()["page"]["devices"]
    again = new_session(small_models.add(), providers=webgpu(deviceId=21))
    np.testing.assert_array_equal(again.run(None, feeds(2))[0], feeds(2)["x"] + SCALE)


def test_a_device_may_outlive_its_sessions(new_session):
    keeper = new_session(small_models.add(), providers=["webgpu"])
    new_session(small_models.add(), providers=webgpu(deviceId=23, preserveDevice=True)).close()
    assert "23" in keeper.stats()["page"]["devices"]


def test_subgroup_matrices_that_are_not_there_are_said(new_session, caplog):
    with caplog.at_level("WARNING", "py_ort"):
        session = new_session(small_models.add(), providers=webgpu(deviceId=31, subgroupMatrix=True))
    assert "subgroupMatrix has no effect: device 31 has no subgroup matrices" in caplog.text
    assert session.get_provider_options()["WebGpuExecutionProvider"]["subgroupMatrix"] == "1"
    new_session(small_models.add(), providers=webgpu(deviceId=32))
    with pytest.raises(InvalidArgument, match="device 32 was opened without subgroupMatrix"):
        new_session(small_models.add(), providers=webgpu(deviceId=32, subgroupMatrix=True))


def test_adapters_of_ones_own(new_session):
    options = {"deviceId": 24, "forceFallbackAdapter": "1", "powerPreference": "low-power"}
    session = new_session(small_models.add(), providers=webgpu(**options))
    assert "swiftshader" in session.adapter
    new_session(small_models.add(), providers=webgpu(deviceId=24))  # uses an existing device
    with pytest.raises(InvalidArgument, match="device 24 was opened with powerPreference low-power"):
        new_session(small_models.add(), providers=webgpu(deviceId=24, powerPreference="high-performance"))


# --- caches

#: Mode -> buffers kept after three freed outputs of one size; hits of such outputs; hits of slightly larger ones.
STORAGE = {"disabled": (0, 0, 0), "lazyRelease": (1, 0, 0), "simple": (1, 2, 0), "bucket": (1, 2, 1)}


@pytest.mark.parametrize("mode", STORAGE)
def test_storage_buffers(new_session, mode):
    """Outputs that were left on the GPU and freed: their buffers are kept or destroyed by the mode."""
    kept, same, larger = STORAGE[mode]
    providers = webgpu(deviceId=31 + list(STORAGE).index(mode), storageBufferCacheMode=mode)
    session = new_session(small_models.add(), providers=providers)
    binding = session.io_binding()
    binding.bind_ortvalue_input("scale", OrtValue(SCALE))
    binding.bind_output("y", "webgpu")

    def freed(rows: int) -> dict[str, Any]:
        """Run, free the output, and wait until the page has released it."""
        binding.bind_cpu_input("x", feeds(rows)["x"])
        session.run_with_iobinding(binding)
        (y,) = binding.get_outputs()
        np.testing.assert_array_equal(y.numpy(), feeds(rows)["x"] + SCALE)
        y.release()
        return session.stats()["session"]["buffer_caches"]["storage"]

    before = freed(1000)
    for _ in range(2):
        cache = freed(1000)
    assert cache["mode"] == mode
    assert cache["hits"] - before["hits"] == same
    assert cache["buffers"] == kept and cache["bytes"] == (kept and pytest.approx(12_000, rel=0.25))
    session.run(None, feeds(1000))  # the end of a run frees lazily released buffers
    assert session.stats()["session"]["buffer_caches"]["storage"]["buffers"] == (0 if mode == "lazyRelease" else kept)
    session.run(None, feeds(1010))  # its own memory is made now, and not counted below
    hits = session.stats()["session"]["buffer_caches"]["storage"]["hits"]
    assert freed(1010)["hits"] - hits == larger


def test_uniform_buffers(new_session):
    """A dropped recording leaves its uniforms to the next one, in the modes that keep them."""
    for device_id, (mode, hits) in enumerate({"disabled": 0, "lazyRelease": 0, "simple": 4, "bucket": 4}.items(), 41):
        options = {"deviceId": device_id, "uniformBufferCacheMode": mode}
        session = new_session(small_models.add(), providers=webgpu(**options))
        for rows in range(1, 21):  # four more than a session keeps
            session.run(None, feeds(rows))
        assert session.stats()["session"]["buffer_caches"]["uniform"]["hits"] == hits, mode


@pytest.mark.parametrize("mode, kept", {"disabled": (0, 0), "lazyRelease": (1, 0), "simple": (1, 0)}.items())
def test_uniform_buffers_of_a_capture(new_session, mode, kept):
    """Buffers of a released capture: how many wait then, and after the next run, which wants as many bytes."""
    options = {"deviceId": 46, "enableGraphCapture": True, "uniformBufferCacheMode": mode}
    session = new_session(small_models.add(), providers=webgpu(**options))

    def waiting() -> int:
        return session.stats()["session"]["buffer_caches"]["uniform"]["buffers"]

    for graph_id in ("1", "2"):
        run_options = RunOptions()
        run_options.add_run_config_entry("gpu_graph_id", graph_id)
        session.run(None, feeds(2), run_options)
        if graph_id == "1":
            session.release_captured_graph(1)
            assert waiting() == kept[0]
    assert waiting() == kept[1]


@pytest.mark.parametrize("mode, kept", {"disabled": 0, "lazyRelease": 0, "simple": 1, "bucket": 1}.items())
def test_staging_buffers(new_session, mode, kept):
    """The buffer that outputs pass through stays with the session; one grown too small goes to the default cache."""
    session = new_session(small_models.add(), providers=webgpu(deviceId=51, defaultBufferCacheMode=mode))
    for rows in (2, 2, 2, 50_000):
        session.run(None, feeds(rows))
    session.run(None, feeds(2))
    assert session.stats()["last_run"]["counters"]["buffers"] == 0
    assert session.stats()["session"]["buffer_caches"]["default"]["buffers"] == kept


@pytest.mark.parametrize("mode, hits", {"disabled": 0, "simple": 2, "bucket": 2}.items())
def test_query_buffers(new_session, tmp_path, mode, hits):
    """Timestamps of profiled runs."""
    providers = webgpu(deviceId=52, queryResolveBufferCacheMode=mode)
    session = new_session(small_models.add(), settings(tmp_path), providers=providers)
    for _ in range(3):
        session.run(None, feeds(2))
    cache = session.stats()["session"]["buffer_caches"]["queryResolve"]
    assert (cache["mode"], cache["hits"], cache["hits"] + cache["misses"]) == (mode, hits, 3)


def test_caches_go_with_the_last_session(new_session):
    keeper = new_session(small_models.add(), providers=["webgpu"])
    before = keeper.stats()["page"]["gpu_bytes"]
    session = new_session(small_models.add(), providers=webgpu(storageBufferCacheMode="simple"))
    for rows in range(1000, 1020):
        session.run(None, feeds(rows))
    assert keeper.stats()["page"]["gpu_bytes"] > before
    session.close()
    assert keeper.stats()["page"]["gpu_bytes"] == before


@pytest.mark.parametrize("mode", ["disabled", "wgpuOnly", "basic", "full"])
def test_validation_modes_run(new_session, mode):
    session = new_session(small_models.add(), providers=webgpu(validationMode=mode))
    for _ in range(2):
        np.testing.assert_array_equal(session.run(None, feeds(2))[0], feeds(2)["x"] + SCALE)


def test_nodes_forced_to_the_cpu(new_session):
    model = parse("g (float[3] x) => (float[3] y) { t = Neg(x)  y = Exp(t) }")
    model.graph.node[1].name = "two"
    for given in (["two"], "two", "two\nthree"):
        session = new_session(model, providers=webgpu(forceCpuNodeNames=given))
        assert session.placement().counts() == {"webgpu": 1, "wasm": 1}
