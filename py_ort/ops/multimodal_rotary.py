"""com.microsoft's MRotaryEmbedding: each pair is rotated by one of three positions, of time, height or width."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, rank
from py_ort.ir.operators import MICROSOFT, Operator, lowering

OPERATORS = [Operator("MRotaryEmbedding", domain=MICROSOFT)]


@lowering("MRotaryEmbedding", domain=MICROSOFT)
def multimodal_rotary(node: ir.Node, build: Builder) -> Any:
    """Make a RotaryEmbedding, with caches combined from those of three positions."""
    x, positions, *caches = node.inputs[:4]
    streams = _streams(node)
    columns = [np.flatnonzero(streams == k) for k in range(3)]
    back = np.argsort(np.concatenate(columns), kind="stable")
    ids = [build.op("Gather", positions, np.array(k), axis=0) for k in range(3)]
    tables = [_table(build, cache, ids, columns, back) for cache in caches]
    scale = attribute(node, "scale", 1.0)
    if scale != 1:
        tables = [build.op("Mul", table, np.array(scale, table.dtype.numpy())) for table in tables]
    heads = attribute(node, "num_heads", 0)
    if rank(x) == 3 and heads < 1:
        raise inconsistent(node, f"num_heads is {heads}: an input of three axes does not say how many heads it has")
    given = {name: attribute(node, name) for name in ("interleaved", "rotary_embedding_dim")}
    return build.op("RotaryEmbedding", x, *tables, **given, num_heads=heads or None)


def _streams(node: ir.Node) -> np.ndarray:
    """Return for each pair which position rotates it: 0, 1 or 2."""
    sections = list(attribute(node, "mrope_section") or [])
    if len(sections) != 3 or min(sections) < 0:
        raise inconsistent(node, f"mrope_section is {sections}, not three numbers")
    if attribute(node, "is_packed_batching", 0):
        raise NotImplemented(
            "MRotaryEmbedding with is_packed_batching is not supported",
            node=node.name or "", op_type=node.op_type, domain=node.domain,
        )  # fmt: skip
    if not attribute(node, "mrope_layout", 0):
        return np.repeat(np.arange(3), sections)
    streams = np.zeros(sum(sections), int)
    for k in (1, 2):
        streams[k : 3 * sections[k] : 3] = k
    return streams


def _table(build: Builder, cache: Any, ids: list[Any], columns: list[np.ndarray], back: np.ndarray) -> Any:
    """The cache's rows [batch, positions, pairs], each column from the row of its own position."""
    parts = [
        build.op("Gather", build.op("Gather", cache, mine, axis=1), rows, axis=0)
        for mine, rows in zip(columns, ids, strict=True)
        if mine.size
    ]
    table = build.op("Concat", *parts, axis=2) if len(parts) > 1 else parts[0]
    return table if np.array_equal(back, np.arange(back.size)) else build.op("Gather", table, back, axis=2)
