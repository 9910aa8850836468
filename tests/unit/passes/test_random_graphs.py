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
