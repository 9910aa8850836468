"""Drawn tokens: as frequent as their probabilities, and the same on both providers for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from constant_logits import SCORES, constant_logits
from language_models import language_model

PROMPT = [3, 1, 4, 1, 5]
DRAWS = 3000


def chances(temperature: float = 1, top_k: int = 0, top_p: float = 1) -> np.ndarray:
    """Return the chances that transformers' warpers give: temperature, then the k largest, then the nucleus."""
    scores = SCORES.astype(np.float64) / temperature
    if top_k:
        scores[scores < np.sort(scores)[-top_k]] = -np.inf
    found = np.exp(scores - scores.max())
    found /= found.sum()
    order = np.argsort(-found, kind="stable")
    count = int(np.searchsorted(np.cumsum(found[order]), top_p - 1e-12)) + 1
    found[found < found[order[min(count, len(order)) - 1]]] = 0
    return found / found.sum()


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 3},
        {"top_k": 5},
        {"top_p": 0.6},
        {"temperature": 1.5, "top_k": 7, "top_p": 0.8},
    ],
    ids=str,
)
def test_each_token_comes_as_often_as_it_should(same_scores, settings):
    """Chi square: far below that of one in a million samples of the exact distribution."""
    rows, steps = DRAWS // 4, 4
    generation = same_scores.generate([PROMPT] * rows, max_new_tokens=steps, do_sample=True, seed=11, **settings)
    counts = np.bincount(np.concatenate(generation.result()), minlength=len(SCORES))
    expected = chances(**settings) * DRAWS
    assert not counts[expected < 1e-6].any(), "tokens that were left out"
    usual = expected > 5
    apart = ((counts - expected)[usual] ** 2 / expected[usual]).sum()
    freedom = int(usual.sum()) - 1
    assert apart < freedom + 5 * np.sqrt(2 * max(freedom, 1)) + 15, (counts, expected)


def test_neighboring_draws_have_nothing_to_do_with_each_other(new_session):
    """Pairs of tokens, one after the other in a row and of rows side by side, as frequent as their product."""
    session = new_session(constant_logits(*SCORES), providers=["wasm"])
    drawn = np.array(session.generate([PROMPT] * 60, max_new_tokens=60, do_sample=True, seed=3, top_k=4).result())
    likely = np.flatnonzero(chances(top_k=4))
    p = chances(top_k=4)
    for one, other in ((drawn[:, :-1], drawn[:, 1:]), (drawn[:-1], drawn[1:])):
        pairs = np.zeros((len(SCORES), len(SCORES)))
        np.add.at(pairs, (one.ravel(), other.ravel()), 1)
        expected = np.outer(p, p)[np.ix_(likely, likely)] * one.size
        apart = ((pairs[np.ix_(likely, likely)] - expected) ** 2 / expected).sum()
        assert apart < expected.size + 6 * np.sqrt(2 * expected.size)


@pytest.mark.parametrize("kind", ["growing", "grouped"])
def test_a_seed_gives_the_same_tokens_everywhere(kind, new_session):
    model = language_model(kind).SerializeToString()
    sessions = [new_session(model, providers=[provider]) for provider in ("wasm", "webgpu")]
    settings = [
        {"temperature": 3},
        {"top_k": 9, "repetition_penalty": 1.2, "temperature": 2},
        {"top_p": 0.7, "temperature": 2.5, "eos_token_id": 7, "min_new_tokens": 4},
        {"top_k": 20, "top_p": 0.95, "temperature": 2},
    ]
    made = set()
    for one in settings:
        for seed in (0, 1, 2**40 + 5):
            ours, theirs, again = (
                session.generate(PROMPT, max_new_tokens=12, do_sample=True, seed=seed, **one).result()
                for session in (*sessions, sessions[1])
            )
            assert ours == theirs == again
            made.add(tuple(ours))
    assert len(made) > len(settings)


def test_next_to_no_temperature(same_scores):
    """Always the likeliest; even if the inverse is beyond float32."""
    for temperature in (1e-6, 1e-30, 1e-40):
        drawn = same_scores.generate(PROMPT, max_new_tokens=4, do_sample=True, temperature=temperature).result()
        assert drawn == [int(np.argmax(SCORES))] * 4


def test_without_a_seed_each_time_is_another(new_session):
    session = new_session(constant_logits(*SCORES), providers=["wasm"])
    first, second = (session.generate(PROMPT, max_new_tokens=40, do_sample=True) for _ in range(2))
    assert first.result() != second.result()
    repeated = session.generate(PROMPT, max_new_tokens=40, do_sample=True, seed=first.info["seed"])
    assert repeated.result() == first.tokens
