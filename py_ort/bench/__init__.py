"""The benchmark: models on py_ort and on onnxruntime-web, in turn, in one page."""

from py_ort.bench.measure import Row, failed, measure

__all__ = ["Row", "failed", "measure"]
