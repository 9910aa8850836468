"""Models made for runtimes without 64-bit integers say int32 where ONNX has int64 only: shapes in, shapes out.

onnxruntime-web's first backend was such a runtime. We take these models, by a Cast at each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph
from py_ort.ir.builder import Builder
from py_ort.ir.graph import input_at, origins
from py_ort.ir.schemas import schema
from py_ort.ir.type_names import type_name

_INT32, _INT64 = "tensor(int32)", "tensor(int64)"


@lru_cache(1024)
def _int64_only(domain: str, op_type: str, version: int) -> tuple[int, ...]:
    found = schema(domain, op_type, version)
    return () if found is None else tuple(i for i, formal in enumerate(found.inputs) if set(formal.types) == {_INT64})


def widen_indices(node: ir.Node, version: int) -> None:
    """Cast the node's int32 inputs that must be int64."""
    for index in _int64_only(node.domain, node.op_type, version):
        value = input_at(node, index)
        if value is not None and value.dtype == ir.DataType.INT32:
            node.replace_input_with(index, Builder(node).op("Cast", value, to=int(ir.DataType.INT64)))


def settle_outputs(graph: ir.Graph, declared: Sequence[str]) -> None:
    """Compare the outputs' types with the declared ones; cast an int64 output that is declared int32.

    Args:
        graph: The model's graph, its types inferred.
        declared: ONNX's text for each output's type, "" where the model says nothing.

    Raises:
        InvalidGraph: A type is another.
    """
    for index, (value, wanted) in enumerate(zip(list(graph.outputs), declared, strict=True)):
        node, found = value.producer(), type_name(value.type)
        if node is None or not isinstance(value.type, ir.TensorType) or wanted in ("", found):
            continue
        if (found, wanted) != (_INT64, _INT32):
            raise InvalidGraph(
                f"output {value.name!r} is declared as {wanted}, and node {origins(node)[0]} ({node.op_type}) "
                f"makes it {found}",
                node=origins(node)[0],
                op_type=node.op_type,
                domain=node.domain,
            )
        narrow = Builder(node, after=True).op("Cast", value, to=int(ir.DataType.INT32))
        narrow.name, value.name = value.name, f"{value.name}__int64"
        graph.outputs[index] = narrow
