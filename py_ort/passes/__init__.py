"""The optimisations: one file each, one list."""

from py_ort.passes.pass_base import Pass, PassReport, run_passes
from py_ort.passes.pipeline import Level, pipeline

__all__ = ["Level", "Pass", "PassReport", "pipeline", "run_passes"]
