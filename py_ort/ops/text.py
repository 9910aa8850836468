"""Strings and tokens: always on the CPU."""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.graph import dims
from py_ort.ir.operators import MICROSOFT, Operator
from py_ort.ir.value_types import set_dims

_STRING = ("StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer")


def _infer_tokenizer(node: ir.Node) -> None:
    known, output = dims(node.inputs[0]), node.outputs[0]
    output.type = ir.TensorType(ir.DataType.STRING)
    if known is not None:
        set_dims(output, [*known, None])


def _infer_tokens(node: ir.Node) -> None:
    """All of the first input's type."""
    for output in node.outputs:
        output.type = node.inputs[0].type if node.inputs[0] is not None else None


def _infer_packed_tokens(node: ir.Node) -> None:
    """The same, but of segments, which are int32."""
    _infer_tokens(node)
    for output in node.outputs[2:3]:
        output.type = ir.TensorType(ir.DataType.INT32)


OPERATORS = [
    *(Operator(name) for name in _STRING),
    Operator("Tokenizer", domain=MICROSOFT, infer=_infer_tokenizer),
    Operator("MurmurHash3", domain=MICROSOFT),
    *(Operator(name, domain=MICROSOFT, infer=_infer_tokens) for name in ("BifurcationDetector", "NGramHashMapping")),
    Operator("VarlenNGramHashMapping", domain=MICROSOFT, infer=_infer_packed_tokens),
]
