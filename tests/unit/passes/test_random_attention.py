"""Random attention has the same results before and after all passes, and always becomes one operator."""

from __future__ import annotations

import pytest
from graphs import check_equal, compiled, operators
from random_attention import RandomAttention


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("seed", range(16))
def test_same_results(seed: int, symbolic: bool) -> None:
    drawn = RandomAttention(seed)
    model = drawn.write(symbolic=symbolic)
    result = compiled(model, providers=["wasm"] if seed % 2 else ["webgpu", "wasm"], chains=seed % 4 > 1)
    check_equal(model, result, feeds=drawn.feeds(model), tolerance=1e-3)
    found = operators(result)
    assert found["Attention"] == 1 and "Softmax" not in found, drawn.form
    attention = next(node for node in result.model.graph if node.op_type == "Attention")
    assert not drawn.form["cache"] or len(attention.inputs) >= 6, drawn.form  # past keys and values
    if drawn.form["rotary"] and seed % 2:  # the small webgpu manifest has no RotaryEmbedding
        assert found["RotaryEmbedding"] == 2, drawn.form
