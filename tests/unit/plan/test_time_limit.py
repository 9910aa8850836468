"""`create_timeout` limits the compiler, and small models cannot make it use all memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from graphs import check_equal, parse
from onnx import helper

from py_ort.compiler import compile_model
from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.passes.clean import folding
from py_ort.exceptions import InvalidGraph, NotImplemented, Timeout
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin

LIMIT = 0.5


def calling(depth: int, calls: int) -> onnx.ModelProto:
    """Functions that each call the previous one `calls` times."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("l", 1)]
    functions = [helper.make_function("l", "F0", ["a"], ["v1"], [helper.make_node("Neg", ["a"], ["v1"])], opsets)]
    for level in range(1, depth):
        names = ["a", *(f"v{i + 1}" for i in range(calls))]
        nodes = [helper.make_node(f"F{level - 1}", [names[i]], [names[i + 1]], domain="l") for i in range(calls)]
        functions.append(helper.make_function("l", f"F{level}", ["a"], names[-1:], nodes, opsets))
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(f"F{depth - 1}", ["x"], ["y"], domain="l")], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    model.functions.extend(functions)
    return model


def chain(length: int) -> onnx.ModelProto:
    nodes = [helper.make_node(("Relu", "Neg")[i % 2], [f"v{i}"], [f"v{i + 1}"]) for i in range(length)]
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("v0", f"v{length}")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def doubling(times: int) -> onnx.ModelProto:
    text = "".join(f"c{i + 1} = Concat<axis=0>(c{i}, c{i})  " for i in range(times))
    return parse(f"g (float[1] x) => (float[n] y) {{ {text} y = Add(c{times}, x) }}", {"c0": np.ones(4, np.float32)})


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "functions that call twice": lambda: calling(17, 2),
    "a chain": lambda: chain(30_000),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_limit_is_kept(make: Callable[[], onnx.ModelProto]) -> None:
    planner = Planner(Origin(make().SerializeToString()), limit=LIMIT)
    began = time.monotonic()
    with pytest.raises(Timeout, match=r"the model took longer than create_timeout \(0.5 s\)"):
        planner.expect(["wasm"], CompileOptions())
        planner.plan(["wasm"], CompileOptions())
    assert time.monotonic() - began < LIMIT + 20  # reading is not interrupted; machines may be busy


def test_functions_that_become_too_many_nodes() -> None:
    with pytest.raises(NotImplemented, match="become more than 262144 nodes"):
        compile_model(calling(400, 2).SerializeToString(), providers=["wasm"])


def test_a_function_that_calls_itself() -> None:
    model = calling(3, 1)
    model.functions[0].node[0].op_type, model.functions[0].node[0].domain = "F2", "l"
    with pytest.raises(InvalidGraph, match="the function F0 calls itself, or another function that calls it"):
        compile_model(model.SerializeToString(), providers=["wasm"])


def test_deep_calls() -> None:
    """Each of two thousand functions calls the next."""
    check_equal(calling(2000, 1))


def test_folding_stops_where_constants_grow_beyond_all_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_LIMIT_BYTES", 1 << 12)
    result = check_equal(doubling(14), feeds={"x": np.ones(1, np.float32)})
    assert 1 << 11 <= max(entry.size for entry in result.weights.entries) <= 1 << 12


def test_a_constant_that_no_memory_holds() -> None:
    with pytest.raises(InvalidGraph, match="its output would have the shape"):
        compile_model(doubling(40).SerializeToString(), providers=["wasm"])
