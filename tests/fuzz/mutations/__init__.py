"""Changes that break models, or do not: one function for each idea, drawn by a seed.

A function changes a model at a random place and returns False if it found none.
"""

from __future__ import annotations

import random

import onnx

from mutations import attributes, contents, file, graph

#: Seeds are indices into this list.
MUTATIONS = [*graph.MUTATIONS, *attributes.MUTATIONS, *contents.MUTATIONS]


def mutated(seed: str, base: bytes, steps: int, kept: tuple[int, ...] | None = None) -> bytes:
    """Return a model with this number of changes; `kept`: only those numbers of changes, for a small reproduction."""
    model = onnx.ModelProto.FromString(base)
    data: bytes | None = None
    for step in range(steps):
        decide = random.Random(f"{seed}/{step}")
        if kept is not None and step not in kept:
            continue
        if decide.random() < 0.08:  # damage to the file itself comes last
            data = decide.choice(file.DAMAGES)(decide, data if data is not None else _written(model))
            continue
        if data is not None:
            continue  # the file is damaged already
        for _ in range(20):
            if decide.choice(MUTATIONS)(decide, model):
                break
    return _written(model) if data is None else data


def _written(model: onnx.ModelProto) -> bytes:
    return model.SerializePartialToString()
