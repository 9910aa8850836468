"""Configuration in a decoder's folder: onnxruntime-genai's genai_config.json, transformers' generation_config.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py_ort.compiler.load.model_files import open_file, shown
from py_ort.exceptions import InvalidArgument
from py_ort.runtime.session_model import Source
from py_ort.signal_handlers import from_handler
from py_ort.wire.json_fields import DecoderNames

_GENAI, _GENERATION, _CONFIG = "genai_config.json", "generation_config.json", "config.json"
#: Default number of new tokens.
_USUAL = 256
#: Settings with the same name in both kinds of files and in `generate`.
_SAME = (
    *("do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "max_new_tokens", "min_new_tokens"),
    *("num_beams", "length_penalty", "early_stopping", "num_return_sequences"),
)
#: Settings that 0 switches off; a temperature of 0 only without sampling.
_OFF_AT_0 = ("top_p", "repetition_penalty")
#: Settings that would choose other tokens and that `generate` lacks, with the value without effect, besides None.
_UNMET = {
    "num_beam_groups": 1,
    "diversity_penalty": 0,
    "no_repeat_ngram_size": 0,
    "min_p": 0,
    "typical_p": 1,
    "bad_words_ids": [],
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}
#: The page's names for inputs and outputs of genai_config.json.
_NAMES = {
    "input_ids": "ids",
    "attention_mask": "mask",
    "position_ids": "positions",
    "past_sequence_length": "lengths",
    "current_sequence_length": "total",
    "total_sequence_length": "total",
    "past_key_names": "pastKey",
    "past_value_names": "pastValue",
    "logits": "logits",
    "present_key_names": "presentKey",
    "present_value_names": "presentValue",
}


@dataclass(frozen=True)
class Defaults:
    """Defaults of generations from a model's files.

    Attributes:
        settings: Keywords of `generate`.
        names: Names of inputs and outputs.
        context_length: Largest number of tokens of prompt and result together; None: unknown.
        max_length: Default limit of tokens of prompt and result together.
        min_length: Number of tokens of prompt and result together before the end is allowed.
        unmet: Settings that `generate` lacks, as "min_p=0.1".
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    names: DecoderNames = field(default_factory=lambda: DecoderNames())
    context_length: int | None = None
    max_length: int | None = None
    min_length: int = 0
    unmet: tuple[str, ...] = ()

    def lengths(self, prompt: int) -> dict[str, int]:
        """Return the keywords that depend on the length of the longest prompt."""
        most = [length - prompt for length in (self.max_length, self.context_length) if length]
        found = {"max_new_tokens": max(min([_USUAL, *most]), 1)}
        if self.min_length > prompt:
            found["min_new_tokens"] = self.min_length - prompt
        return found


def decoder_file(source: Source) -> Source:
    """Return the decoder's file if `source` is a folder of onnxruntime-genai, else `source` itself.

    Raises:
        InvalidArgument: The folder's configuration cannot be read, or names no file.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    try:
        if not (Path(source) / _GENAI).is_file():
            return source
    except (OSError, ValueError) as e:  # not a path: opening it raises the error
        if from_handler(e):
            raise
        return source
    name = _part(_read(Path(source) / _GENAI), "model", "decoder").get("filename")
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"{shown(str(source))}: {_GENAI} names no file of a decoder (model.decoder.filename)")
    return Path(source) / name


def defaults_beside(path: str) -> Defaults:
    """Return the defaults from the files in a model's folder.

    Args:
        path: The model's file; "" for bytes.

    Raises:
        InvalidArgument: A file cannot be read.
    """
    if not path:
        return Defaults()
    folder = Path(path).parent
    if (folder / _GENAI).is_file():
        config = _read(folder / _GENAI)
        if _part(config, "model", "decoder").get("filename") in (None, Path(path).name):
            return _of_genai(config)
    return _of_transformers(*(_read(folder / name) for name in (_GENERATION, _CONFIG)))


def _of_genai(config: Mapping[str, Any]) -> Defaults:
    model, search, decoder = _part(config, "model"), _part(config, "search"), _part(config, "model", "decoder")
    called = {**_part(decoder, "inputs"), **_part(decoder, "outputs")}
    names: Any = {_NAMES[key]: name for key, name in called.items() if key in _NAMES and isinstance(name, str)}
    settings = _settings(search, model.get("eos_token_id"))
    return Defaults(settings, names, _number(model.get("context_length")), *_lengths(search), _unmet(search))


def _of_transformers(generation: Mapping[str, Any], config: Mapping[str, Any]) -> Defaults:
    eos = generation.get("eos_token_id", config.get("eos_token_id"))
    length = _number(config.get("max_position_embeddings", config.get("n_positions")))
    names = DecoderNames()
    return Defaults(_settings(generation, eos), names, length, *_lengths(generation), _unmet(generation))


def _lengths(said: Mapping[str, Any]) -> tuple[int | None, int]:
    return _number(said.get("max_length")), _number(said.get("min_length")) or 0


def _unmet(said: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{name}={said[name]}" for name, nothing in _UNMET.items() if said.get(name) not in (None, nothing))


def _settings(said: Mapping[str, Any], eos: Any) -> dict[str, Any]:
    settings = {name: said[name] for name in _SAME if said.get(name) is not None}
    off = _OFF_AT_0 if said.get("do_sample") else (*_OFF_AT_0, "temperature")
    settings = {name: value for name, value in settings.items() if value != 0 or name not in off}
    return settings if eos is None else {**settings, "eos_token_id": eos}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _part(config: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        found = config.get(key)
        config = found if isinstance(found, dict) else {}
    return config


def _read(file: Path) -> Mapping[str, Any]:
    """Return a configuration; {} if the file does not exist."""
    try:
        with open_file(file) as opened:
            found = json.loads(opened.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as e:
        if from_handler(e):
            raise
        raise InvalidArgument(f"{shown(str(file))} cannot be read as JSON: {e}") from None
    if not isinstance(found, dict):
        raise InvalidArgument(f"{shown(str(file))} is a JSON {type(found).__name__}, not an object")
    return found
