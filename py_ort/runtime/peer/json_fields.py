"""JSON in messages to and from the peer's worker. A test compares it with web/src/peer/json_fields.ts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict


class PeerOptions(TypedDict):
    """CreateSession.options; the message's `plan` is the URL of an ONNX model. `module`, `mjs`, `wasm`: URLs of files.

    `fallback` is False if nodes on the CPU are errors; `session` has fields of onnxruntime-web's session options.
    """

    module: str
    mjs: str
    wasm: str
    provider: str
    threads: int
    fallback: NotRequired[bool]
    session: NotRequired[Mapping[str, Any]]


class PeerSessionInfo(TypedDict):
    """SessionCreated.info; `version`: onnxruntime-web's."""

    create_ms: float
    version: str


class PeerRunOptions(TypedDict):
    """Run.options: a text to generate, instead of feeds."""

    decode: DecodeTask


class PeerRunInfo(TypedDict):
    """RunResult.info of a run with feeds."""

    run_ms: float


class DecodeCache(TypedDict):
    """A cache: its input and output, and the dims of an empty one."""

    past: str
    present: str
    dims: Sequence[int]


class DecodeTask(TypedDict):
    """Tokens of a prompt, and the number of tokens to generate after the first one.

    `inputs`: dtypes of inputs that are not caches; `type`: dtype of the caches.
    """

    prompt: Sequence[int]
    count: int
    inputs: Mapping[str, str]
    type: str
    caches: Sequence[DecodeCache]


class Decoded(TypedDict):
    """RunResult.info of a text: times in milliseconds, and its tokens (`words`)."""

    prompt_ms: float
    step_ms: list[float]
    words: list[int]
