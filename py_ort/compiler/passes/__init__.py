"""The optimizations, one file each, in folders by topic; `py_ort.compiler.stages` lists them in order.

`clean` says the same with fewer nodes, `norms` finds normalizations, `fuse` lets operators take their neighbors in,
`attention` is all that attention is made of, `placed` comes when it is known where nodes run.
"""

from py_ort.compiler.passes.pass_base import Pass, PassReport, run_passes

__all__ = ["Pass", "PassReport", "run_passes"]
