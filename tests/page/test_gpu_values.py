"""Values on the GPU, between runs and between sessions: their places, their owners, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper

from py_ort import OrtValue, SessionOptions
from py_ort.exceptions import InvalidArgument

pytestmark = pytest.mark.browser
ROWS = 30_000
X = np.random.default_rng(3).standard_normal((ROWS, 3)).astype(np.float32)
SCALE = np.array([1, 10, 100], np.float32)


def at(session: Any, array: np.ndarray) -> OrtValue:
    """An array as a value in the session's page."""
    value = session.create_ortvalue_from_shape_and_type(array.shape, array.dtype, "webgpu")
    value.update_inplace(array)
    return value


def preferring(location: Any) -> SessionOptions:
    options = SessionOptions()
    options.preferred_output_location = location
    return options


def test_a_chain_of_sessions_moves_no_tensor_over_the_websocket(new_session):
    """Two sessions, the output of one the input of the other: only commands of some hundred bytes are sent."""
    one, two = (new_session(small_models.add(), preferring("webgpu"), providers=["webgpu"]) for _ in range(2))
    x, scale = at(one, X), at(one, SCALE)
    for step in range(4):
        before = one.stats()["traffic"]
        (between,) = one.run(None, {"x": x, "scale": scale})
        (last,) = two.run(None, {"x": between, "scale": scale})
        after = one.stats()["traffic"]
        for way in ("sent", "received"):
            # Two runs and two answers, and one stats() with all its counters.
            assert after[way] - before[way] < 20_000 < X.nbytes / 10, (step, way)
        for session in (one, two):
            counters = session.stats()["last_run"]["counters"]
            assert (counters["uploads"], counters["downloads"]) == (0, 0)
        between.release()
    assert one.stats()["last_run"]["replayed"] and two.stats()["last_run"]["replayed"]
    np.testing.assert_array_equal(last.numpy(), X + SCALE + SCALE)


def test_an_output_is_written_where_it_is_bound(new_session):
    session = new_session(small_models.add(), providers=["webgpu"])
    target, binding = at(session, np.zeros_like(X)), session.io_binding()
    binding.bind_ortvalue_input("x", target)  # its own output is its next input
    binding.bind_cpu_input("scale", SCALE)
    binding.bind_ortvalue_output("y", target)
    for step in range(1, 4):
        session.run_with_iobinding(binding)
        assert binding.get_outputs() == [target]
        np.testing.assert_array_equal(target.numpy()[:5], [SCALE * step] * 5)
    counters = session.stats()["last_run"]["counters"]
    assert (counters["buffers"], counters["downloads"], counters["submits"]) == (0, 0, 1)


def two_outputs() -> bytes:
    """y = -x on the GPU, n = the strings s on the CPU."""
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, [2]) for name in ("s", "n")]
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["s"], ["n"])]
    inputs = [small_models.floats("x", ["N"]), text[0]]
    return small_models.model(nodes, inputs, [small_models.floats("y", ["N"]), text[1]])


FEEDS = {"x": np.array([1, -2], np.float32), "s": np.array(["a", "b"])}
#: preferred_output_location -> the place of y.
LOCATIONS = {"cpu": "cpu", "gpu-buffer": "webgpu", "webgpu": "webgpu"}


@pytest.mark.parametrize(
    "location, place", [*LOCATIONS.items(), ({"y": "gpu-buffer"}, "webgpu"), ({"n": "cpu"}, "cpu")]
)
def test_preferred_output_location(new_session, location, place):
    session = new_session(two_outputs(), preferring(location), providers=["webgpu"])
    for _ in range(2):
        y, n = session.run(None, FEEDS)
        assert isinstance(y, OrtValue if place == "webgpu" else np.ndarray)
        assert n.tolist() == ["a", "b"]  # strings cannot go to the GPU
        values = session.run_with_ort_values(["y"], {name: OrtValue(array) for name, array in FEEDS.items()})
        assert [value.device_name() for value in values] == [place]
        for value in (y, *values):
            np.testing.assert_array_equal(np.asarray(value), [-1, 2])
    binding = session.io_binding()  # selects the places of its outputs itself
    for name, array in FEEDS.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "cpu"


def test_locations_that_are_none(new_session, caplog):
    with pytest.raises(InvalidArgument, match="'cpu' and 'webgpu'"):
        preferring("disk")
    with pytest.raises(TypeError, match="preferred_output_location"):
        preferring(3)
    with pytest.raises(InvalidArgument, match="no output 'z': it has 'y'"):
        new_session(small_models.add(), preferring({"z": "webgpu"}), providers=["webgpu"])
    options = preferring("webgpu")
    options.log_severity_level = 2
    session = new_session(small_models.add(), options, providers=["wasm"])
    assert "outputs stay on the CPU" in caplog.text
    assert isinstance(session.run(None, {"x": X[:1], "scale": SCALE})[0], np.ndarray)


