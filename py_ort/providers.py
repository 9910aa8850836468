"""Execution providers' names and what placement decided: what `InferenceSession.placement` gives."""

from py_ort.compiler.placement import ALIASES, PlacedNode, Placement, canonical_provider, onnxruntime_name

__all__ = ["ALIASES", "PlacedNode", "Placement", "canonical_provider", "onnxruntime_name"]
