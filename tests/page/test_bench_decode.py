"""`py-ort bench --decode`: prompts and tokens of random decoders, on both engines, equal native onnxruntime's."""

from __future__ import annotations

import json

import numpy as np
import pytest
import small_models
from native import native_session

from py_ort import BrowserOptions
from py_ort.bench.decode.decoder import Decoder, read_decoder
from py_ort.bench.decode.ours import Loop, spread
from py_ort.bench.decode.random_llama import SIZES, Form, write_random_llama
from py_ort.bench.peer import find_dist
from py_ort.exceptions import EngineError

pytestmark = pytest.mark.browser
FORMS = {
    "grouped": Form(),
    "packed": Form(packed=True, zero_points=True, bits=8, last_row=True),
    "concat": Form(caches="concat", block=16),
    "floats": Form(caches="concat", bits=0),
}


@pytest.fixture(scope="module")
def decoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoders")
    return {name: write_random_llama(folder / f"{name}.onnx", SIZES["tiny"], form) for name, form in FORMS.items()}


def native_words(decoder: Decoder, prompt: np.ndarray, count: int) -> list[int]:
    session = native_session(decoder.path)
    caches = {c.past: np.zeros((1, c.heads, 0, c.size), decoder.dtype) for c in decoder.caches}
    names = ["logits", *(cache.present for cache in decoder.caches)]
    words: list[int] = []
    past, given = 0, prompt
    while len(words) <= count:
        logits, *presents = session.run(names, {**decoder.feeds(given, past), **caches})
        caches = dict(zip(caches, presents, strict=True))
        past += len(given)
        words.append(int(logits[0, -1].argmax()))
        given = np.array(words[-1:])
    return words


@pytest.mark.parametrize("name", FORMS)
def test_words_are_native_ones(decoders, name):
    decoder = read_decoder(decoders[name])
    prompt = decoder.prompt(9)
    expected = native_words(decoder, prompt, 6)
    assert decoder.in_place == (FORMS[name].caches == "grouped")
    courses = [("webgpu", False), ("wasm", False), *([("webgpu", True)] if decoder.in_place else [])]
    for provider, in_place in courses:
        loop = Loop(decoder, provider, in_place, BrowserOptions(webgpu="software"), 1, 300)
        try:
            text = loop.write(prompt, 6)
            counters = loop._session.stats()["last_run"]["counters"]
        finally:
            loop.close()
        assert text.words == expected, (provider, in_place)
        assert text.prompt_ms > 0 and len(text.step_ms) == 6
        if in_place:
            # Six for each layer, and the embedding, the last row, its normalization and its product.
            assert counters["walks"] == 0 and counters["dispatches"] <= 6 * SIZES["tiny"].layers + 4, counters


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        (tmp_path / folder).mkdir()
        write_random_llama(tmp_path / folder / "m.onnx", SIZES["tiny"], seed=seed)
    for file in ("m.onnx", "m.onnx.data"):
        first, second, other = ((tmp_path / folder / file).read_bytes() for folder in "abc")
        assert first == second and first != other


def test_a_row_for_each_way(py_ort_command, decoders):
    arguments = ("--decode", "--webgpu", "software", "--past", 5, "--tokens", 3)
    status, out, err = py_ort_command("bench", decoders["grouped"], *arguments, "--json", "-")
    rows = json.loads(out)
    assert status == 0, err
    assert [(r["provider"], r["loop"]) for r in rows] == [
        ("webgpu", "generate"),
        ("webgpu", "in place"),
        ("webgpu", "growing"),
        ("wasm", "generate"),
        ("wasm", "growing"),
    ]
    assert all(r["tokens_per_second"] > 0 and r["same_words"] == 4 for r in rows)
    table = py_ort_command("bench", decoders["grouped"], *arguments, "--provider", "wasm")[1]
    assert "3 tokens after a prompt of 5" in table and "4 of 4" in table


def test_the_other_engine_keeps_its_caches(py_ort_command, decoders):
    try:
        find_dist()
    except EngineError as e:
        pytest.skip(str(e))
    arguments = ("--decode", "--provider", "wasm", "--past", 5, "--words", 3, "--against", "onnxruntime-web")
    status, out, err = py_ort_command("bench", decoders["concat"], *arguments, "--json", "-")
    assert status == 0, err
    assert [(r["engine"], r["same_words"]) for r in json.loads(out)] == [
        ("py_ort", 4),
        ("py_ort", 4),
        ("onnxruntime-web", 4),
    ]


def test_what_is_no_decoder_is_said_to_be_none(py_ort_command, tmp_path):
    (tmp_path / "add.onnx").write_bytes(small_models.add())
    status, _, err = py_ort_command("bench", tmp_path / "add.onnx", "--decode")
    assert status == 1 and "past_key_values" in err
    status, _, err = py_ort_command("bench", tmp_path / "add.onnx", "--decode", "--page")
    assert status == 2 and "--page" in err


def test_tokens_of_one_message_share_its_time():
    """Otherwise the median of steps is that of tokens that were there already: 0.0 beside 80 tokens a second."""
    assert spread([40, 0.01, 0.01, 0.02, 20, 0.01]) == pytest.approx([10.01] * 4 + [10.005] * 2)
    assert spread([5.0, 6, 5.5]) == [5, 6, 5.5] and spread([]) == []
