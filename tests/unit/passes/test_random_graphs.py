"""Random graphs compute the same before and after all passes, whether sizes are numbers or names."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import check_equal, compiled
from random_graphs import random_graph


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("seed", range(20))
def test_same_results(seed: int, symbolic: bool) -> None:
    graph = random_graph(seed, nodes=20)
    model = graph.model(symbolic=symbolic)
    feeds = {"x": np.random.default_rng(seed).standard_normal(graph.input_shape).astype(np.float32)}
    provider = "wasm" if seed % 2 else "webgpu"
    result = compiled(model, providers=[provider, "wasm"], chains=seed % 4 > 1)
    check_equal(model, result, feeds=feeds, tolerance=1e-3)


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_same_results_of_chains_and_reductions(provider: str) -> None:
    """Graphs of elementwise operators and reductions only: some reductions end a chain."""
    reduced = 0
    for seed in range(12):
        graph = random_graph(seed, nodes=16, kinds=("unary", "clip", "binary", "reduce"))
        model = graph.model(symbolic=seed % 2 == 1)
        feeds = {"x": np.random.default_rng(seed).standard_normal(graph.input_shape).astype(np.float32)}
        result = compiled(model, providers=[provider, "wasm"], chains=True)
        check_equal(model, result, feeds=feeds, tolerance=1e-3)
        reduced += sum("reduction" in node.attributes for node in result.model.graph)
    assert reduced > 0
