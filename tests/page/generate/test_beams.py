"""Beam search finds the same sequences as transformers' (`native_beams`), on both providers."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import onnx
import pytest
from constant_logits import constant_logits
from language_models import VOCABULARY, check_greedy, language_model, native_greedy
from native_beams import native_beams
from text_form import parse

from py_ort import AsyncInferenceSession
from py_ort.exceptions import InvalidArgument, NotImplemented, RuntimeException, Timeout, WrongType

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
COUNT = 8
KINDS = ["growing", "grouped"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"length_penalty": 0.0, "eos_token_id": [44, 7]},
        {"length_penalty": 2.0, "early_stopping": "never", "eos_token_id": 28},
        {"early_stopping": True, "eos_token_id": [45, 12], "length_penalty": -1.0},
        {"repetition_penalty": 1.4, "stop": [[44, 45], [28]]},
        {"min_new_tokens": 3, "eos_token_id": [44, 28, VOCABULARY + 5]},
    ],
    ids=["plain", "ends", "never", "early", "penalties", "not before"],
)
def test_sequences_and_scores(session, model, settings):
    for beams in (2, 5):
        found = session.generate(PROMPT, max_new_tokens=COUNT, num_beams=beams, num_return_sequences=beams, **settings)
        wanted = native_beams(model, PROMPT, COUNT, beams, **settings)
        assert found.result() == wanted.tokens
        np.testing.assert_allclose(found.info["scores"], wanted.scores, rtol=1e-4, atol=1e-4)
    check_greedy(session, model, PROMPT, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_of_unequal_length(session, model):
    """Each is a separate search; the others do not wait for its end."""
    prompts = [PROMPT, PROMPT[:3], [17] * 5]
    wanted = [native_beams(model, prompt, COUNT, 3, eos_token_id=7) for prompt in prompts]
    found = session.generate(prompts, max_new_tokens=COUNT, num_beams=3, eos_token_id=7)
    assert found.result() == [beams.tokens[0] for beams in wanted]
    ends = ["eos" if beams.tokens[0][-1] == 7 else "length" for beams in wanted]
    assert found.finish_reason == ends and len({len(beams.tokens[0]) for beams in wanted}) > 1
    several = session.generate(prompts, max_new_tokens=COUNT, num_beams=3, num_return_sequences=2, eos_token_id=[7])
    assert several.result() == [tokens for beams in wanted for tokens in beams.tokens[:2]]
    assert session.generate(PROMPT, max_new_tokens=COUNT, num_beams=3, eos_token_id=7).result() == wanted[0].tokens[0]


def test_caches_of_one_length_and_half_precision(provider, new_session):
    model = language_model("grouped", np.float16, vocabulary=49)
    fixed = language_model("grouped", np.float16, room=24, vocabulary=49)
    session = new_session(fixed, providers=[provider])
    found = session.generate([PROMPT, PROMPT[:3]], max_new_tokens=5, num_beams=3)
    assert found.result() == [native_beams(model, prompt, 5, 3).tokens[0] for prompt in (PROMPT, PROMPT[:3])]


@pytest.mark.parametrize("kind", KINDS)
def test_what_stays_on_the_gpu(kind, new_session):
    """No run downloads logits or caches: these follow their beams in place."""
    session = new_session(language_model(kind), providers=["webgpu"])
    found = session.generate(PROMPT, max_new_tokens=COUNT, num_beams=3)
    found.result()
    assert found.info["steps"] == COUNT and found.info["sampled_on"] == "webgpu"
    assert found.info["counters"]["downloads"] == 0


def test_the_prompt_that_the_caches_hold(session, model):
    session.generate(PROMPT, max_new_tokens=2).result()
    prompt = [*PROMPT, 11]
    found = session.generate(prompt, max_new_tokens=4, num_beams=2)
    assert found.result() == native_beams(model, prompt, 4, 2).tokens[0]
    assert found.info["reused"] == len(PROMPT)
    assert check_greedy(session, model, prompt, 4).info["reused"] == 0


def test_equals_are_taken_in_order(provider, new_session):
    session = new_session(constant_logits(1, 3, 3, 1, 3, -np.inf, 3), providers=[provider])
    found = session.generate(PROMPT[:2], max_new_tokens=1, num_beams=3, num_return_sequences=3)
    assert found.result() == [[1], [2], [4]]


def test_fewer_tokens_than_beams(provider, new_session):
    session = new_session(constant_logits(2, 1, -np.inf, -np.inf), providers=[provider])
    found = session.generate([1], max_new_tokens=2, num_beams=4, num_return_sequences=4)
    assert found.result() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    with pytest.raises(InvalidArgument, match=r"4 sequences are wanted .* there are only 2"):
        session.generate([1], max_new_tokens=1, num_beams=4, num_return_sequences=4).result()


@pytest.mark.parametrize(
    ("value", "why"), [(np.nan, "NaN"), (-np.inf, "no logit that is a finite"), (np.inf, "no logit that is a finite")]
)
def test_logits_that_give_no_token(value, why, provider, new_session):
    others = -np.inf if value < 0 else 1.0
    session = new_session(constant_logits(others, value, others), providers=[provider])
    with pytest.raises(RuntimeException, match=f"generate: step 1, row 0, has .*{why}"):
        session.generate([[1], [2]], max_new_tokens=3, num_beams=2).result()


@pytest.mark.parametrize("beams", [1, 2])
def test_settings_that_bar_all_tokens(beams, provider, new_session):
    session = new_session(constant_logits(1, 3, 2), providers=[provider])
    barred = {"eos_token_id": [0, 1, 2], "max_new_tokens": 4, "num_beams": beams}
    with pytest.raises(InvalidArgument, match=r"step 1 has no token to choose: minNewTokens .* up to step 3"):
        session.generate([1], min_new_tokens=3, **barred).result()
    assert session.generate([1], **barred).result() == [1]


def test_what_goes_with_no_search(on_wasm):
    with pytest.raises(InvalidArgument, match=r"draws no tokens: give either beams .* or sample"):
        on_wasm.generate(PROMPT, num_beams=2, do_sample=True).result()
    with pytest.raises(InvalidArgument, match=r"take `result\(\)` instead of iterating"):
        next(on_wasm.generate(PROMPT, num_beams=2, max_new_tokens=2))
    for beams in (1, 2):
        with pytest.raises(InvalidArgument, match=rf"3 sequences .*numBeams, here {beams}"):
            on_wasm.generate(PROMPT, num_beams=beams, num_return_sequences=3).result()
    for wrong in ({"num_beams": 0}, {"num_beams": 2, "num_return_sequences": 0}, {"length_penalty": np.inf}):
        with pytest.raises(InvalidArgument, match=r"is a (whole|finite) number"):
            on_wasm.generate(PROMPT, **wrong).result()
    with pytest.raises(WrongType, match='early_stopping is True, False or "never"'):
        on_wasm.generate(PROMPT, num_beams=2, early_stopping="soon")


def test_several_draws_of_a_prompt(provider, new_session):
    session = new_session(language_model("grouped"), providers=[provider])
    settings = {"max_new_tokens": 5, "do_sample": True, "temperature": 2.0, "seed": 4}
    draws = session.generate(PROMPT, num_return_sequences=3, **settings).result()
    assert draws == session.generate([PROMPT] * 3, **settings).result() and draws[0] != draws[1]


def test_cancelled(provider, new_session):
    """Before anything is known; and the session continues to work."""
    model = language_model("grouped")
    session = new_session(model, providers=[provider])
    search = session.generate(PROMPT, max_new_tokens=4000, num_beams=3)
    with pytest.raises(Timeout):
        session.generate(PROMPT, max_new_tokens=4000, num_beams=3, timeout=0.5).result()
    search.cancel()
    assert search.result() == [] and search.finish_reason == "cancelled"
    after = session.generate(PROMPT, max_new_tokens=4, num_beams=3)
    assert after.result() == native_beams(model, PROMPT, 4, 3).tokens[0]


def test_awaited(provider):
    model = language_model("growing")

    async def main():
        async with await AsyncInferenceSession.create(model.SerializeToString(), providers=[provider]) as session:
            found = await session.generate(PROMPT, max_new_tokens=4, num_beams=2)
            with pytest.raises(InvalidArgument, match="instead of iterating"):
                await anext(found)
            assert await found.result() == native_beams(model, PROMPT, 4, 2).tokens[0]

    asyncio.run(main())


@pytest.mark.parametrize("name", ["genai_config.json", "generation_config.json"])
def test_what_stands_beside_the_model(tmp_path, name, new_session):
    model = language_model("growing")
    onnx.save(model, tmp_path / "model.onnx")
    said = {"num_beams": 3, "length_penalty": 0.0, "early_stopping": True, "num_return_sequences": 2}
    said |= {"eos_token_id": [44]} if name.startswith("generation") else {}
    config = {"search": said, "model": {"eos_token_id": 44}} if name.startswith("genai") else said
    (tmp_path / name).write_text(json.dumps(config))
    wanted = native_beams(model, PROMPT, 6, 3, length_penalty=0.0, early_stopping=True, eos_token_id=44)
    session = new_session(tmp_path / "model.onnx", providers=["wasm"])
    assert session.generate(PROMPT, max_new_tokens=6).result() == wanted.tokens[:2]
    greedy = session.generate(PROMPT, max_new_tokens=6, num_beams=1, num_return_sequences=1, eos_token_id=[])
    assert list(greedy) == native_greedy(model, PROMPT, 6)


def test_no_decoder(new_session):
    model = parse("g (float[2] x) => (float[2] y) { y = Abs(x) }")
    session = new_session(model, providers=["wasm"])
    with pytest.raises(NotImplemented, match='input "x"'):
        session.generate([1], num_beams=2).result()
