"""One WebGPU kernel at a time, without a session (docs/gpu.md)."""

from py_ort.runtime.jsep import JsepBackend

__all__ = ["JsepBackend"]
