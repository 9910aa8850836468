"""Model files: read, checked, made into the compiler's IR (onnx-ir)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py_ort.lazy_imports import lazily

if TYPE_CHECKING:
    from py_ort.compiler.load.check import check_model as check_model
    from py_ort.compiler.load.metadata import ModelMetadata as ModelMetadata
    from py_ort.compiler.load.source import LoadedModel as LoadedModel
    from py_ort.compiler.load.source import load_model as load_model
    from py_ort.compiler.load.source import read_proto as read_proto
    from py_ort.compiler.load.source import read_whole as read_whole
    from py_ort.compiler.load.types import check_types as check_types

_WHERE = {
    "LoadedModel": "source",
    "ModelMetadata": "metadata",
    "check_model": "check",
    "check_types": "types",
    "load_model": "source",
    "read_proto": "source",
    "read_whole": "source",
}
__all__ = list(_WHERE)
__getattr__ = lazily(__name__, _WHERE)
