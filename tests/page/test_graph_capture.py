"""enableGraphCapture: work that a captured run does not repeat, and models that cannot be captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper

from py_ort import OrtValue, RunOptions, SessionOptions
from py_ort.exceptions import InvalidArgument, InvalidGraph

pytestmark = pytest.mark.browser
CAPTURED = [("webgpu", {"enableGraphCapture": True})]
SCALE = np.array([1, 10, 100], np.float32)
#: Objects and questions that no captured run makes.
MADE = ("pipelines", "buffers", "bind_groups", "walks", "suspensions")


def made(session: Any) -> list[int]:
    counters = session.stats()["last_run"]["counters"]
    return [counters[name] for name in MADE]


def feeds(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.full((rows, 3), rows, np.float32), "scale": SCALE}


def run(session: Any, rows: int, graph_id: str | None = None) -> np.ndarray:
    options = RunOptions()
    if graph_id is not None:
        options.add_run_config_entry("gpu_graph_id", graph_id)
    (y,) = session.run(None, feeds(rows), options)
    np.testing.assert_array_equal(y, feeds(rows)["x"] + SCALE)
    return y


def test_each_set_of_shapes_is_captured_once(new_session):
    session = new_session(small_models.add(), providers=CAPTURED)
    for rows, captured in [(2, False), (2, True), (5, False), (2, True), (5, True)]:
        run(session, rows)
        assert (made(session) == [0] * len(MADE)) == captured, rows
    assert session.stats()["session"]["recordings"] == 2


def test_a_chain_of_nodes_with_outputs_bound_on_the_gpu(new_session):
    """With any nodes in between, a captured run is one submit; with bound inputs and outputs it does nothing else."""
    names = [f"t{i}" for i in range(30)]
    nodes = [helper.make_node("Neg", [a], [b]) for a, b in zip(["x", *names], [*names, "y"], strict=True)]
    model = small_models.model(nodes, [small_models.floats("x", [64])], [small_models.floats("y", [64])])
    options = SessionOptions()
    options.graph_optimization_level = 0  # type: ignore[assignment]
    session = new_session(model, options, providers=CAPTURED)
    x = np.arange(64, dtype=np.float32)
    source = session.create_ortvalue_from_shape_and_type([64], np.float32, "webgpu")
    target = session.create_ortvalue_from_shape_and_type([64], np.float32, "webgpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", source)
    binding.bind_ortvalue_output("y", target)
    for step in range(3):
        source.update_inplace(x + step)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(target.numpy(), -(x + step))
        counters = session.stats()["last_run"]["counters"]
        assert counters["dispatches"] == len(nodes)
        if step:
            assert made(session) == [0] * len(MADE)
            assert (counters["submits"], counters["uploads"], counters["downloads"]) == (1, 0, 0)


def test_graph_ids(new_session):
    session = new_session(small_models.add(), providers=CAPTURED)
    nothing = [0] * len(MADE)
    for graph_id, rows, captured in [
        ("1", 2, False),
        ("1", 2, True),
        ("2", 2, False),
        (None, 2, False),
        (None, 2, True),
    ]:
        run(session, rows, graph_id)
        assert (made(session) == nothing) == captured, (graph_id, rows)
    with pytest.raises(
        InvalidArgument, match=r"graph 1 was captured with inputs x: float32\[2,3\], .*, not x: float32\[4,3\]"
    ):
        run(session, 4, "1")
    for _ in range(2):
        run(session, 2, "-1")  # neither captures nor replays: the core walks each time
        assert made(session)[MADE.index("walks")] == 1
    run(session, 2, "2")
    assert made(session) == nothing
    session.release_captured_graph(1)
    run(session, 4, "1")
    assert made(session) != nothing
    session.release_captured_graph()
    run(session, 2)
    assert made(session) != nothing
    run(session, 2, "2")
    assert made(session) == nothing
    for wrong in ("one", "-2"):
        with pytest.raises(InvalidArgument, match="gpu_graph_id is a whole number from -1"):
            run(session, 2, wrong)


def test_graph_ids_without_capture(new_session):
    session = new_session(small_models.add(), providers=["webgpu"])
    with pytest.raises(InvalidArgument, match="enableGraphCapture"):
        run(session, 2, "1")
    run(session, 2)


def branches() -> bytes:
    def branch(name: str, op: str) -> Any:
        node = helper.make_node(op, ["x"], [name])
        return helper.make_graph([node], name, [], [small_models.floats(name, [3])])

    node = helper.make_node(
        "If", ["c"], ["y"], "choose", then_branch=branch("a", "Neg"), else_branch=branch("b", "Exp")
    )
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return small_models.model([node], [flag, small_models.floats("x", [3])], [small_models.floats("y", [3])])


def on_cpu() -> bytes:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], "one"),
        helper.make_node("Exp", ["a"], ["b"], "two"),
        helper.make_node("Neg", ["b"], ["y"], "three"),
    ]
    return small_models.model(nodes, [small_models.floats("x", [3])], [small_models.floats("y", [3])])


def shaped_by_a_feed() -> bytes:
    shape = helper.make_tensor_value_info("s", TensorProto.INT64, [2])
    nodes = [helper.make_node("Neg", ["x"], ["a"], "neg"), helper.make_node("Reshape", ["a", "s"], ["y"], "reshape")]
    return small_models.model(nodes, [small_models.floats("x", [6]), shape], [small_models.floats("y", [None, None])])


REFUSED = {
    "control flow": (branches, {}, r'node "choose" \(If\) is control flow', "choose"),
    "on the CPU": (on_cpu, {"forceCpuNodeNames": ["two"]}, r'node "two" \(Exp\) runs on the CPU', "two"),
    "shapes from a feed": (shaped_by_a_feed, {}, r'node "reshape" \(Reshape\) takes shapes', "reshape"),
    "nothing on the GPU": (
        small_models.add,
        {"forceCpuNodeNames": "sum"},
        r'node "sum" \(Add\) runs on the CPU',
        "sum",
    ),
}


@pytest.mark.parametrize("model, options, words, node", REFUSED.values(), ids=REFUSED.keys())
def test_models_that_cannot_be_captured(new_session, model, options, words, node):
    """Creating the session fails, with the nodes' names; without the option they run."""
    with pytest.raises(InvalidGraph, match=words) as caught:
        new_session(model(), providers=[("webgpu", {"enableGraphCapture": "1", **options})])
    assert caught.value.node == node
    new_session(model(), providers=[("webgpu", options)])


