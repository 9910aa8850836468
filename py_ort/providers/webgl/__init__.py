"""WebGL 2: kernels as fragment shaders, for browsers without WebGPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.providers.needs import Needs
from py_ort.providers.option import Enumeration, Option
from py_ort.providers.provider import Provider

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_SOFTWARE = "--enable-unsafe-swiftshader"
_POWER = Enumeration("PowerPreference", {"low-power": "", "high-performance": ""})
_AS_THEY_ARE = "float32 float16 bfloat16 int32 uint32 int16 uint16 int8 uint8"


def _packing() -> Packing:
    from py_ort.providers.webgpu.packing import Matrices

    return Matrices()


PROVIDER = Provider(
    "webgl",
    ("WebGLExecutionProvider",),
    order=2,
    whole_graphs=True,
    elements={
        **{dtype: dtype for dtype in _AS_THEY_ARE.split()},
        "int64": "int32",
        "uint64": "uint32",
        "bool": "uint32",
    },
    device_names=("webgl", "texture", "gpu"),
    needs=Needs(
        flags={"software": (_SOFTWARE,), "hardware": ("--ignore-gpu-blocklist",)},
        hints={
            "firefox": "a display for Firefox (Debian: apt-get install xvfb)",
            "": f"a browser with WebGL 2 (of a Chromium without a GPU: {_SOFTWARE})",
        },
        in_page=True,
    ),
    options=(
        Option("deviceId", "number", "the context: 0 is the default one; sessions that name the same share it"),
        Option("powerPreference", "choice", "the GPU to open the context on", "", _POWER),
        Option("checkWrites", "flag", "for tests of kernels: poison elements that another thread wrote, or none"),
    ),
    without_effect=frozenset(("contextId", "matmulMaxBatchSize", "textureCacheMode", "pack", "async")),
    packing=_packing,
)
