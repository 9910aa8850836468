"""Logits that are changed before tokens are chosen: by a function, by a mask, by the grammar of JSON."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from constant_logits import SCORES, constant_logits
from language_models import native_greedy
from native_beams import native_beams

from py_ort import AsyncInferenceSession
from py_ort.exceptions import Cancelled, Fail, InvalidArgument, RuntimeException, WrongType

#: By number: the likeliest are not what JSON begins with.
VOCABULARY = ["a", "{", '"', "}", ":", " ", "", "[1", "-", "true", ",", '"}']
EOS = 6
PROMPT = [3, 1, 4, 1, 5]


@pytest.mark.parametrize("kind", ["growing", "grouped"])
def test_a_function_that_changes_nothing(session, model):
    """The same tokens as without, of one prompt, of several, and after a prompt whose caches are gone on from."""
    wanted = native_greedy(model, PROMPT, 6)
    seen: list[tuple[int, list[int], int]] = []

    def look(logits, tokens, row):
        seen.append((row, tokens, int(logits.argmax())))

    generation = session.generate(PROMPT, max_new_tokens=6, logits_processor=look)
    assert list(generation) == wanted
    assert seen == [(0, wanted[:i], token) for i, token in enumerate(wanted)]
    assert generation.info["sampled_on"] == "wasm"
    seen.clear()
    end = wanted[1]
    rows = session.generate([PROMPT, [7]], max_new_tokens=4, eos_token_id=end, logits_processor=look).result()
    assert rows == session.generate([PROMPT, [7]], max_new_tokens=4, eos_token_id=end).result()
    assert [row for row, _, _ in seen].count(0) == len(rows[0]) == 2  # not of a row that is over
    again = session.generate([*PROMPT, *wanted[:2]], max_new_tokens=4, logits_processor=look)
    assert again.result() == wanted[2:]


def test_a_function_that_changes_logits(same_scores, provider):

    def in_place(logits, tokens, row):
        logits[len(tokens)] = 99

    def another(logits, tokens, row):
        assert np.allclose(logits, SCORES)
        return [float(token == 5 + row) for token in range(len(logits))]

    assert same_scores.generate(PROMPT, max_new_tokens=4, logits_processor=in_place).result() == [0, 1, 2, 3]
    assert same_scores.generate([PROMPT] * 2, max_new_tokens=2, logits_processor=another).result() == [[5, 5], [6, 6]]
    drawn = same_scores.generate(PROMPT, max_new_tokens=9, do_sample=True, logits_processor=in_place)
    assert drawn.result() == list(range(9))

    async def awaited():
        async with await AsyncInferenceSession.create(constant_logits(*SCORES), providers=[provider]) as other:
            return await (await other.generate(PROMPT, max_new_tokens=3, logits_processor=in_place)).result()

    assert asyncio.run(awaited()) == [0, 1, 2]


@pytest.mark.parametrize("kind", ["growing", "grouped"])
def test_beams(session, model):
    wanted = native_beams(model, PROMPT, 5, 3, length_penalty=0.0)
    seen = []
    found = session.generate(
        PROMPT,
        max_new_tokens=5,
        num_beams=3,
        num_return_sequences=3,
        length_penalty=0.0,
        logits_processor=lambda logits, tokens, row: seen.append(tokens),
    )
    assert found.result() == [list(tokens) for tokens in wanted.tokens[:3]]
    assert seen[0] == [] and {len(tokens) for tokens in seen} == {0, 1, 2, 3, 4}


def test_what_a_function_does_wrong(same_scores):

    def raises(logits, tokens, row):
        if tokens:
            raise KeyError("mine")

    generation = same_scores.generate(PROMPT, max_new_tokens=5, logits_processor=raises)
    assert next(generation) == 0
    with pytest.raises(Fail, match="logits_processor raised KeyError: 'mine'"):
        generation.result()
    with pytest.raises(Fail, match=r"shape \[3\], not \[12\]"):
        same_scores.generate(PROMPT, logits_processor=lambda *_: np.zeros(3)).result()
    with pytest.raises(RuntimeException, match="logits that are NaN"):
        same_scores.generate(PROMPT, logits_processor=lambda logits, *_: logits * np.nan).result()
    with pytest.raises(WrongType, match="logits_processor is a function, not 3"):
        same_scores.generate(PROMPT, logits_processor=3)
    with same_scores.generate(PROMPT, max_new_tokens=1000, logits_processor=lambda *_: None) as left:
        next(left)
    assert left.cancelled and same_scores.generate(PROMPT, max_new_tokens=2).result() == [0, 0]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), pytest.fail.Exception("mine")], ids=repr)
def test_a_function_that_ends_the_program(error, same_scores):
    """Exceptions that are not errors end the generation, too, and arrive unchanged."""

    def ends(logits, tokens, row):
        if tokens:
            raise error

    generation = same_scores.generate(PROMPT, max_new_tokens=5, timeout=60, logits_processor=ends)
    assert next(generation) == 0
    with pytest.raises(type(error)) as raised:
        generation.result()
    assert raised.value is error
    assert same_scores.generate(PROMPT, max_new_tokens=2, timeout=60).result() == [0, 0]


def test_a_function_that_uses_its_session(provider, new_session):
    session, other = (new_session(constant_logits(*SCORES), providers=[provider]) for _ in range(2))
    found = []

    def within(use):
        def processor(logits, tokens, row):
            found.append(use())

        return session.generate(PROMPT, max_new_tokens=1, timeout=60, logits_processor=processor).result()

    def through_another():
        asks = other.generate(PROMPT, max_new_tokens=1, timeout=60, logits_processor=lambda *_: own() and None)
        return asks.result()

    def own():
        return session.generate(PROMPT, max_new_tokens=1, timeout=60).result()

    for use in (own, through_another):
        with pytest.raises(Fail, match="logits_processor cannot generate with its own session"):
            within(use)
    assert within(lambda: other.generate(PROMPT, max_new_tokens=2, timeout=60).result()) == [0]
    feeds = {
        arg.name: np.zeros([1 if isinstance(size, str) else size for size in arg.shape]) for arg in session.get_inputs()
    }
    with pytest.raises(Fail, match=r"raised InvalidArgument.*'input_ids'"):
        within(lambda: session.run(None, feeds))  # answered at once: a type is wrong
    assert found == [[0, 0]]
    with pytest.raises(Cancelled):
        within(session.close)


def test_masks(same_scores):
    order = list(np.argsort(-SCORES, kind="stable"))
    for count in (1, 3, 11):
        mask = np.ones(len(SCORES), bool)
        mask[order[:count]] = False
        assert same_scores.generate(PROMPT, max_new_tokens=2, mask=mask).result() == [order[count]] * 2
        drawn = same_scores.generate([PROMPT] * 50, max_new_tokens=4, do_sample=True, mask=mask, seed=1).result()
        assert not set(np.ravel(drawn)) & set(order[:count])
    with pytest.raises(InvalidArgument, match="mask has 3 numbers, and the model logits for 12 tokens"):
        same_scores.generate(PROMPT, mask=[1, 1, 0]).result()
    with pytest.raises(InvalidArgument, match="mask bars all tokens"):
        same_scores.generate(PROMPT, mask=[0] * 12).result()

    def bars(logits, tokens, row):
        logits[:6] = -np.inf

    barred = {"mask": [1] * 6 + [0] * 6, "logits_processor": bars}
    with pytest.raises(InvalidArgument, match="row 0, has no token to choose: none that mask allows"):
        same_scores.generate([PROMPT] * 2, **barred).result()
    with pytest.raises(WrongType, match="mask is a list"):
        same_scores.generate(PROMPT, mask=7)


def test_json(same_scores):
    """Whatever the model likes, the text is JSON."""
    settings = {"json_vocabulary": VOCABULARY, "eos_token_id": EOS, "max_new_tokens": 60, "do_sample": True}
    generation = same_scores.generate([PROMPT] * 40, temperature=3, seed=5, **settings)
    whole = set()
    for tokens, reason in zip(generation.result(), generation.finish_reason, strict=True):
        text = "".join(VOCABULARY[token] for token in tokens)
        if reason == "eos":
            json.loads(text)
            whole.add(text)
        else:
            with pytest.raises(json.JSONDecodeError):
                json.loads(f"{text}!")  # the text ends within a value
    assert len(whole) > 5 and any(text.startswith("{") for text in whole)
    searched = same_scores.generate(PROMPT, num_beams=3, eos_token_id=EOS, max_new_tokens=8, json_vocabulary=VOCABULARY)
    assert searched.result()
    dead = {**settings, "json_vocabulary": ["{" if text == "{" else "" for text in VOCABULARY], "do_sample": False}
    for beams in (1, 2):
        with pytest.raises(InvalidArgument, match=r'step 2 .* has none that JSON allows after "{"'):
            same_scores.generate(PROMPT, num_beams=beams, **dead).result()
    with pytest.raises(InvalidArgument, match="jsonVocabulary needs eos"):
        same_scores.generate(PROMPT, json_vocabulary=VOCABULARY).result()
    with pytest.raises(WrongType, match="json_vocabulary is a list of the text of each token"):
        same_scores.generate(PROMPT, json_vocabulary=[1, 2])