def test_shape_arithmetic_is_captured(new_session):
    """Results that the CPU computes from shapes alone are the same in every run."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("Add", ["e", "zeros"], ["y"]),
    ]
    shape: list[Any] = ["a", "b"]
    model = small_models.model(nodes, [small_models.floats("x", shape)], [small_models.floats("y", shape)])
    session = new_session(model, providers=CAPTURED)
    for rows in (2, 3, 2, 3):
        x = np.ones((rows, 2), np.float32)
        np.testing.assert_allclose(session.run(None, {"x": OrtValue(x)})[0], np.exp(x), rtol=1e-5)
    assert made(session) == [0] * len(MADE)


def test_what_a_plan_does_not_tell(new_session):
    """An output that is a feed on the CPU: known at the first run. Without a capture the session runs."""
    number = helper.make_tensor_value_info("k", TensorProto.DOUBLE, [2])
    nodes = [helper.make_node("Neg", ["x"], ["y"], "neg")]
    inputs, outputs = [small_models.floats("x", [2]), number], [small_models.floats("y", [2]), number]
    session = new_session(small_models.model(nodes, inputs, outputs), providers=CAPTURED)
    given = {"x": np.ones(2, np.float32), "k": np.ones(2)}
    for _ in range(2):
        with pytest.raises(InvalidGraph, match="cannot be captured: an output"):
            session.run(None, given)
    options = RunOptions()
    options.add_run_config_entry("gpu_graph_id", "-1")
    assert [y.tolist() for y in session.run(None, given, options)] == [[-1, -1], [1, 1]]
