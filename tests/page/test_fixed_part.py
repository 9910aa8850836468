"""Nodes that are the same in every run with the same shapes run in the first one only, and numbers are right in all."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper, numpy_helper

from py_ort import GraphOptimizationLevel, SessionOptions
from py_ort.profiling.trace import Trace

pytestmark = pytest.mark.browser
node = helper.make_node
WIDTH = 3


def options(**entries: Any) -> SessionOptions:
    """Plans stay general: one for the exact shapes would leave nothing to compute once."""
    made = SessionOptions()
    made.add_session_config_entry("session.specialize_shapes", "0")
    for name, value in entries.items():
        setattr(made, name, value)
    return made


def ints(name: str, dims: list[Any]) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.INT64, dims)


def constant(name: str, value: Any, dtype: Any = np.int64) -> Any:
    return numpy_helper.from_array(np.array(value, dtype), name)


#: A grid [N, 3] for x of [N, 3], from the roots of the rows' numbers: a column from the CPU, which the GPU expands.
GRID = [
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["rows"]),
    node("Range", ["zero", "rows", "one"], ["range"]),
    node("Cast", ["range"], ["steps"], to=TensorProto.FLOAT),
    node("Sqrt", ["steps"], ["roots"]),
    node("Unsqueeze", ["roots", "last"], ["column"]),
    node("Expand", ["column", "shape"], ["grid"]),
]
CONSTANTS = [constant("zero", 0), constant("one", 1), constant("last", [1])]


def grid_model(rows: Any = "N") -> bytes:
    """y = exp(x) * grid, and -grid: one dispatch in each run, and two only in the first one."""
    nodes = [*GRID, node("Exp", ["x"], ["e"]), node("Mul", ["e", "grid"], ["y"]), node("Neg", ["grid"], ["fixed"])]
    outputs = [small_models.floats(name, [rows, WIDTH]) for name in ("y", "fixed")]
    return small_models.model(nodes, [small_models.floats("x", [rows, WIDTH])], outputs, CONSTANTS)


def x_of(rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(np.float32)


def grid_of(rows: int) -> np.ndarray:
    return np.repeat(np.sqrt(np.arange(rows, dtype=np.float32))[:, None], WIDTH, axis=1)


def counters(session: Any) -> dict[str, int]:
    told: dict[str, int] = session.stats()["last_run"]["counters"]
    return told


def check(session: Any, rows: int, seed: int) -> None:
    y, fixed = session.run(None, {"x": x_of(rows, seed)})
    np.testing.assert_allclose(y, np.exp(x_of(rows, seed)) * grid_of(rows), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fixed, -grid_of(rows), rtol=1e-5)


@pytest.mark.parametrize("captured", [False, True])
def test_shapes_in_turns(new_session, captured):
    """Each set of shapes has its own results, which runs of other shapes do not change."""
    session = new_session(grid_model(), options(), providers=[("webgpu", {"enableGraphCapture": captured}), "wasm"])
    seen: set[int] = set()
    for seed, rows in enumerate([5, 5, 70, 5, 70, 5, 1, 70, 1, 5]):
        check(session, rows, seed)
        told = counters(session)
        assert (told["dispatches"], told["uploads"]) == ((1, 1) if rows in seen else (3, 2)), rows
        seen.add(rows)
    assert session.stats()["session"]["recordings"] == 3


def test_two_sessions_in_turns(new_session):
    """They share weights and the buffers that the other one released, and nothing else."""
    sessions = [new_session(grid_model(), options(), providers=["webgpu", "wasm"]) for _ in range(2)]
    for seed in range(4):
        for session, rows in zip(sessions, (5, 9 + seed % 2), strict=True):
            check(session, rows, seed)
    sessions[0].close()
    check(sessions[1], 9, 7)
    check(sessions[1], 5, 8)


def test_runs_in_flight(new_session):
    """Only the work of a run that has ended is not repeated: runs that begin earlier do all of it."""
    session = new_session(grid_model(), options(), providers=["webgpu", "wasm"])
    asked = [(5, 0), (5, 1), (8, 2), (5, 3), (8, 4), (2, 5)]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(session.run_async(None, {"x": x_of(rows, seed)}) for rows, seed in asked))

    for _ in range(2):
        for (rows, seed), (y, fixed) in zip(asked, asyncio.run(all_at_once()), strict=True):
            np.testing.assert_allclose(y, np.exp(x_of(rows, seed)) * grid_of(rows), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(fixed, -grid_of(rows), rtol=1e-5)
    check(session, 5, 9)
    assert counters(session)["dispatches"] == 1


def test_fixed_outputs_bound_to_buffers(new_session):
    """A user who bound a buffer to an output may write to it."""
    session = new_session(grid_model(), options(), providers=["webgpu", "wasm"])
    x = session.create_ortvalue_from_shape_and_type([5, WIDTH], np.float32, "webgpu")
    fixed = session.create_ortvalue_from_shape_and_type([5, WIDTH], np.float32, "webgpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("fixed", fixed)
    binding.bind_output("y", "webgpu")
    for seed in range(4):
        x.update_inplace(x_of(5, seed))
        fixed.update_inplace(np.full((5, WIDTH), 77, np.float32))
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(fixed.numpy(), -grid_of(5), rtol=1e-5)
        np.testing.assert_allclose(binding.get_outputs()[1].numpy(), np.exp(x_of(5, seed)) * grid_of(5), rtol=1e-4)
    assert counters(session)["dispatches"] == 1
    # Others write to a feed on the GPU: values derived from it are computed again.
    twice = session.io_binding()
    twice.bind_ortvalue_input("x", fixed)
    twice.bind_output("y", "cpu")
    for value in (1, 2, 3):
        fixed.update_inplace(np.full((5, WIDTH), value, np.float32))
        session.run_with_iobinding(twice)
        np.testing.assert_allclose(twice.copy_outputs_to_cpu()[0], np.exp(np.float32(value)) * grid_of(5), rtol=1e-4)


def test_a_profile_has_what_was_done(new_session, tmp_path: Path):
    made = options(enable_profiling=True, profile_file_prefix=str(tmp_path / "profile"))
    session = new_session(grid_model(), made, providers=["webgpu", "wasm"])
    dispatches = []
    for seed in range(3):
        check(session, 5, seed)
        dispatches.append(counters(session)["dispatches"])
    rows = Counter(span["args"]["run"] for span in Trace.load(session.end_profiling()).spans("Kernel"))
    assert [rows[run] for run in sorted(rows)] == dispatches
    assert dispatches[0] > dispatches[1] == dispatches[2]


def test_what_is_made_of_weights_alone(new_session):
    """Nothing is folded at this level. Results that are too large to keep are computed in every run, from kept ones."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 1)).astype(np.float32)
    nodes = [
        node("Exp", ["w"], ["e"]),
        node("Neg", ["e"], ["n"]),
        node("Expand", ["n", "large"], ["m"]),
        node("Add", ["m", "x"], ["s"]),
        node("ReduceSum", ["s", "last"], ["y"]),
    ]
    model = small_models.model(
        nodes,
        [small_models.floats("x", [1, 4096])],
        [small_models.floats("y", [64, 1])],
        [numpy_helper.from_array(w, "w"), constant("large", [64, 4096]), constant("last", [1])],
    )
    made = options(graph_optimization_level=GraphOptimizationLevel.ORT_DISABLE_ALL)
    session = new_session(model, made, providers=["webgpu"])
    dispatches = []
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((1, 4096)).astype(np.float32)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, (x - np.exp(w)).sum(1, keepdims=True), rtol=1e-3, atol=2e-2)
        dispatches.append(counters(session)["dispatches"])
    assert dispatches == [dispatches[0], dispatches[0] - 2, dispatches[0] - 2]
    memory = session.memory()["webgpu"]
    assert memory["arena"] <= 1.1 * memory["peak"] + 4096
    assert memory["peak"] <= 1.1 * 2 * 4 * 64 * 4096


