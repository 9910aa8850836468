"""Engines that write texts in the benchmark of decoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Written:
    """A text: milliseconds from the prompt to its first token and for each later token, and the tokens."""

    prompt_ms: float
    step_ms: list[float]
    words: list[int]


class Writer(Protocol):
    """An engine with a loaded decoder; `loop` names its use of caches, `adapter` its device ("": unknown)."""

    name: str
    loop: str

    @property
    def adapter(self) -> str: ...

    def write(self, prompt: np.ndarray, count: int) -> Written: ...
    def close(self) -> None: ...
