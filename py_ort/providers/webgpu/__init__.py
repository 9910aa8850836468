"""WebGPU: kernels in WGSL, which the page's JavaScript execution provider launches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from py_ort.exceptions import EngineError
from py_ort.folders import ASSETS
from py_ort.providers.provider import Option, Provider

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_NAME = "webgpu"
_TABLE = ASSETS / "options.webgpu.json"
_AS_THEY_ARE = "float32 float16 bfloat16 int32 uint32 int16 uint16 int8 uint8"
_ELEMENTS = {
    **{dtype: dtype for dtype in _AS_THEY_ARE.split()},
    "int64": "int32",
    "uint64": "uint32",
    "bool": "uint32",
}


@cache
def _options() -> Mapping[str, Option]:
    """Declared once, in the core (wasm_build/include/py_ort/webgpu_provider_options.h), whose build leaves a table."""
    try:
        entries = json.loads(_TABLE.read_text())
    except FileNotFoundError as e:
        raise EngineError(f"{_TABLE.name} is missing: the core is not built (run `make build` in a clone)") from e
    return {e["key"]: Option(e["key"], e["kind"], tuple(e["values"]), e["default"], _NAME) for e in entries}


def _packing() -> Packing:
    from py_ort.providers.webgpu.packing import Matrices

    return Matrices()


PROVIDER = Provider(
    _NAME,
    ("WebGpuExecutionProvider", "JsExecutionProvider", "jsep"),
    order=0,
    default=True,
    elements=_ELEMENTS,
    device_names=("webgpu", "gpu", "webgpu-buffer", "gpu-buffer"),
    user_kernels=True,
    options=_options,
    for_compiler=frozenset(("preferredLayout", "forceCpuNodeNames")),
    packing=_packing,
)
