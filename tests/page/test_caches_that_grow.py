"""Caches that become new, longer ones with each word: steps differ in sizes only, and make little anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
from language_models import HEADS, KV_HEADS, LAYERS, SIZE, language_model

from py_ort import InferenceSession, OrtValue

pytestmark = pytest.mark.browser
CACHES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
PROMPT, WORDS = 40, 36


@pytest.mark.parametrize("kind", ["grouped", "growing"])
def test_steps_of_caches_that_grow(kind: str, new_session: Callable[..., InferenceSession]) -> None:
    model = language_model(kind).SerializeToString()
    session = new_session(model, providers=["webgpu"])
    native = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    empty = np.zeros((1, KV_HEADS if kind == "grouped" else HEADS, 0, SIZE), np.float32)
    for text in range(2):
        rng = np.random.default_rng(text)
        binding = session.io_binding()
        binding.bind_output("logits")
        for name in CACHES:
            binding.bind_ortvalue_input(f"past_key_values.{name}", OrtValue.ortvalue_from_numpy(empty))
            binding.bind_output(f"present.{name}", "webgpu")
        theirs = dict.fromkeys((f"past_key_values.{name}" for name in CACHES), empty)
        total, buffers = 0, []
        for step in range(WORDS):
            rows = 1 if step else PROMPT
            total += rows
            feeds = {"input_ids": rng.integers(0, 48, (1, rows)), "attention_mask": np.ones((1, total), np.int64)}
            if kind == "growing":
                feeds["position_ids"] = np.arange(total - rows, total)[None]
            for name, array in feeds.items():
                binding.bind_cpu_input(name, array)
            session.run_with_iobinding(binding)
            buffers.append(session.stats()["last_run"]["counters"]["buffers"])
            logits, *presents = binding.get_outputs()
            for name, present in zip(CACHES, presents, strict=True):
                binding.bind_ortvalue_input(f"past_key_values.{name}", present)
            expected, *longer = native.run(None, {**feeds, **theirs})
            theirs = dict(zip(theirs, longer, strict=True))
            np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-3, atol=1e-4, err_msg=f"step {step}")
        for name, present in zip(CACHES, presents, strict=True):
            np.testing.assert_allclose(present.numpy(), theirs[f"past_key_values.{name}"], rtol=1e-3, atol=1e-4)
        # Room lasts for some steps; until 16 lengths are remembered, each has uniforms of its own.
        assert sum(buffer > 0 for buffer in buffers[20:]) <= 6, str(buffers)
