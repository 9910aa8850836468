"""Blocks of transformers in the browser: native onnxruntime's results, in few kernels, and with a growing cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest
from decoder_blocks import gpt2, gptj, whisper
from encoder_blocks import bert, clip
from graphs import random_feeds
from standard_form import run_native
from transformer_blocks import llama

SIZES = {"batch": 2, "sequence": 3, "past": 2, "frames": 4, "total": 5}
# id: (the model, the most kernels that one run may dispatch on webgpu)
BLOCKS: dict[str, tuple[Callable[[], onnx.ModelProto], int]] = {
    "llama": (llama, 27),
    "phi": (partial(llama, partial=4, rotary="table"), 25),
    "gemma": (partial(llama, softcap=5.0, qk_norm="rows"), 29),
    "gpt2": (gpt2, 12),
    "gptj": (gptj, 10),
    "whisper": (whisper, 18),
    "bert": (partial(bert, form="export"), 12),
    "clip": (clip, 8),
}


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    total = SIZES["total"] if any(v.name == "past_key" for v in model.graph.input) else SIZES["sequence"]
    feeds = random_feeds(model, {**SIZES, "total": total})
    if "position_ids" in feeds:
        feeds["position_ids"] = np.array([[2, 3, 4], [1, 2, 4]], np.int64)
    if "attention_mask" in feeds:
        feeds["attention_mask"][:] = 1
        feeds["attention_mask"][0, -1] = 0
    return feeds


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(("make", "launches"), BLOCKS.values(), ids=BLOCKS)
def test_block(make, launches, provider, new_session):
    model = make()
    feeds = _feeds(model)
    session = new_session(model.SerializeToString(), providers=[provider])
    for found, wanted in zip(session.run(None, feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    if provider == "webgpu":
        assert session.stats()["last_run"]["counters"]["dispatches"] <= launches


def test_a_cache_grows_word_by_word(new_session):
    """Keys and values that come out go in again; each word sees all before it."""
    model = gpt2()
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    rng = np.random.default_rng(4)
    words = rng.standard_normal((1, 5, 16)).astype(np.float32)
    empty = np.zeros((1, 4, 0, 4), np.float32)
    whole = session.run(["y"], {"x": words, "past_key": empty, "past_value": empty})[0]
    key = value = empty
    for i in range(5):
        feeds = {"x": words[:, i : i + 1], "past_key": key, "past_value": value}
        y, key, value = session.run(["y", "present_key", "present_value"], feeds)
        np.testing.assert_allclose(y[:, 0], whole[:, i], rtol=1e-3, atol=1e-4)
    assert key.shape == (1, 4, 5, 4)
