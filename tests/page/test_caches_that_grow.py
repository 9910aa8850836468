"""Caches that are new and longer after each token: steps differ in sizes only, and make few new objects."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from language_models import HEADS, KV_HEADS, LAYERS, SIZE, language_model
from native import native_session

from py_ort import InferenceSession, OrtValue

CACHES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
PROMPT, WORDS = 40, 36
KINDS = pytest.mark.parametrize("kind", ["grouped", "growing"])


def ones(total: int) -> np.ndarray:
    """A mask."""
    return np.ones((1, total), np.int64)


class Text:
    """A text of a decoder, here and by native onnxruntime, whose caches are used by `feed`."""

    def __init__(self, new_session: Callable[..., InferenceSession], batch: int = 1, kind: str = "grouped") -> None:
        model = language_model(kind).SerializeToString()
        self.kind = kind
        self.session = new_session(model, providers=["webgpu"])
        self.native = native_session(model)
        self.binding = self.session.io_binding()
        self.binding.bind_output("logits")
        for name in CACHES:
            self.binding.bind_output(f"present.{name}", "webgpu")
        self.rng, self.batch = np.random.default_rng(1), batch
        self.empty = np.zeros((batch, KV_HEADS if kind == "grouped" else HEADS, 0, SIZE), np.float32)

    def begin(self, mask: np.ndarray) -> tuple[list[OrtValue], list[np.ndarray]]:
        """Run a prompt, as long as the mask."""
        empty = OrtValue.ortvalue_from_numpy(self.empty)
        return self.step([empty] * len(CACHES), [self.empty] * len(CACHES), mask, mask.shape[1])

    def step(
        self, ours: list[OrtValue], theirs: list[np.ndarray], mask: np.ndarray, rows: int = 1
    ) -> tuple[list[OrtValue], list[np.ndarray]]:
        """Run tokens after caches; return the caches."""
        feeds = {"input_ids": self.rng.integers(0, 48, (self.batch, rows)), "attention_mask": mask}
        if self.kind == "growing":
            feeds["position_ids"] = np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, -rows:]
        for name, array in feeds.items():
            self.binding.bind_cpu_input(name, array)
        for name, value in zip(CACHES, ours, strict=True):
            self.binding.bind_ortvalue_input(f"past_key_values.{name}", value)
        self.session.run_with_iobinding(self.binding)
        logits, *presents = self.binding.get_outputs()
        pasts = {f"past_key_values.{name}": past for name, past in zip(CACHES, theirs, strict=True)}
        expected, *longer = self.native.run(None, {**feeds, **pasts})
        np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-3, atol=1e-4)
        assert [value.shape() for value in presents] == [list(present.shape) for present in longer]
        return presents, longer

    def counters(self) -> dict[str, int]:
        """Of the last run."""
        return self.session.stats()["last_run"]["counters"]


def check(ours: list[OrtValue], theirs: list[np.ndarray]) -> None:
    for value, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(value.numpy(), expected, rtol=1e-3, atol=1e-4)


@KINDS
def test_steps_of_caches_that_grow(kind, new_session):
    text = Text(new_session, kind=kind)
    for seed in range(2):
        text.rng = np.random.default_rng(seed)
        caches, buffers = text.begin(ones(PROMPT)), [0]
        for total in range(PROMPT + 1, PROMPT + WORDS):
            caches = text.step(*caches, ones(total))
            buffers.append(text.counters()["buffers"])
        check(*caches)
        # Room lasts for some steps; up to 16 remembered lengths have uniforms of their own.
        assert sum(buffer > 0 for buffer in buffers[20:]) <= 6, str(buffers)


@KINDS
def test_steps_within_room_are_replayed(kind, new_session):
    """There is room for 256 rows: a step walks the plan when the room is made, and when it grows."""
    text = Text(new_session, kind=kind)
    caches, walked = text.begin(ones(240)), []
    for total in range(241, 277):
        caches = text.step(*caches, ones(total))
        counters = text.counters()
        if counters["walks"]:
            walked.append(total)
        else:
            assert counters["bind_groups"] == counters["buffers"] == counters["pipelines"] == 0
    assert walked == [241, 257]
    check(*caches)


@KINDS
def test_caches_of_earlier_steps_stay_as_they_are(kind, new_session):
    """Texts that branch: continuing from an earlier step finds its caches, and affects no other text."""
    text = Text(new_session, kind=kind)
    first = text.step(*text.begin(ones(9)), ones(10))
    left = text.step(*text.step(*first, ones(11)), ones(12))
    right = text.step(*text.step(*first, ones(11)), ones(12))
    for caches in (left, right, first):
        check(*caches)
    assert not np.array_equal(left[0][0].numpy(), right[0][0].numpy())
    check(*text.step(*left, ones(13)))
    # A write into a value changes no other one.
    third = text.step(*right, ones(13))
    right[0][0].update_inplace(np.zeros_like(right[1][0]))
    check(*third)
    assert not right[0][0].numpy().any()
    right[1][0] = np.zeros_like(right[1][0])
    check(*text.step(*right, ones(13)))


def test_rows_of_unequal_lengths_are_not_appended(new_session):
    """They belong before the end of the caches: the feeds stay unchanged."""
    text = Text(new_session, batch=2)
    mask = np.ones((2, 9), np.int64)
    ours, theirs = text.begin(mask)
    for _ in range(5):
        before = [value.numpy() for value in ours], ours
        mask = np.concatenate([mask, [[1], [0]]], axis=1)
        ours, theirs = text.step(ours, theirs, mask)
        for value, was in zip(before[1], before[0], strict=True):
            np.testing.assert_array_equal(value.numpy(), was)


def test_padded_rows_of_concatenated_caches_are_replayed(new_session):
    """Each row of a batch has its own mask, and a prompt may follow steps."""
    text = Text(new_session, batch=2, kind="growing")
    mask = np.ones((2, 12), np.int64)
    mask[1, :5] = 0
    ours, theirs = text.begin(mask)
    walks = []
    for rows in (1, 1, 1, 4, 1, 1):
        mask = np.concatenate([mask, np.ones((2, rows), np.int64)], axis=1)
        ours, theirs = text.step(ours, theirs, mask, rows)
        walks.append(text.counters()["walks"])
    assert walks[1:3] == [0, 0] and walks[-1] == 0, str(walks)
    check(ours, theirs)


@KINDS
def test_caches_with_room_are_freed(kind, new_session):
    text = Text(new_session, kind=kind)
    device = lambda: text.session.stats()["page"]["devices"]["0"]  # noqa: E731
    ours, theirs = text.begin(ones(9))
    for value in text.step(ours, theirs, ones(10))[0]:
        value.release()
    before = device()["tensors"]
    older, longer = text.step(ours, theirs, ones(10))
    newer, _ = text.step(older, longer, ones(11))
    for value in (*older, *newer):
        value.release()
    assert device()["tensors"] == before
    for value in ours:
        value.release()
