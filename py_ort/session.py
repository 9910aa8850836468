"""`InferenceSession`, where it has always been to import from."""

from py_ort.runtime.inference_session import InferenceSession

__all__ = ["InferenceSession"]
