"""py_ort's two ways to run decoders: `generate`, and a loop over `run_with_iobinding` with caches on the GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from py_ort.bench.decode.decoder import Decoder
from py_ort.bench.decode.engine import Written
from py_ort.browser.browser_options import BrowserOptions
from py_ort.providers import PROVIDERS, on_device, with_cpu
from py_ort.providers.resolution import REQUIRE
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.values.ort_device import HEAP
from py_ort.runtime.values.ort_value import OrtValue


def _open(decoder: Decoder, provider: str, browser: BrowserOptions, threads: int, timeout: float) -> InferenceSession:
    options = SessionOptions()
    options.add_session_config_entry(REQUIRE, "1")
    options.create_timeout = options.run_timeout = timeout
    options.intra_op_num_threads = threads
    return InferenceSession(decoder.path, options, with_cpu(provider), browser=browser)


#: A gap between tokens of this part of the mean, or less, is none: the tokens came in one message.
_TOGETHER = 0.1


def spread(gaps: Sequence[float]) -> list[float]:
    """Return the times of tokens by the gaps before each; tokens of one message share its time."""
    least = _TOGETHER * sum(gaps) / max(len(gaps), 1)
    starts = [number for number, gap in enumerate(gaps) if not number or gap > least]
    parts = [gaps[begin:end] for begin, end in pairwise([*starts, len(gaps)])]
    return [sum(part) / len(part) for part in parts for _ in part]


class InThePage:
    """One session; `generate` writes texts in the page, by the clock of Python, where tokens arrive.

    Args:
        decoder: The model.
        provider: Its name.
        browser: Where.
        threads: Threads of wasm.
        timeout: Seconds for the creation or a text.
    """

    name = "py_ort"
    loop = "generate"

    def __init__(self, decoder: Decoder, provider: str, browser: BrowserOptions, threads: int, timeout: float) -> None:
        self._session = _open(decoder, provider, browser, threads, timeout)
        self.adapter = self._session.adapter if on_device(provider) else ""
        self._timeout = timeout

    def write(self, prompt: np.ndarray, count: int) -> Written:
        """Read a prompt [n], and write `count` tokens after it."""
        times, words = [time.perf_counter()], []
        for word in self._session.generate(
            prompt.tolist(), max_new_tokens=count + 1, reuse_cache=False, timeout=self._timeout
        ):
            times.append(time.perf_counter())
            words.append(cast(int, word))
        steps = [float(step) for step in np.diff(times) * 1000]
        return Written(steps[0], spread(steps[1:]), words)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


class Loop:
    """One session; texts are written greedily, by the clock of Python.

    Args:
        decoder: The model.
        provider: Its name.
        in_place: True if caches have the length of the whole text, and are written in place; on webgpu.
        browser: Where.
        threads: Threads of wasm.
        timeout: Seconds for the creation or a run.
    """

    name = "py_ort"

    def __init__(
        self, decoder: Decoder, provider: str, in_place: bool, browser: BrowserOptions, threads: int, timeout: float
    ) -> None:
        self._decoder, self._device = decoder, PROVIDERS[provider].device_name
        self._session = _open(decoder, provider, browser, threads, timeout)
        self.in_place = in_place
        self.loop = "in place" if in_place else "growing"

    @property
    def adapter(self) -> str:
        """The adapter, or "" on the CPU."""
        return self._session.adapter if self._device != HEAP else ""

    def write(self, prompt: np.ndarray, count: int) -> Written:
        """Read a prompt [n], and write `count` tokens after it."""
        caches = self._room(len(prompt) + count) if self.in_place else self._nothing()
        binding = self._session.io_binding()
        binding.bind_output("logits", "cpu")
        if self.in_place:
            for cache in self._decoder.caches:
                binding.bind_ortvalue_input(cache.past, caches[cache.past])
                binding.bind_ortvalue_output(cache.present, caches[cache.past])
        words, times, past = [], [], 0
        given = prompt
        for _ in range(count + 1):
            began = time.perf_counter()
            word = self._step(binding, given, past, caches)
            times.append((time.perf_counter() - began) * 1000)
            words.append(word)
            past += len(given)
            given = np.array([word])
        for value in caches.values():
            value.release()
        return Written(times[0], times[1:], words)

    def _step(self, binding: Any, given: np.ndarray, past: int, caches: dict[str, OrtValue]) -> int:
        for name, array in self._decoder.feeds(given, past).items():
            binding.bind_cpu_input(name, array)
        if not self.in_place:
            for cache in self._decoder.caches:
                binding.bind_ortvalue_input(cache.past, caches[cache.past])
                binding.bind_output(cache.present, self._device)
        self._session.run_with_iobinding(binding)
        logits, *presents = binding.get_outputs()
        if not self.in_place:
            for cache, present in zip(self._decoder.caches, presents, strict=True):
                caches[cache.past].release()
                caches[cache.past] = present
        return int(logits.numpy()[0, -1].argmax())

    def _room(self, rows: int) -> dict[str, OrtValue]:
        """Caches for so many words."""
        make, dtype = self._session.create_ortvalue_from_shape_and_type, self._decoder.dtype
        return {c.past: make([1, c.heads, rows, c.size], dtype, self._device) for c in self._decoder.caches}

    def _nothing(self) -> dict[str, OrtValue]:
        """Caches without words."""
        empty = {c.past: np.zeros((1, c.heads, 0, c.size), self._decoder.dtype) for c in self._decoder.caches}
        return {name: OrtValue.ortvalue_from_numpy(array) for name, array in empty.items()}

    def close(self) -> None:
        """Close the session."""
        self._session.close()
