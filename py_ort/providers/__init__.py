"""Execution providers: their names, what they can run, and which node goes to which."""

from py_ort.providers.manifest import Manifest, load_manifests
from py_ort.providers.names import ALIASES, canonical_provider, onnxruntime_name
from py_ort.providers.placement import PlacedNode, Placement, place

__all__ = [
    "ALIASES",
    "Manifest",
    "PlacedNode",
    "Placement",
    "canonical_provider",
    "load_manifests",
    "onnxruntime_name",
    "place",
]
