"""Which passes run, in which order, at which level."""

from __future__ import annotations

import enum

from py_ort.passes.constants import Constants
from py_ort.passes.dead_code import DeadCode
from py_ort.passes.folding import Folding
from py_ort.passes.identity import Identity
from py_ort.passes.pass_base import GraphPass


class Level(enum.IntEnum):
    """How far to optimise; numbers as onnxruntime's GraphOptimizationLevel."""

    DISABLED = 0
    BASIC = 1
    EXTENDED = 2
    LAYOUT = 3
    ALL = 99


REQUIRED: list[GraphPass] = [Constants()]
"""These run at every level, before the rewrite to the newest opset."""


def pipeline(level: Level) -> list[GraphPass]:
    """Return the passes that run after the rewrite to the newest opset, before layout and placement."""
    passes: list[GraphPass] = []
    if level >= Level.BASIC:
        passes += [Folding(), Identity(), DeadCode()]
    return passes
