"""`py-ort bench --decode`: prompts and tokens of random decoders, on both engines, equal native onnxruntime's."""

import numpy as np
import pytest
from native import native_session
from npm_packages import peer_dist

from py_ort import BrowserOptions
from py_ort.bench.decode.decoder import read_decoder
from py_ort.bench.decode.ours import Loop, spread
from py_ort.bench.decode.random_llama import SIZES, Form, write_random_llama

FORMS = {
    "grouped": Form(),
    "packed": Form(packed=True, zero_points=True, bits=8, last_row=True),
    "concat": Form(caches="concat", block=16),
    "floats": Form(caches="concat", bits=0),
}
SHORT = ("--decode", "--past", 5, "--words", 3)


@pytest.fixture(scope="module")
def decoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoders")
    return {name: write_random_llama(folder / f"{name}.onnx", SIZES["tiny"], form) for name, form in FORMS.items()}


def native_words(decoder, prompt, count):
    session = native_session(decoder.path)
    caches = {c.past: np.zeros((1, c.heads, 0, c.size), decoder.dtype) for c in decoder.caches}
    names = ["logits", *(cache.present for cache in decoder.caches)]
    words, past, given = [], 0, prompt
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


def test_a_row_for_each_way(py_ort_command, py_ort_json, decoders):
    status, rows, err = py_ort_json("bench", decoders["grouped"], *SHORT, "--webgpu", "software")
    assert status == 0, err
    on_gpu, on_cpu = ("generate", "in place", "growing"), ("generate", "growing")
    wanted = [*(("webgpu", way) for way in on_gpu), *(("wasm", way) for way in on_cpu)]
    assert [(r["provider"], r["loop"]) for r in rows] == wanted
    assert all(r["tokens_per_second"] > 0 and r["same_words"] == 4 for r in rows)
    table = py_ort_command("bench", decoders["grouped"], *SHORT, "--provider", "wasm")[1]
    assert "3 tokens after a prompt of 5" in table and "4 of 4" in table


def test_the_other_engine_keeps_its_caches(py_ort_json, decoders):
    peer_dist()
    arguments = (*SHORT, "--provider", "wasm", "--against", "onnxruntime-web")
    status, rows, err = py_ort_json("bench", decoders["concat"], *arguments)
    assert status == 0, err
    engines = ("py_ort", "py_ort", "onnxruntime-web")
    assert [(r["engine"], r["same_words"]) for r in rows] == [(engine, 4) for engine in engines]


def test_what_is_no_decoder_is_said_to_be_none(py_ort_command, add_file):
    status, _, err = py_ort_command("bench", add_file, "--decode")
    assert status == 1 and "past_key_values" in err
    status, _, err = py_ort_command("bench", add_file, "--decode", "--page")
    assert status == 2 and "--page" in err


def test_tokens_of_one_message_share_its_time():
    """Otherwise the median of steps is that of tokens that were there already: 0.0 beside 80 tokens a second."""
    assert spread([40, 0.01, 0.01, 0.02, 20, 0.01]) == pytest.approx([10.01] * 4 + [10.005] * 2)
    assert spread([5.0, 6, 5.5]) == [5, 6, 5.5] and spread([]) == []
