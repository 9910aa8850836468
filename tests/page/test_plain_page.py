"""Resolve, commit and replay in a plain page: correct each time, without making anything twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx import helper, numpy_helper
from plain_page import GpuTensor, PageError, PlainPage

from py_ort.schema.gen.ErrorCode import ErrorCode

pytestmark = pytest.mark.browser
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, list]],
    outputs: dict[str, tuple[int, list | None]],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, *info) for name, info in inputs.items()],
        [helper.make_tensor_value_info(name, *info) for name, info in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def node(op: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"{op}_{outputs}", **attributes)


def randn(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


CHAIN = model(
    [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "a b", "c"), node("Neg", "c", "y")],
    {"x": (FLOAT, ["n", 4])},
    {"y": (FLOAT, ["n", 4])},
)


def chain(x: np.ndarray) -> np.ndarray:
    a = np.maximum(x, 0)
    return -(a + np.exp(a))


def test_the_second_run_of_a_shape_makes_nothing(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN)
    for rows, replayed in [(3, False), (3, True), (700, False), (3, True), (700, True), (0, False), (0, True)]:
        x = randn(rows, 4)
        ran = session.run({"x": x})
        assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
        assert ran.info["replayed"] == replayed, rows
        assert ran.info["segments"] == 1
        if replayed:
            assert ran.made == 0
    session.release()


def test_memory_is_shared_along_a_chain(plain_page: PlainPage) -> None:
    nodes = [node("Neg", f"t{i}", f"t{i + 1}") for i in range(12)]
    session = plain_page.load(model(nodes, {"t0": (FLOAT, [256, 256])}, {"t12": (FLOAT, [256, 256])}))
    x = randn(256, 256)
    assert_array_equal(session.run({"t0": x}).outputs["t12"], x)
    arena = plain_page.call("stats")["sessions"][str(session.id)]["arena_bytes"]
    assert arena == x.nbytes  # each output is in the place of its input
    session.release()


@pytest.mark.parametrize("on_cpu", [[], ["Exp_b"]], ids=["one segment", "two segments"])
def test_pipelines_are_compiled_at_creation_when_shapes_are_known(plain_page: PlainPage, on_cpu: list[str]) -> None:
    nodes = [node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "a b", "c"), node("Neg", "c", "y")]
    session = plain_page.load(model(nodes, {"x": (FLOAT, [5, 7])}, {"y": (FLOAT, [5, 7])}), on_cpu)
    x = randn(5, 7)
    ran = session.run({"x": x})
    assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
    assert ran.info["counters"]["pipelines"] == 0
    assert ran.info["counters"]["dispatches"] == 4 - len(on_cpu)
    session.release()


def test_a_cpu_node_between_gpu_nodes_makes_two_segments(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN, on_cpu=["Exp_b"])
    for i in range(3):
        x = randn(5, 4) + i
        ran = session.run({"x": x})
        assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
        assert ran.info["segments"] == 2
        assert ran.info["counters"]["suspensions"] == 1
        assert ran.info["replayed"] == (i > 0)
        if i > 0:
            assert ran.made == 0
    assert plain_page.call("stats")["suspending_imports"] == ["jsepCopyAsync"]
    session.release()


def test_shapes_that_depend_on_contents(plain_page: PlainPage) -> None:
    nodes = [
        node("Neg", "x", "a"),
        node("Cast", "a", "n", to=INT64),
        node("ConstantOfShape", "n", "c", value=numpy_helper.from_array(np.ones(1, np.float32))),
        node("Neg", "c", "y"),
    ]
    session = plain_page.load(model(nodes, {"x": (FLOAT, [2])}, {"y": (FLOAT, ["k", "l"])}))
    for shape in [(2, 3), (2, 3), (700, 5), (0, 4), (2, 3)]:
        ran = session.run({"x": -np.array(shape, np.float32)})
        assert_array_equal(ran.outputs["y"], -np.ones(shape, np.float32))
        assert ran.info["segments"] == 2
    session.release()


def test_host_inputs_that_change_are_noticed(plain_page: PlainPage) -> None:
    session = plain_page.load(
        model(
            [node("Neg", "x", "a"), node("Reshape", "a s", "y")],
            {"x": (FLOAT, [6]), "s": (INT64, [2])},
            {"y": (FLOAT, None)},
        )
    )
    for shape in [(2, 3), (2, 3), (3, 2), (6, 1)]:
        ran = session.run({"x": randn(6), "s": np.array(shape, np.int64)})
        assert_array_equal(ran.outputs["y"], -randn(6).reshape(shape))
    session.release()


def test_integers_and_bools_keep_their_types(plain_page: PlainPage) -> None:
    nodes = [node("Gather", "x i", "f"), node("Neg", "f", "g"), node("Not", "b", "c")]
    inputs = {"x": (FLOAT, ["n"]), "i": (INT64, ["n"]), "b": (BOOL, ["n"])}
    session = plain_page.load(model(nodes, inputs, {"g": (FLOAT, ["n"]), "c": (BOOL, ["n"]), "i": (INT64, ["n"])}))
    x, i, b = randn(3), np.array([1, -1, 0]), np.array([True, False, True])
    for _ in range(2):
        ran = session.run({"x": x, "i": i, "b": b})
        assert ran.info["counters"]["dispatches"] == len(nodes)
        assert_array_equal(ran.outputs["g"], -x[i], strict=True)
        assert_array_equal(ran.outputs["c"], ~b, strict=True)
        assert_array_equal(ran.outputs["i"], i, strict=True)
    with pytest.raises(PageError, match="does not fit the 32 bits"):
        session.run({"x": x, "i": np.array([0, 0, 2**40]), "b": b})
    session.release()


def test_weights_arrive_whole(plain_page: PlainPage) -> None:
    """Several ranges and chunks, weights that cross them, and integers that are widened on the way."""
    sizes = [3, 1_000_003, 1, 700_001, 64]
    constants = {f"w{i}": randn(size) for i, size in enumerate(sizes)} | {"k": np.arange(-40_000, 40_000)}
    nodes = [node("Neg", name, f"{name}_y") for name in constants]
    outputs = {f"{name}_y": (INT64 if name == "k" else FLOAT, list(array.shape)) for name, array in constants.items()}
    session = plain_page.load(
        model([*nodes, node("Neg", "x", "y")], {"x": (FLOAT, [1])}, outputs | {"y": (FLOAT, [1])}, constants)
    )
    outputs = session.run({"x": randn(1)}).outputs
    for name, array in constants.items():
        assert_array_equal(outputs[f"{name}_y"], -array, strict=True)
    session.release()


def test_outputs_stay_on_the_gpu_and_are_fed_again(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN)
    x = randn(3, 4)
    kept = session.run({"x": x}, outputs_on_gpu=["y"]).outputs["y"]
    assert isinstance(kept, GpuTensor)
    for again in range(3):
        ran = session.run({"x": kept})
        assert_allclose(ran.outputs["y"], chain(chain(x)), rtol=1e-5)
        assert ran.info["counters"]["uploads"] == 0
        assert ran.info["replayed"] == (again > 0)
    with pytest.raises(PageError, match="no GPU buffer 999999"):
        session.run({"x": GpuTensor("float32", [3, 4], 999999)})
    session.release()


def test_a_profile_has_a_row_for_each_dispatch(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN, on_cpu=["Exp_b"])
    for _ in range(2):
        ran = session.run({"x": randn(3, 4)}, profile="dispatches")
        assert_allclose(ran.outputs["y"], chain(randn(3, 4)), rtol=1e-5)
        rows = ran.info["profile"]
        assert len(rows) == ran.info["counters"]["dispatches"] == 3
        assert all(row["ms"] >= 0 and row["kernel"] for row in rows)
    assert not session.run({"x": randn(3, 4)}).info.get("profile")
    session.release()


def test_a_profile_of_passes_has_those_of_each_segment(plain_page: PlainPage) -> None:
    for on_cpu, passes in ([], 1), (["Exp_b"], 2):
        session = plain_page.load(CHAIN, on_cpu)
        for _ in range(2):
            ran = session.run({"x": randn(3, 4)}, profile="passes")
            assert_allclose(ran.outputs["y"], chain(randn(3, 4)), rtol=1e-5)
            gpu = ran.info["gpu"]
            assert gpu["passes"] == passes == ran.info["segments"] and ran.info["counters"]["dispatches"] > passes
            assert 0 < gpu["ms"] <= gpu["span_ms"] <= ran.info["run_ms"]
            assert (gpu["ms"] < gpu["span_ms"]) == (passes > 1), "between segments the GPU waits"
            assert ran.info["timeline"] and "profile" not in ran.info
        for profile in ("dispatches", None):
            assert "gpu" not in session.run({"x": randn(3, 4)}, profile=profile).info
        session.release()


def test_runs_at_once_do_not_mix(plain_page: PlainPage) -> None:
    for on_cpu in ([], ["Exp_b"]):
        session = plain_page.load(CHAIN, on_cpu)
        xs = [randn(2 + i % 3, 4) * i for i in range(9)]
        for x, ran in zip(xs, plain_page.run_at_once(session, [{"x": x} for x in xs]), strict=True):
            assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
        session.release()


def test_old_recordings_go(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN)
    for rows in range(1, 25):
        session.run({"x": randn(rows * 300, 4)})
    stats = plain_page.call("stats")["sessions"][str(session.id)]
    assert stats["recordings"] == 16
    largest = 24 * 300 * 16
    assert stats["arena_bytes"] < 16 * 4 * largest
    assert session.run({"x": randn(300, 4)}).info["replayed"] is False
    session.release()


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, 'no feed for the input "x"'),
        ({"x": randn(1, 4), "z": randn(1)}, 'no input named "z"'),
        ({"x": np.ones((1, 4), np.int32)}, "wants float32, got int32"),
        ({"x": randn(1, 5)}, r"wants shape \[\?,4\], got \[1,5\]"),
        ({"x": randn(4)}, r"wants shape \[\?,4\], got \[4\]"),
    ],
    ids=["missing", "extra", "dtype", "dim", "rank"],
)
def test_wrong_feeds(plain_page: PlainPage, feeds: dict[str, np.ndarray], text: str) -> None:
    session = plain_page.load(CHAIN)
    with pytest.raises(PageError, match=text) as error:
        session.run(feeds)
    assert error.value.code == ErrorCode.invalid_argument
    session.release()


def test_a_kernel_that_fails_names_its_node_and_the_session_goes_on(plain_page: PlainPage) -> None:
    nodes = [node("Neg", "x", "a"), node("Add", "a z", "y")]
    session = plain_page.load(model(nodes, {"x": (FLOAT, ["n"]), "z": (FLOAT, ["m"])}, {"y": (FLOAT, None)}))
    with pytest.raises(PageError) as error:
        session.run({"x": randn(3), "z": randn(2)})
    assert error.value.code == ErrorCode.runtime_exception
    assert error.value.place["opType"] == "Add"
    assert error.value.place["node"] == "Add_y"
    assert_array_equal(session.run({"x": randn(3), "z": randn(3)}).outputs["y"], np.zeros(3, np.float32))
    session.release()


def test_a_cancelled_run_says_so(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN, on_cpu=["Exp_b"])
    x = randn(3, 4)
    with pytest.raises(PageError) as error:
        for _ in range(20):
            session.run({"x": x}, cancel_after=0)
    assert error.value.code == ErrorCode.cancelled
    assert_allclose(session.run({"x": x}).outputs["y"], chain(x), rtol=1e-5)
    session.release()


def test_a_released_session_is_gone(plain_page: PlainPage) -> None:
    before = plain_page.call("stats")["gpu_bytes"]
    session = plain_page.load(CHAIN)
    session.run({"x": randn(3, 4)})
    session.release()
    assert plain_page.call("stats")["gpu_bytes"] == before


def test_a_lost_device_fails_its_sessions_and_a_new_one_works(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN)
    x = randn(3, 4)
    session.run({"x": x})
    plain_page.call("loseDevice")
    with pytest.raises(PageError, match="create the session again") as error:
        session.run({"x": x})
    assert error.value.code == ErrorCode.device_lost
    again = plain_page.load(CHAIN)
    assert_allclose(again.run({"x": x}).outputs["y"], chain(x), rtol=1e-5)
    again.release()


def test_a_device_lost_in_the_middle_fails_the_runs_under_way(plain_page: PlainPage) -> None:
    for on_cpu in ([], ["Exp_b"]):
        session = plain_page.load(CHAIN, on_cpu)
        x = randn(1000, 4)
        session.run({"x": x})
        outcomes = plain_page.lose_device_meanwhile(session, {"x": x}, 4)
        assert set(outcomes) <= {"done", ErrorCode.device_lost}, outcomes
        assert ErrorCode.device_lost in outcomes


def test_a_shader_that_does_not_compile_shows_the_line(plain_page: PlainPage) -> None:
    with pytest.raises(PageError, match=r"nonsense__any does not compile(.|\n)*nobody(.|\n)*y\[0\] = nobody;") as error:
        plain_page.call("compileNonsense")
    assert error.value.code == ErrorCode.shader


def test_an_uncaptured_gpu_error_fails_the_run(plain_page: PlainPage) -> None:
    session = plain_page.load(CHAIN)
    plain_page.call("provokeGpuError")
    with pytest.raises(PageError, match=r"(?s)WebGPU: .*provoked") as error:
        session.run({"x": randn(3, 4)})
    assert error.value.code == ErrorCode.shader
    assert_allclose(session.run({"x": randn(3, 4)}).outputs["y"], chain(randn(3, 4)), rtol=1e-5)
    session.release()
