"""Execution providers: their names, what they can run, and which node goes to which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.compiler.placement.manifest import Manifest as Manifest
    from py_ort.compiler.placement.manifest import load_manifests as load_manifests
    from py_ort.compiler.placement.names import ALIASES as ALIASES
    from py_ort.compiler.placement.names import canonical_provider as canonical_provider
    from py_ort.compiler.placement.names import onnxruntime_name as onnxruntime_name
    from py_ort.compiler.placement.placement import place as place
    from py_ort.compiler.placement.report import PlacedNode as PlacedNode
    from py_ort.compiler.placement.report import Placement as Placement

_WHERE = {
    "ALIASES": "names",
    "Manifest": "manifest",
    "PlacedNode": "report",
    "Placement": "report",
    "canonical_provider": "names",
    "load_manifests": "manifest",
    "onnxruntime_name": "names",
    "place": "placement",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
