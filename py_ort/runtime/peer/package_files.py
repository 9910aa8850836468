"""The files of onnxruntime-web."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from py_ort.exceptions import EngineError, InvalidArgument
from py_ort.runtime.engines import ENGINES, PEER
from py_ort.runtime.peer.npm import npm_package

#: Version of the npm package, unless ORT_WEB_DIST names another copy.
VERSION = "1.30.0"


@dataclass(frozen=True)
class Flavor:
    """One of onnxruntime-web's builds: its bundle, its wasm glue, and the provider."""

    module: str
    glue: str
    provider: str


FLAVORS = {
    "wasm": Flavor("ort.wasm.min.mjs", "ort-wasm-simd-threaded", "wasm"),
    "webgpu": Flavor("ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify", "webgpu"),
    "jsep": Flavor("ort.min.mjs", "ort-wasm-simd-threaded.jsep", "webgpu"),
    "webgl": Flavor("ort.webgl.min.mjs", "ort-wasm-simd-threaded", "webgl"),
    "webnn": Flavor("ort.min.mjs", "ort-wasm-simd-threaded.jsep", "webnn"),
}


def check_engine(engine: str) -> None:
    """Check the name of an engine.

    Raises:
        InvalidArgument: There is no such engine.
    """
    if engine not in ENGINES:
        raise InvalidArgument(f"engine is one of {', '.join(ENGINES)}, not {engine!r}")


def flavor_of(engine: str, provider: str) -> str:
    """Return onnxruntime-web's build for a provider: a key of `FLAVORS`, if the provider exists there."""
    asked = engine.rpartition(":")[2]
    return asked if asked in FLAVORS and FLAVORS[asked].provider == provider else provider


def find_dist() -> Path:
    """Return the `dist` folder of onnxruntime-web: ORT_WEB_DIST, or an npm install in the user's cache.

    Raises:
        EngineError: The package is not there, and npm cannot fetch it.
    """
    if named := os.environ.get("ORT_WEB_DIST"):
        return Path(named)
    try:
        return npm_package(PEER, VERSION) / "node_modules/onnxruntime-web/dist"
    except EngineError as e:
        raise EngineError(f"{e}; or set ORT_WEB_DIST to a copy's folder") from e
