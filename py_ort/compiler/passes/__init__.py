"""The optimisations: one file each, in folders by what they are about; `pipeline` is the one list.

`clean` says the same with fewer nodes, `norms` finds normalisations, `fuse` lets operators take their neighbours in,
`attention` is all that attention is made of, `placed` comes when it is known where nodes run.
"""

from py_ort.compiler.passes.pass_base import Pass, PassReport, run_passes
from py_ort.compiler.passes.pipeline import Level, pipeline

__all__ = ["Level", "Pass", "PassReport", "pipeline", "run_passes"]
