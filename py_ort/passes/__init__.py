"""The optimisations: one file each, one list."""

from py_ort.passes.pass_base import GraphPass, PassReport, run_passes
from py_ort.passes.pipeline import Level, pipeline

__all__ = ["GraphPass", "Level", "PassReport", "pipeline", "run_passes"]
