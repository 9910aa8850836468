"""Random graphs of constants: at every level the core's results equal native onnxruntime's.

PY_ORT_CONSTANT_GRAPHS=COUNT and PY_ORT_SEED=FIRST try others. A difference between levels is the compiler's fault. If
all levels agree with each other, and not with native, it is a kernel's, which tests/ops covers.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from constant_graphs import ConstantGraph
from plans_in_node import run_plans

from py_ort.compiler import CompileOptions, compile_model
from py_ort.exceptions import PyOrtError

COUNT, FIRST = int(os.environ.get("PY_ORT_CONSTANT_GRAPHS", "240")), int(os.environ.get("PY_ORT_SEED", "0"))
BATCH = 60
LEVELS = ("disabled", "basic", "all")


def _near(found: Any, wanted: np.ndarray) -> bool:
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    tolerance = 2e-2 if wanted.dtype == np.float16 else 2e-3
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def _outputs(graphs: list[ConstantGraph], level: str) -> list[Any]:
    """Return the results of each graph, or the error with which it ends."""
    options = CompileOptions(graph_optimization_level=level)
    found: dict[int, Any] = {}
    plans = {}
    for i, graph in enumerate(graphs):
        try:
            plans[i] = (
                compile_model(graph.model.SerializeToString(), providers=["wasm"], options=options),
                graph.feeds,
            )
        except PyOrtError as e:
            found[i] = e
    found.update(zip(plans, run_plans(list(plans.values())), strict=True))
    return [found[i] for i in range(len(graphs))]


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_constant_graphs(first: int) -> None:
    graphs = [ConstantGraph(seed) for seed in range(first, min(first + BATCH, FIRST + COUNT))]
    graphs = [graph for graph in graphs if graph.outputs]
    results = {level: _outputs(graphs, level) for level in LEVELS}
    wrong, right = [], []
    for i, graph in enumerate(graphs):
        for k, wanted in enumerate(graph.expected()):
            found = {level: results[level][i] for level in LEVELS}
            alike = {
                level: not isinstance(answer, Exception) and _near(answer[k], wanted) for level, answer in found.items()
            }
            if all(alike.values()):
                right.append(i)
            elif alike["disabled"]:
                texts = {
                    level: str(answer) if isinstance(answer, Exception) else answer[k]
                    for level, answer in found.items()
                }
                nodes = [f"{', '.join(n.output)} = {n.op_type}({', '.join(n.input)})" for n in graph.nodes]
                wrong.append(f"{nodes}\n{graph.outputs[k]}: wanted {wanted!r}\n{texts}")
    assert len(right) > len(graphs) / 2
    assert not wrong, f"{len(wrong)} differ by level:\n" + "\n\n".join(wrong[:5])