@pytest.mark.parametrize("dtype", ["double", "string"])
def test_outputs_that_cannot_be_on_the_gpu(new_session, dtype):
    cast = helper.make_node("Cast", ["x"], ["d"], to=getattr(TensorProto, dtype.upper()))
    outputs = [
        small_models.floats("y", ["N"]),
        helper.make_tensor_value_info("d", getattr(TensorProto, dtype.upper()), ["N"]),
    ]
    neg = helper.make_node("Neg", ["x"], ["y"])
    model = small_models.model([neg, cast], [small_models.floats("x", ["N"])], outputs)
    words = f"output 'd' is tensor.{dtype}., which has no form on webgpu"
    with pytest.raises(InvalidArgument, match=words):
        new_session(model, preferring({"d": "webgpu"}), providers=["webgpu"])
    session = new_session(model, preferring("webgpu"), providers=["webgpu"])
    y, d = session.run(None, {"x": X[:, 0]})
    assert y.device_name() == "webgpu" and isinstance(d, np.ndarray)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X[:, 0])
    binding.bind_output("d", "webgpu")
    with pytest.raises(InvalidArgument, match=words):
        session.run_with_iobinding(binding)
    y.release()
    assert session.stats()["page"]["devices"]["0"]["tensors"] == 0


def test_values_for_sessions_without_a_gpu(new_session):
    """A session on the CPU reads a value on the GPU of the same page in the page, and copies an output into one."""
    on_gpu, on_cpu = (new_session(small_models.add(), providers=[name]) for name in ("webgpu", "wasm"))
    (y,) = on_cpu.run(None, {"x": at(on_gpu, X), "scale": SCALE})
    np.testing.assert_array_equal(y, X + SCALE)
    binding = on_cpu.io_binding()
    binding.bind_cpu_input("x", X[:2])
    binding.bind_cpu_input("scale", SCALE)
    target = at(on_gpu, np.zeros_like(X[:2]))
    binding.bind_ortvalue_output("y", target)
    on_cpu.run_with_iobinding(binding)
    np.testing.assert_array_equal(target.numpy(), X[:2] + SCALE)
    assert target.device_name() == "webgpu" and binding.get_outputs() == [target]
    binding.bind_ortvalue_output("y", at(on_gpu, X))
    with pytest.raises(InvalidArgument, match=r"this value is float32\[30000, 3\]; got float32\[2, 3\]"):
        on_cpu.run_with_iobinding(binding)


#: The fault -> a value for the output, given the session; words of the error.
WRONG = {
    "shape": (
        lambda s: at(s, np.zeros((3, 2), np.float32)),
        r"float32\[2,3\]; the value bound to it is float32\[3,2\]",
    ),
    "size": (lambda s: at(s, np.zeros((1, 3), np.float32)), r"bound to it is float32\[1,3\]"),
    "type": (lambda s: at(s, np.zeros((2, 3), np.int32)), r"bound to it is int32\[2,3\]"),
}


@pytest.mark.parametrize("make, words", WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("first", [True, False], ids=["first run", "later"])
def test_outputs_that_do_not_fit(new_session, make, words, first):
    session = new_session(small_models.add(), providers=["webgpu"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", X[:2])
    binding.bind_cpu_input("scale", SCALE)
    if not first:
        session.run(None, {"x": X[:2], "scale": SCALE})
    value = make(session)
    before = value.numpy()
    binding.bind_ortvalue_output("y", value)
    with pytest.raises(InvalidArgument, match=words):
        session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), before)
    np.testing.assert_array_equal(session.run(None, {"x": X[:2], "scale": SCALE})[0], X[:2] + SCALE)


def test_after_release(new_session):
    session = new_session(small_models.add(), providers=["webgpu"])
    value, binding = at(session, X[:2]), session.io_binding()
    binding.bind_cpu_input("x", X[:2])
    binding.bind_cpu_input("scale", SCALE)
    binding.bind_ortvalue_output("y", value)
    value.release()
    value.release()  # nothing remains to release
    for use in (
        value.numpy,
        lambda: value.update_inplace(X[:2]),
        lambda: session.run(None, {"x": value, "scale": SCALE}),
        lambda: session.run_with_iobinding(binding),
    ):
        with pytest.raises(InvalidArgument, match="was freed"):
            use()
    np.testing.assert_array_equal(session.run(None, {"x": X[:2], "scale": SCALE})[0], X[:2] + SCALE)


def test_values_outlive_their_session(new_session):
    session, other = (new_session(small_models.add(), preferring("webgpu"), providers=["webgpu"]) for _ in range(2))
    (y,) = session.run(None, {"x": X[:2], "scale": SCALE})
    session.close()
    (again,) = other.run(None, {"x": y, "scale": SCALE})
    np.testing.assert_array_equal(again.numpy(), X[:2] + SCALE + SCALE)


def test_a_run_that_fails_leaves_nothing_behind(new_session):
    """The first output would stay on the GPU, the second one does not fit."""
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
    names = [small_models.floats(name, ["N"]) for name in "yz"]
    session = new_session(small_models.model(nodes, [small_models.floats("x", ["N"])], names), providers=["webgpu"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", SCALE)
    binding.bind_output("y", "webgpu")
    binding.bind_ortvalue_output("z", at(session, np.zeros(4, np.float32)))
    before = session.stats()["page"]["devices"]["0"]["tensors"]
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r'output "z" is float32\[3\]'):
            session.run_with_iobinding(binding)
    assert session.stats()["page"]["devices"]["0"]["tensors"] == before
    binding.bind_ortvalue_output("z", at(session, SCALE))
    session.run_with_iobinding(binding)
    assert [y.tolist() for y in binding.copy_outputs_to_cpu()] == [(-SCALE).tolist(), SCALE.tolist()]
