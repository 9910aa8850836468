"""Operators whose result's shape depends on data. On a GPU each is two nodes (`compiler/passes/placed/counts.py`).

The first, in our own domain, finds what there is, and how much; the operator itself gets its results behind its own
inputs, and the count, the last of them, as a host input: the core downloads 4 bytes and goes on. They run on the CPU
where that has their inputs already or is as quick (`Counted.serial`), unless fallback is forbidden; there they are one
node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from py_ort.ir.operators import INTERNAL, Operator
from py_ort.schema.dialect import COMPRESS_COUNT, NON_MAX_SUPPRESSION_COUNT, NON_ZERO_COUNT, UNIQUE_COUNT


@dataclass(frozen=True)
class Counted:
    """How an operator is counted.

    Attributes:
        counting: The operator of the counting node.
        inputs: How many it has, those that may be left out included.
        results: How many tensors the counting node finds, besides the count. All are int32.
        host: Its host inputs; the count comes to them.
        shape_only: Inputs of which the counting node reads the shape only.
        moves: It gives elements of input 0, as `Operator.moves` says.
        serial: A CPU is as quick: it runs there when it may.
    """

    counting: str
    inputs: int
    results: int
    host: Sequence[int] = ()
    shape_only: Sequence[int] = ()
    moves: bool = False
    serial: bool = False


COUNTED = {
    "NonZero": Counted(NON_ZERO_COUNT, 1, 1),
    "Compress": Counted(COMPRESS_COUNT, 2, 1, shape_only=(0,), moves=True),
    "Unique": Counted(UNIQUE_COUNT, 1, 3, serial=True),
    "NonMaxSuppression": Counted(NON_MAX_SUPPRESSION_COUNT, 5, 2, host=(2, 3, 4), serial=True),
}


def _infer_count(node: ir.Node) -> None:
    for output in node.outputs:
        output.type = ir.TensorType(ir.DataType.INT32)
    node.outputs[-1].shape = ir.Shape([1])


OPERATORS = [
    *(
        Operator(
            name,
            host=(*known.host, known.inputs + known.results),
            moves=known.moves,
            optional_outputs=name == "Unique",
        )
        for name, known in COUNTED.items()
    ),
    *(
        Operator(
            known.counting,
            INTERNAL,
            host=known.host,
            shape_only=known.shape_only,
            infer=_infer_count,
        )
        for known in COUNTED.values()
    ),
]
