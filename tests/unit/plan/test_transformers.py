"""A BERT exported by PyTorch: the rest of its shape arithmetic, norms and Gelus."""

from __future__ import annotations

import numpy as np
import pytest
from bert import bert
from graphs import check_equal, compiled, operators

FEEDS = {
    "input_ids": np.random.default_rng(0).integers(0, 50, (2, 7)),
    "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2], np.int64),
}


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "all"])
def test_every_level_computes_the_same(level: str) -> None:
    model = bert(layers=1)
    check_equal(model, compiled(model, level=level), feeds=FEEDS)


def test_sizes_that_are_names_need_almost_no_arithmetic() -> None:
    result = compiled(bert(layers=2))
    found = operators(result)
    assert result.placement.counts()["wasm"] <= 3, "only the slice of the positions needs the sequence's length"
    assert (found["SkipLayerNormalization"], found["Attention"]) == (5, 2), "positions are added to words, too"
    assert "LayerNormalization" not in found
    assert not {"Softmax", "Erf", "Gelu", "Pow", "Sqrt", "ReduceMean", "Concat"} & set(found)


def test_sizes_that_are_numbers_need_none() -> None:
    result = compiled(bert(layers=2), free_dimension_overrides={"batch": 2, "sequence": 7})
    assert result.placement.counts()["wasm"] == 0
    check_equal(bert(layers=2), result, feeds=FEEDS)