def test_runs_that_wait_for_the_gpu(new_session):
    """The second of two segments begins when the CPU knows the number of nonzero elements: all but the first row."""
    nodes = [
        *GRID,
        node("CumSum", ["grid", "one"], ["sums"]),
        node("Mul", ["x", "sums"], ["product"]),
        node("NonZero", ["product"], ["places"]),
        node("Transpose", ["places"], ["pairs"], perm=[1, 0]),
        node("GatherND", ["product", "pairs"], ["y"]),
    ]
    inputs, outputs = [small_models.floats("x", ["N", WIDTH])], [small_models.floats("y", ["found"])]
    session = new_session(
        small_models.model(nodes, inputs, outputs, CONSTANTS), options(), providers=["webgpu", "wasm"]
    )
    dispatches: dict[int, list[int]] = {6: [], 9: []}
    for seed, rows in enumerate([6, 6, 9, 6, 9, 9]):
        x = x_of(rows, seed)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], (x * grid_of(rows).cumsum(1))[1:].ravel(), rtol=1e-5)
        assert session.stats()["last_run"]["segments"] == 2
        dispatches[rows].append(counters(session)["dispatches"])
    assert all(first > second == third for first, second, third in dispatches.values()), dispatches


def test_shapes_of_what_stays_on_the_cpu(new_session):
    """A recording borrowed from other shapes that the GPU never sees; values that follow from these are sent again."""
    nodes = [
        node("Size", ["mask"], ["count"]),
        node("Cast", ["count"], ["scale"], to=TensorProto.FLOAT),
        node("Sqrt", ["scale"], ["root"]),
        node("Mul", ["x", "root"], ["product"]),
        node("Reshape", ["product", "shape"], ["y"]),
    ]
    inputs = [small_models.floats("x", [4]), ints("mask", ["M"]), ints("shape", [2])]
    model = small_models.model(nodes, inputs, [small_models.floats("y", [None, None])])
    session = new_session(model, options(), providers=["webgpu", "wasm"])
    uploads = []
    for seed, count in enumerate([4, 4, 9, 9, 16, 4, 25, 25]):
        x = np.random.default_rng(seed).standard_normal(4).astype(np.float32)
        feeds = {"x": x, "mask": np.zeros(count, np.int64), "shape": np.array([2, 2], np.int64)}
        np.testing.assert_allclose(session.run(None, feeds)[0], (x * np.sqrt(count)).reshape(2, 2), rtol=1e-5)
        uploads.append(counters(session)["uploads"])
        assert session.stats()["session"]["recordings"] == 1
    assert uploads == [2, 1, 2, 2, 2, 2, 2, 2]
