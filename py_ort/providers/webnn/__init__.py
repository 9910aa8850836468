"""WebNN: the browser's own operators, on the CPU, a GPU or an NPU; all nodes of a segment are one graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from py_ort.providers.needs import Needs
from py_ort.providers.option import Enumeration, Option
from py_ort.providers.provider import Crossing, Provider

if TYPE_CHECKING:
    from py_ort.providers.packing import Packing

_FLAG = "--enable-features=WebMachineLearningNeuralNetwork"
_TYPES = Enumeration("DeviceType", {"cpu": "the processor", "gpu": "a GPU", "npu": "a processor for neural networks"})
_POWER = Enumeration("PowerPreference", {"default": "", "high-performance": "", "low-power": ""})
_ELEMENTS = "float32 float16 int64 uint64 int32 uint32 int8 uint8 bool"


def _packing() -> Packing:
    from py_ort.providers.webnn.packing import Filters

    return Filters()


def _crossing(given: Mapping[str, str]) -> Crossing:
    """Return the price measured on TFLite, whose one thread is about as fast as the core's two."""
    return Crossing(ms=1.0, ms_per_mb=2.0, gain=0.15 if given.get("deviceType", "cpu") == "cpu" else 0.8)


PROVIDER = Provider(
    "webnn",
    ("WebNNExecutionProvider",),
    order=1,
    whole_graphs=True,
    asked=True,
    empty_tensors=False,
    elements={dtype: dtype for dtype in _ELEMENTS.split()},
    device_names=("webnn", "ml-tensor"),
    needs=Needs(
        flags={"software": (_FLAG,), "hardware": (_FLAG,)},
        hints={"": f"a Chromium that was built with WebNN, and {_FLAG}"},
    ),
    options=(
        Option("deviceId", "number", "which context of the page; sessions that name the same share it"),
        Option("deviceType", "choice", "what the context computes on", "cpu", _TYPES),
        Option("powerPreference", "choice", "whether speed or energy counts more", "default", _POWER),
    ),
    without_effect=frozenset(("numThreads",)),
    packing=_packing,
    crossing=_crossing,
)
