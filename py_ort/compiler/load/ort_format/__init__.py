"""Models in onnxruntime's own format (.ort, FlatBuffers): read, and made the ONNX model that they were."""

from py_ort.compiler.load.ort_format.read import is_ort_format, read_ort_format

__all__ = ["is_ort_format", "read_ort_format"]
