"""What is JSON in messages to and from the peer's worker. A test compares it with web/src/peer/json_fields.ts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict


class PeerOptions(TypedDict):
    """CreateSession.options, of which `plan` is the URL of an ONNX model. `module`, `mjs`, `wasm`: URLs of its files.

    `fallback`: False if a node on the CPU is to be an error; `session`: fields of onnxruntime-web's session options.
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
    """Run.options: a text to write, instead of feeds."""

    decode: DecodeTask


class PeerRunInfo(TypedDict):
    """RunResult.info of a run with feeds."""

    run_ms: float


class DecodeCache(TypedDict):
    """Its input and output, and the dims of one without rows."""

    past: str
    present: str
    dims: Sequence[int]


class DecodeTask(TypedDict):
    """Words to take in, and how many to write behind their first one.

    `inputs`: dtypes of inputs that are no caches; `type`: of caches.
    """

    prompt: Sequence[int]
    count: int
    inputs: Mapping[str, str]
    type: str
    caches: Sequence[DecodeCache]


class Decoded(TypedDict):
    """RunResult.info of a text: times in milliseconds, and its words."""

    prompt_ms: float
    step_ms: list[float]
    words: list[int]
