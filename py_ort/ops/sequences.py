"""Sequences, optionals and strings: always on the CPU."""

from __future__ import annotations

from py_ort.ops.declaration import Operator

_SEQUENCE = (
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SplitToSequence",
)
_OPTIONAL = ("Optional", "OptionalGetElement", "OptionalHasElement")
_STRING = ("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer")

OPERATORS = [
    *(Operator(name, tolerance="exact") for name in (*_SEQUENCE, *_OPTIONAL, *_STRING)),
    Operator("ConcatFromSequence", tolerance="exact"),
]
