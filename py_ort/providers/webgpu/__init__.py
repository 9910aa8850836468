"""WebGPU: kernels in WGSL, which the page's JavaScript execution provider dispatches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.providers.provider import Provider
from py_ort.providers.webgpu.needs import NEEDS
from py_ort.providers.webgpu.webgpu_options import OPTIONS

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_NAME = "webgpu"
_AS_THEY_ARE = "float32 float16 bfloat16 int32 uint32 int16 uint16 int8 uint8"
_ELEMENTS = {
    **{dtype: dtype for dtype in _AS_THEY_ARE.split()},
    "int64": "int32",
    "uint64": "uint32",
    "bool": "uint32",
}


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
    tiles=True,
    needs=NEEDS,
    options=OPTIONS,
    c_name="WebGPU",
    without_effect=frozenset(("enableRobustness",)),
    packing=_packing,
)
