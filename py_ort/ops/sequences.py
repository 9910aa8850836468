"""Sequences and optionals: always on the CPU."""

from __future__ import annotations

from py_ort.ir.operators import Operator

_SEQUENCE = (
    "ConcatFromSequence",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
)
_OPTIONAL = ("Optional", "OptionalGetElement", "OptionalHasElement")

OPERATORS = [Operator(name) for name in (*_SEQUENCE, *_OPTIONAL)]
