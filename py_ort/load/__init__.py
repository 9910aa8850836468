"""Model files: read, checked, made into the compiler's IR (onnx-ir)."""

from py_ort.load.check import check_model
from py_ort.load.metadata import ModelMetadata
from py_ort.load.source import LoadedModel, load_model
from py_ort.load.types import check_types

__all__ = ["LoadedModel", "ModelMetadata", "check_model", "check_types", "load_model"]
