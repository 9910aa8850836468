"""Runs of Add, Sub, Mul and Div with constants: their results, and their ends."""

from __future__ import annotations

import random

import numpy as np
from graphs import check_equal, compiled, operators, parse


def test_a_run_of_any_length_is_one_product_and_one_sum() -> None:
    decide, numbers = random.Random(5), np.random.default_rng(5)
    nodes, constants, before = [], {}, "x"
    for i in range(300):
        constants[f"c{i}"] = numbers.uniform(0.97, 1.03, decide.choice([(), (6,), (4, 1), (4, 6)])).astype(np.float32)
        after = f"v{i}" if i < 299 else "y"
        operator = decide.choice(["Add", "Sub", "Mul", "Div"])
        swapped = operator in ("Add", "Mul") and decide.random() < 0.4
        nodes.append(f"{after} = {operator}({f'c{i}, {before}' if swapped else f'{before}, c{i}'})")
        before = after
    model = parse(f"g (float[4, 6] x) => (float[4, 6] y) {{ {'  '.join(nodes)} }}", constants)
    assert operators(check_equal(model, compiled(model, providers=["wasm"]))) == {"Mul": 1, "Add": 1}


def test_constants_that_are_large_only_together_stay_apart() -> None:
    constants = {"r": np.ones(1024, np.float32), "c": np.ones((1024, 1), np.float32)}
    model = parse("g (float[1024, 1024] x) => (float[1024, 1024] y) { a = Add(x, r)  y = Add(a, c) }", constants)
    assert operators(compiled(model, providers=["wasm"])) == {"Add": 2}
