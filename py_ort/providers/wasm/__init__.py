"""The CPU: kernels of the core, in WebAssembly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.providers.option import Enumeration, Option
from py_ort.providers.provider import Provider

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_SIMD = Enumeration(
    "Simd",
    {
        "auto": "relaxed where the browser has relaxed SIMD",
        "relaxed": "relaxed SIMD, which may fuse a product and a sum",
        "fixed": "the same results in every browser",
    },
)


def _packing() -> Packing:
    from py_ort.providers.wasm.packing import Panels

    return Panels()


PROVIDER = Provider(
    "wasm",
    ("CPUExecutionProvider", "cpu"),
    order=9,
    default=True,
    on_device=False,
    device_names=("cpu",),
    options=(Option("simd", "choice", "instructions of the inner loops", "auto", _SIMD),),
    without_effect=frozenset(("arena_extend_strategy", "use_arena", "useArena", "enable_cpu_mem_arena", "device_id")),
    packing=_packing,
)
