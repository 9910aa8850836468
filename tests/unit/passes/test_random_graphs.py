"""Random graphs have the same results before and after all passes, whether sizes are numbers or names."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import check_equal, compiled
from hypothesis import given, settings
from hypothesis import strategies as st
from motifs import ELSEWHERE, MOTIFS
from passes_found import passes_found
from random_graphs import RandomGraph, random_graph

from py_ort.compiler import CompiledModel


def _check(graph: RandomGraph, symbolic: bool, provider: str, **options: Any) -> CompiledModel:
    shape = graph.input_shape
    if "free_dimension_overrides" in options:
        shape = (options["free_dimension_overrides"]["n"], *shape[1:])
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    model = graph.model(symbolic=symbolic)
    result = compiled(model, providers=[provider, "wasm"], **options)
    return check_equal(model, result, feeds=feeds, tolerance=1e-3)


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from(["webgpu", "wasm"]),
    st.booleans(),
    st.lists(st.sampled_from([name for name in MOTIFS if MOTIFS[name].known is None]), max_size=5, unique=True),
)
def test_same_results(decide: random.Random, symbolic: bool, provider: str, chains: bool, motifs: list[str]) -> None:
    """Motifs are among other nodes, if these make images of four axes."""
    graph = random_graph(decide, nodes=4)
    for name in motifs:
        images = [name for name in graph.shapes if name not in graph.inner and _is_image(graph.shapes[name])]
        graph.write(MOTIFS[name].make, images[-1])
        graph.grow()
    _check(graph, symbolic, provider, chains=chains, columns=not chains, integers=chains)


def _is_image(shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and min(shape[2:]) >= 3


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("name", MOTIFS)
def test_each_pass_finds_its_motif(name: str, symbolic: bool) -> None:
    motif = MOTIFS[name]
    if motif.known is symbolic:
        return
    graph = random_graph(len(name), nodes=2, kinds=("unary",))
    graph.write(motif.make, next(reversed(graph.shapes)))
    graph.add("Sin", [next(reversed(graph.shapes))], [graph.shapes[next(reversed(graph.shapes))]])
    result = _check(graph, symbolic, motif.provider, **motif.manifests)
    assert set(motif.passes) <= {report.name for report in result.passes if report.changes}


def test_all_passes_have_motifs() -> None:
    proven = {*(each for motif in MOTIFS.values() for each in motif.passes), *ELSEWHERE}
    assert passes_found().keys() == proven, "write what the new pass looks for in tests/helpers/motifs"
    assert all((Path(__file__).parents[3] / path).exists() for path in ELSEWHERE.values())


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_same_results_of_chains_and_reductions(provider: str) -> None:
    """Graphs of elementwise operators and reductions only: some reductions end a chain."""
    reduced = 0
    for seed in range(8):
        graph = random_graph(seed, nodes=16, kinds=("unary", "clip", "binary", "reduce"))
        result = _check(graph, seed % 2 == 1, provider, chains=True)
        reduced += sum("reduction" in node.attributes for node in result.model.graph)
    assert reduced > 0
