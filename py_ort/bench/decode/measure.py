"""Times decoders: each engine reads the same prompt, and generates the same number of tokens."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.bench.decode.decoder import read_decoder
from py_ort.bench.decode.engine import Writer
from py_ort.bench.decode.ours import InThePage, Loop
from py_ort.bench.decode.peer import PeerLoop
from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import PyOrtError
from py_ort.providers import on_device

#: Words of the text that warms up.
_WARM_UP = 4


@dataclass
class DecodeRow:
    """One engine on one decoder. Times in milliseconds, of the second text; tokens by argmax.

    Attributes:
        loop: Ours: "generate", the loop in the page, or a loop over `run_with_iobinding` in Python, whose caches are
            written "in place" or "growing", new ones with each token. The other engine's loop is in the page.
        past: Tokens of the prompt.
        words: Number of tokens to generate.
        create_ms: From the model's file to a session.
        first_prompt_ms: From the very first prompt to its first token, with pipelines to compile.
        prompt_ms: From a prompt to its first token.
        step_ms: The median of the generated tokens; `p90_ms`: the 90th percentile. Of `generate`, by
            when tokens arrive in Python; those of one message share its time.
        tokens_per_second: Generated tokens, divided by their total time.
        same_words: Number of tokens equal to those of the first engine, before the first that differs.
        error: The reason for no times; "".
    """

    model: str
    engine: str
    provider: str
    loop: str
    past: int
    words: int
    create_ms: float | None = None
    first_prompt_ms: float | None = None
    prompt_ms: float | None = None
    step_ms: float | None = None
    p90_ms: float | None = None
    tokens_per_second: float | None = None
    same_words: int | None = None
    adapter: str = ""
    browser: str = ""
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return asdict(self)


def measure_decoder(
    model: str | Path,
    provider: str,
    *,
    past: int = 512,
    words: int = 32,
    threads: int = 1,
    against: Sequence[str] = (),
    ours: bool = True,
    browser: BrowserOptions | None = None,
    timeout: float = 600,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[DecodeRow]:
    """Time one decoder. The row of an engine that fails has the reason.

    Engines run one after the other, since two large models may not fit in a GPU's memory.

    Args:
        model: An ONNX file.
        provider: Its name.
        past: Tokens of the prompt.
        words: Number of tokens to generate.
        threads: Threads of wasm, in all engines.
        against: Flavors of onnxruntime-web (see `py_ort.bench.peer.FLAVORS`).
        ours: True to time py_ort, too.
        browser: The browser.
        timeout: Seconds for a creation, a run of ours or a text of the other engine.
        progress: Called with the stage, its number, and the number of stages.

    Raises:
        InvalidArgument: The model is no decoder that is known here.
        PyOrtError: The model cannot be read.
    """
    decoder, browser = read_decoder(model), browser or BrowserOptions()
    rows: list[DecodeRow] = []
    made: list[tuple[str, str, Callable[[], Writer]]] = []
    if ours:
        made.append((InThePage.name, provider, partial(InThePage, decoder, provider, browser, threads, timeout)))
        for in_place in (True, False) if decoder.in_place and on_device(provider) else (False,):
            made.append((Loop.name, provider, partial(Loop, decoder, provider, in_place, browser, threads, timeout)))
    for flavor in against:
        made.append((PeerLoop.name, flavor, partial(PeerLoop, decoder, flavor, browser, threads, timeout)))
    first: list[int] = []
    for number, (engine, place, make) in enumerate(made):
        progress(f"{Path(model).name}: {engine} {place}", number, len(made))
        row = DecodeRow(Path(model).stem, engine, place, "", past, words, browser=browser.name)
        try:
            written = _measure(row, make, decoder.prompt(past))
            first = first or written
            row.same_words = _same(written, first)
        except PyOrtError as e:
            row.error = f"{type(e).__name__}: {e}"
        rows.append(row)
    return rows


def _measure(row: DecodeRow, make: Callable[[], Writer], prompt: np.ndarray) -> list[int]:
    """Fill a row in; return the words."""
    began = time.perf_counter()
    engine = make()
    try:
        row.create_ms = (time.perf_counter() - began) * 1000
        row.loop, row.adapter = engine.loop, engine.adapter
        row.first_prompt_ms = engine.write(prompt, _WARM_UP).prompt_ms
        text = engine.write(prompt, row.words)
    finally:
        engine.close()
    row.prompt_ms, row.step_ms = text.prompt_ms, statistics.median(text.step_ms)
    row.p90_ms = float(np.percentile(text.step_ms, 90))
    row.tokens_per_second = 1000 * len(text.step_ms) / sum(text.step_ms)
    return text.words


def _same(words: Sequence[int], others: Sequence[int]) -> int:
    return next((i for i, pair in enumerate(zip(words, others, strict=True)) if pair[0] != pair[1]), len(words))
