"""`generate` chooses the same tokens as a loop over native onnxruntime, on both providers."""

import numpy as np
import pytest
from language_models import VOCABULARY, check_greedy, language_model, native_greedy

from py_ort.exceptions import Cancelled, InvalidArgument

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
COUNT = 12
KINDS = ["growing", "grouped"]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_a_loop_over_native(session, model, provider):
    generation = session.generate(PROMPT, max_new_tokens=COUNT)
    assert generation.finish_reason is None
    wanted = native_greedy(model, PROMPT, COUNT)
    assert list(generation) == wanted
    assert (generation.tokens, generation.finish_reason) == (wanted, "length")
    assert (generation.info["steps"], generation.info["sampled_on"]) == (COUNT, provider)
    again = session.generate(np.array(PROMPT), max_new_tokens=COUNT, reuse_cache=False)
    assert again.result() == wanted and again.info["reused"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision(kind, provider, new_session):
    """By a seed whose likeliest tokens are far ahead of others."""
    model = language_model(kind, np.float16)
    session = new_session(model, providers=[provider])
    check_greedy(session, model, PROMPT, 6)


def test_rows_of_logits_that_begin_in_the_middle_of_a_word(provider, new_session):
    """Two bytes each, and an odd number of them."""
    model = language_model("grouped", np.float16, vocabulary=49)
    session = new_session(model, providers=[provider])
    prompts = [PROMPT, [5, 6], [48]]
    wanted = [native_greedy(model, prompt, 3) for prompt in prompts]
    assert session.generate(prompts, max_new_tokens=3).result() == wanted
    assert [session.generate(prompt, max_new_tokens=3).result() for prompt in prompts] == wanted


def test_caches_of_one_length(provider, new_session):
    """Caches have the length that the model declares: they are fed and given in it from the beginning."""
    model = language_model("grouped")
    session = new_session(language_model("grouped", room=24), providers=[provider])
    prompts = [PROMPT, PROMPT[:3]]
    assert session.generate(prompts, max_new_tokens=6).result() == [native_greedy(model, p, 6) for p in prompts]
    check_greedy(session, model, PROMPT, 16)
    assert check_greedy(session, model, [*PROMPT, 7, 7], 3).info["reused"] == len(PROMPT)
    with pytest.raises(InvalidArgument, match="takes 24 in all"):
        session.generate(PROMPT, max_new_tokens=17).result()


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_prompt_goes_on_where_it_begins_alike(session, model):
    first = session.generate(PROMPT, max_new_tokens=4)
    prompt = [*PROMPT, *first.result(), 7, 8]
    # All but the last chosen token, which no step has run: those of the prompt, and three.
    assert check_greedy(session, model, prompt, 4).info["reused"] == len(PROMPT) + 3
    other = [*PROMPT[:5], 11, 12, 13]
    for reused in (5, len(other) - 1):
        assert check_greedy(session, model, other, 4).info["reused"] == reused


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_prompts_of_unequal_length(session, model):
    prompts = [PROMPT, PROMPT[:3], [17] * 5]
    wanted = [native_greedy(model, prompt, 6) for prompt in prompts]
    generation = session.generate(prompts, max_new_tokens=6)
    assert [list(tokens) for tokens in zip(*generation, strict=True)] == wanted
    assert generation.tokens == wanted and generation.finish_reason == ["length"] * 3


def test_caches_that_must_become_larger(provider, new_session):
    """With their contents: the buffers for a first, short text are too small for the second."""
    model = language_model("grouped")
    session = new_session(model, providers=[provider])
    first = session.generate(PROMPT, max_new_tokens=4).result()
    rng = np.random.default_rng(0)
    prompt = [*PROMPT, *first, *map(int, rng.integers(0, VOCABULARY, 240))]
    assert check_greedy(session, model, prompt, 4).info["reused"] == len(PROMPT) + 3


def test_a_repetition_penalty(session, model):
    found = session.generate(PROMPT, max_new_tokens=COUNT, repetition_penalty=1.7).result()
    assert found == native_greedy(model, PROMPT, COUNT, penalty=1.7) != native_greedy(model, PROMPT, COUNT)


def test_runs_and_generations_do_not_disturb_each_other(session, model):
    wanted = native_greedy(model, PROMPT, COUNT)
    generations = [session.generate(PROMPT, max_new_tokens=COUNT) for _ in range(2)]
    feeds = {"input_ids": np.array([PROMPT]), "attention_mask": np.ones((1, 8), np.int64)}
    feeds |= {"position_ids": np.arange(8)[None]}
    for arg in session.get_inputs()[3:]:
        feeds[arg.name] = np.zeros([1, 4, 0, 16], np.float32)
    logits = session.run(["logits"], feeds)[0]
    assert int(np.argmax(logits[0, -1])) == wanted[0]
    assert [generation.result() for generation in generations] == [wanted] * 2


def test_a_closed_session_ends_it(model, new_session):
    session = new_session(model, providers=["wasm"])
    generation = session.generate(PROMPT, max_new_tokens=4000)
    next(generation)
    session.close()
    with pytest.raises(Cancelled, match="the session was closed during its run"):
        generation.result()
