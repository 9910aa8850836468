"""ElementwiseChain: several elementwise operators as one node; `passes/placed/elementwise_chains.py` makes it.

Attribute `program` (`py_ort/ir/programs.py`) is given the inputs, broadcast. Names are ONNX's; attributes, and constant
inputs of Clip and Pow, are the numbers; Max and Min have two registers, Mod is C's fmod.

With `reduction` (a Reduce operator), `axes` (from 0) and `keepdims`, the last register is reduced at once, and never
written as a tensor; what the reduction gives goes through the program `finish`, if there is one (register 0: the
reduced value). With `perm` it is transposed, as by Transpose. `x_columns` has two numbers for each input, which must be
tensors of one shape.

All floats of a node are of one type, which is the result's; the result of integers and truths alone is float32.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ir.operators import INTERNAL, Operator
from py_ort.schema.dialect import ELEMENTWISE_CHAIN


def _infer(node: ir.Node) -> None:
    """The pass that makes the node sets the type of its output."""


OPERATORS = [Operator(ELEMENTWISE_CHAIN, domain=INTERNAL, infer=_infer)]
