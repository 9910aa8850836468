"""Names of execution providers: ours, onnxruntime's and onnxruntime-web's."""

from __future__ import annotations

from py_ort.exceptions import InvalidArgument

_NAMES = {
    "webgpu": ("WebGpuExecutionProvider", "JsExecutionProvider", "jsep"),
    "wasm": ("CPUExecutionProvider", "cpu"),
    "webgl": ("WebGLExecutionProvider",),
    "webnn": ("WebNNExecutionProvider",),
}
ALIASES: dict[str, str] = {alias.lower(): name for name, aliases in _NAMES.items() for alias in (name, *aliases)}
"""Canonical name by every accepted name, in lower case."""


def canonical_provider(name: str) -> str:
    """Return "webgpu", "wasm", "webgl" or "webnn".

    Raises:
        InvalidArgument: No provider is known by this name.
    """
    found = ALIASES.get(name.lower())
    if found is None:
        raise InvalidArgument(
            f"Unknown Provider Type: {name}. There are {', '.join(_NAMES)} (onnxruntime's names are known too)"
        )
    return found


def onnxruntime_name(name: str) -> str:
    """Return the provider's name in onnxruntime's manner: "WebGpuExecutionProvider"."""
    return _NAMES[canonical_provider(name)][0]
