"""Sequences, optionals and strings: always on the CPU."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import dims
from py_ort.ir.operators import MICROSOFT, Operator
from py_ort.ir.value_types import set_dims

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


def _infer_tokenizer(node: ir.Node) -> None:
    known, output = dims(node.inputs[0]), node.outputs[0]
    output.type = ir.TensorType(ir.DataType.STRING)
    if known is not None:
        set_dims(output, [*known, None])


OPERATORS = [
    *(Operator(name) for name in (*_SEQUENCE, *_OPTIONAL, *_STRING)),
    Operator("ConcatFromSequence"),
    Operator("Tokenizer", domain=MICROSOFT, infer=_infer_tokenizer),
]
