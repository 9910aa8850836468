"""The CPU: kernels of the core, in WebAssembly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from py_ort.providers.provider import Option, Provider

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_NAME = "wasm"


def _options() -> Mapping[str, Option]:
    """Instructions of the inner loops: those of every browser, or relaxed SIMD, which may fuse steps.

    The page reads it (web/src/core/microkernels.ts).
    """
    return {"simd": Option("simd", "choice", ("auto", "relaxed", "fixed"), "auto", _NAME)}


def _packing() -> Packing:
    from py_ort.providers.wasm.packing import Panels

    return Panels()


PROVIDER = Provider(
    _NAME,
    ("CPUExecutionProvider", "cpu"),
    order=9,
    default=True,
    on_device=False,
    device_names=("cpu",),
    options=_options,
    without_effect=frozenset(("arena_extend_strategy", "use_arena", "enable_cpu_mem_arena", "device_id")),
    packing=_packing,
)
