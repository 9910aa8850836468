"""Beam search over logits of native onnxruntime, as transformers defines it: `BeamSearch` of tensors in its `generate`.

Simple, not fast: each step runs all sequences in full, and scores are arrays of float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import onnx
from native import native_session

#: The score of a forbidden token.
_NEVER = -1e9


class Beams(NamedTuple):
    """The best sequences, best first.

    Attributes:
        tokens: New tokens.
        scores: Score of each sequence.
    """

    tokens: list[list[int]]
    scores: list[float]


def native_beams(
    model: onnx.ModelProto,
    prompt: Sequence[int],
    count: int,
    num_beams: int,
    *,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    eos_token_id: int | Sequence[int] = (),
    stop: Sequence[Sequence[int]] = (),
    repetition_penalty: float = 1.0,
    min_new_tokens: int = 0,
) -> Beams:
    """Search, by the options of `generate`.

    Args:
        model: From `language_model`.
        prompt: Tokens.
        count: The most new tokens.
        num_beams: Sequences at a time.
        length_penalty: As in transformers.
        early_stopping: As in transformers.
        eos_token_id: Tokens that end a sequence.
        stop: Sequences of tokens that end a sequence.
        repetition_penalty: As in transformers.
        min_new_tokens: The fewest new tokens.
    """
    eos = [eos_token_id] if isinstance(eos_token_id, int) else list(eos_token_id)
    logits_of = _logits(model)
    running = [(0.0, list(prompt))] + [(_NEVER, list(prompt))] * (num_beams - 1)
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, count + 1):
        options = []
        for score, tokens in running:
            logits = logits_of(tokens)
            chances = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
            seen = list(set(tokens))
            chances[seen] *= repetition_penalty
            if length <= min_new_tokens:
                chances[[token for token in eos if token < len(chances)]] = -np.inf
            options += [(score + float(chance), [*tokens, token]) for token, chance in enumerate(chances)]
        options.sort(key=lambda option: -option[0])
        best = options[: max(2, 1 + len(eos)) * num_beams]

        def over(tokens: list[int], length: int = length) -> bool:
            new = tokens[len(prompt) :]
            return new[-1] in eos or length == count or any(new[-len(s) :] == list(s) for s in stop)

        finished += [(score / length**length_penalty, tokens) for score, tokens in best[:num_beams] if over(tokens)]
        finished = sorted(finished, key=lambda one: -one[0])[:num_beams]
        running = [option for option in best if not over(option[1])][:num_beams]
        if not running:
            break
        if len(finished) == num_beams:
            longest = count if early_stopping == "never" and length_penalty > 0 else length
            if early_stopping is True or running[0][0] / longest**length_penalty <= finished[-1][0]:
                break
    return Beams([tokens[len(prompt) :] for _, tokens in finished], [score for score, _ in finished])


def _logits(model: onnx.ModelProto) -> Callable[[Sequence[int]], np.ndarray]:
    session = native_session(model)
    return partial(logits_behind, session)


def logits_behind(session: Any, tokens: Sequence[int]) -> np.ndarray:
    """Return the logits of the next token, by a session of onnxruntime."""
    feeds: dict[str, Any] = {}
    for arg in session.get_inputs():
        if arg.name.startswith("past"):
            feeds[arg.name] = np.zeros(
                [1, arg.shape[1], 0, arg.shape[3]], np.float16 if "16" in arg.type else np.float32
            )
    feeds |= {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
    if any(arg.name == "position_ids" for arg in session.get_inputs()):
        feeds["position_ids"] = np.arange(len(tokens))[None]
    return np.asarray(session.run(["logits"], feeds)[0][0, -1], np.float64)
