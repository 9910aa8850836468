"""Settings of a generation: keywords with transformers' names, and defaults from the model's folder."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

import numpy as np

from py_ort.exceptions import InvalidArgument, WrongType
from py_ort.runtime.generation.model_folder import Defaults
from py_ort.runtime.logits import LogitsProcessor
from py_ort.suggestion import did_you_mean
from py_ort.wire.json_fields import DecoderNames, GenerateOptions

#: Largest number of rows of a batch in the page: a dispatch has no more workgroups.
MOST_ROWS = 65535


class Settings(TypedDict, total=False):
    """The keywords of `generate`.

    Attributes:
        max_new_tokens: Largest number of new tokens; default: 256, or the lower limit in the model's files.
        min_new_tokens: Number of new tokens before a token of `eos_token_id` is allowed.
        eos_token_id: A token, or several, each of which ends a row. It is the row's last token.
        stop: Sequences of tokens, each of which ends a row.
        do_sample: True to draw tokens; default: the likeliest token each (greedy).
        temperature: Divisor of scores; default: 1.
        top_k: Number of the likeliest tokens to draw from; 0, the default: all.
        top_p: Total probability of the likeliest tokens to draw from; default: 1.
        repetition_penalty: Divisor for scores of earlier tokens, or factor of scores below 0; default: 1.
        num_beams: Number of sequences in a beam search, which returns the best; default: 1, no search. A search
            excludes `do_sample`, and its tokens are known only at the end: use `result`.
        length_penalty: Exponent of the length by which scores of sequences are divided; default: 1.
        early_stopping: End of a search. True: when there are as many finished sequences as beams. False, the default:
            also when the others will probably not improve. "never": also when the others cannot improve.
        num_return_sequences: Rows for each prompt: the best of a search, or several draws; default: 1.
        seed: A whole number from 0. Equal seeds draw equal tokens; default: a different seed each time.
        reuse_cache: True to continue from the last generation's caches if the prompt begins with the same tokens;
            default: True.
        mask: A number for each token of the vocabulary; tokens with 0 are never chosen.
        json_vocabulary: The text of each token, "" of tokens that are no text. Only tokens are chosen with which the
            text is the beginning of a JSON value, and those of `eos_token_id` where the value is whole.
        logits_processor: Called before each token of a row is chosen, with the row's logits, its new tokens so far and
            its number. Changes the logits in place, or returns others.
        names: Names of the model's inputs and outputs, if they are not those of transformers' exports.
    """

    max_new_tokens: int
    min_new_tokens: int
    eos_token_id: int | Sequence[int]
    stop: Sequence[Sequence[int]]
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    num_beams: int
    length_penalty: float
    early_stopping: bool | Literal["never"]
    num_return_sequences: int
    seed: int
    reuse_cache: bool
    mask: Sequence[int] | np.ndarray
    json_vocabulary: Sequence[str]
    logits_processor: LogitsProcessor
    names: DecoderNames


#: Keywords that are not among the page's options as they are.
_NOT_THERE = ("names", "logits_processor")
#: The keyword -> the page's name, and what it takes.
_KEYWORDS: dict[str, tuple[str, type]] = {
    "max_new_tokens": ("maxNewTokens", int),
    "min_new_tokens": ("minNewTokens", int),
    "eos_token_id": ("eos", list),
    "stop": ("stop", list),
    "do_sample": ("sample", bool),
    "temperature": ("temperature", float),
    "top_k": ("topK", int),
    "top_p": ("topP", float),
    "repetition_penalty": ("repetitionPenalty", float),
    "num_beams": ("numBeams", int),
    "length_penalty": ("lengthPenalty", float),
    "early_stopping": ("earlyStopping", bool),
    "num_return_sequences": ("numReturnSequences", int),
    "seed": ("seed", int),
    "reuse_cache": ("reuse", bool),
    "mask": ("mask", list),
    "json_vocabulary": ("jsonVocabulary", list),
}


def page_options(settings: Mapping[str, Any], defaults: Defaults, prompt: int) -> GenerateOptions:
    """Return settings in the page's form.

    Args:
        settings: Keywords; None means the default.
        defaults: Defaults from the model's files.
        prompt: Number of tokens of the longest prompt.

    Raises:
        WrongType: A value has a wrong type, or there is no such keyword.
    """
    options: dict[str, Any] = {"names": {**defaults.names, **_names(settings.get("names") or {})}}
    if defaults.context_length is not None:
        options["contextLength"] = defaults.context_length
    told = {name: value for name, value in settings.items() if value is not None and name not in _NOT_THERE}
    for name, value in {**defaults.lengths(prompt), **defaults.settings, **told}.items():
        if name not in _KEYWORDS:
            raise WrongType(f"generate has no keyword {name!r}{did_you_mean(name, [*_KEYWORDS, *_NOT_THERE])}")
        key, kind = _KEYWORDS[name]
        options[key] = _converted(name, value, kind)
    return cast(GenerateOptions, options)


def processor_of(settings: Mapping[str, Any]) -> LogitsProcessor | None:
    """Return the function that changes logits.

    Raises:
        WrongType: It cannot be called.
    """
    processor: LogitsProcessor | None = settings.get("logits_processor")
    if processor is None or callable(processor):
        return processor
    raise WrongType(f"generate: logits_processor is a function, not {processor!r}")


def _names(names: Any) -> Mapping[str, str]:
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise WrongType(f"generate: names is a dict of names, not {names!r}")
    known = list(DecoderNames.__annotations__)
    if unknown := next((part for part in names if part not in known), None):
        raise InvalidArgument(f"generate: unknown key {unknown!r} in names{did_you_mean(str(unknown), known)}")
    return names


def _converted(name: str, value: Any, kind: type) -> Any:
    try:
        if name == "eos_token_id":
            return [operator.index(token) for token in ([value] if np.ndim(value) == 0 else value)]
        if name == "stop":
            return [[operator.index(token) for token in sequence] for sequence in value]
        if name == "mask":
            return [int(number != 0) for number in value]
        if name == "json_vocabulary":
            return [text + "" for text in value]
        if name == "early_stopping" and value == "never":
            return value
        if kind is int:
            return operator.index(value)
        if (kind is bool and value not in (False, True)) or (kind is float and isinstance(value, str)):
            raise TypeError
        found = kind(value)
    except (TypeError, ValueError):
        wanted = {
            "eos_token_id": "a token or a list of them",
            "stop": "a list of lists of tokens",
            "mask": "a list of a number for each token",
            "json_vocabulary": "a list of the text of each token",
            "early_stopping": 'True, False or "never"',
        }
        raise WrongType(f"generate: {name} is {wanted.get(name, kind.__name__)}, not {value!r}") from None
    if kind is float and not math.isfinite(found):
        raise InvalidArgument(f"generate: {name} is a finite number, not {value!r}")
    return found


def seconds(timeout: Any) -> float | None:
    """Return a generation's time limit; None: no limit.

    Raises:
        WrongType: The limit has a wrong type.
        InvalidArgument: The limit is NaN.
    """
    try:
        found = None if timeout is None else float(timeout)
    except (TypeError, ValueError):
        raise WrongType(f"generate: timeout is a number of seconds or None, not {timeout!r}") from None
    if found is not None and math.isnan(found):
        raise InvalidArgument(f"generate: timeout is a number of seconds, not {timeout!r}")
    return found


def rows_of(prompt: Any) -> tuple[list[np.ndarray], bool]:
    """Return the rows of a prompt as int32, and True if it is a batch.

    Args:
        prompt: Tokens; or rows of tokens of any length.

    Raises:
        InvalidArgument: The prompt is empty, or a number is not a token.
        WrongType: The prompt has another type.
    """
    if not isinstance(prompt, np.ndarray) or not prompt.ndim:
        try:
            prompt = list(prompt)
        except TypeError:
            raise WrongType(f"a prompt is a list of tokens (numbers), not {type(prompt).__name__}") from None
    batch = len(prompt) > 0 and np.ndim(prompt[0]) > 0
    rows = [_row(row) for row in (prompt if batch else [prompt])]
    if not batch and not len(prompt):
        raise InvalidArgument("generate: the prompt has no tokens")
    return rows, batch


def result_rows(prompts: int, options: GenerateOptions) -> int:
    """Return the number of rows in the result for a number of prompts.

    Raises:
        InvalidArgument: The batch, or a search within it, has too many rows.
    """
    beams, sequences = options.get("numBeams", 1), options.get("numReturnSequences", 1)
    if prompts * max(beams, sequences) > MOST_ROWS:
        raise InvalidArgument(
            f"generate: a batch has at most {MOST_ROWS} rows, not {prompts * max(beams, sequences)}: give fewer "
            "prompts at a time, or a smaller num_beams or num_return_sequences"
        )
    return prompts * max(sequences, 1)


def _row(tokens: Any) -> np.ndarray:
    try:
        row = np.asarray(tokens)
    except ValueError:
        raise WrongType("a prompt is a list of tokens, or a batch of such lists, not some of both") from None
    if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
        raise WrongType(f"a prompt is a list of tokens (whole numbers), not of {row.dtype}{list(row.shape)}")
    if row.size and not (row.min() >= 0 and row.max() < 1 << 31):
        raise InvalidArgument(f"generate: tokens are from 0 to 2**31 - 1, not {row.min()} to {row.max()}")
    return np.ascontiguousarray(row, np.int32)
