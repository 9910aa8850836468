"""Operators of com.microsoft.nchwc, which native onnxruntime writes at its highest level: ONNX's, and plain weights.

There images lie as [N, C / block, spatial…, block], and weights likewise, where the block is as wide as the vectors of
the processor that wrote the model. Here they are images of C channels, those that fill up the last block included.
No attribute says the block: sizes do, or else it is that of this machine, as native onnxruntime itself assumes.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import all_graphs, attribute, set_attributes
from py_ort.ir.operators import MICROSOFT, NCHWC

_log = logging.getLogger("py_ort")
_SIZES = (8, 16)
#: Attributes of pools that ONNX's first opsets do not have; these pools differ from ONNX's only in layout.
_DEFAULTS = {"auto_pad": "NOTSET", "ceil_mode": 0, "storage_order": 0, "count_include_pad": 0}


def take_apart_blocks(model: ir.Model) -> None:
    """Replace these operators in place; where nothing tells the block they are left for the check, which refuses."""
    if NCHWC not in model.opset_imports:
        return
    nodes = [node for graph in all_graphs(model.graph) for node in graph if node.domain == NCHWC]
    if not nodes:
        return  # native writes the import into whatever it optimizes
    block = _block(nodes)
    if block is None or any(node.op_type == "Conv" and _weights(node) is None for node in nodes):
        return
    plain: set[ir.Value] = set()
    for node in nodes:
        if node.op_type == "Conv":
            _take_apart(node, block, plain)
        elif node.op_type == "ReorderInput":
            set_attributes(node, block=block)
        elif _is_pool(node):
            node.domain = ""
            for name, default in _DEFAULTS.items():
                if attribute(node, name) == default:
                    node.attributes.pop(name)
    model.opset_imports.setdefault(MICROSOFT, 1)


def _block(nodes: list[ir.Node]) -> int | None:
    possible = [size for size in _SIZES if all(_fits(node, size) for node in nodes)]
    if len(possible) == 1:
        return possible[0]
    here = _of_this_machine()
    if here not in possible:
        return None
    _log.warning(
        "native onnxruntime wrote the model for one processor, with channels in blocks; nothing in it says of how "
        "many: taken are %d, as on this machine's processor",
        here,
    )
    return here


def _fits(node: ir.Node, block: int) -> bool:
    """Return True if a node's sizes fit blocks of this size: channels are padded to the next multiple, not further."""
    if node.op_type == "Conv":
        sizes = _sizes(node)
        if sizes is None:
            return True
        out, each = sizes[:2]
        return out % block == 0 and (each < block or each % block == 0)
    if node.op_type == "ReorderOutput":
        there = _channels(node.inputs[0])
        return there is None or there == -(-int(attribute(node, "channels")) // block) * block
    return True


def _is_pool(node: ir.Node) -> bool:
    return node.op_type.endswith("Pool")


def _channels(value: ir.Value | None) -> int | None:
    """How many channels a convolution before it made."""
    node = None if value is None else value.producer()
    while node is not None and (_is_pool(node) or node.op_type == "Upsample"):
        node = None if node.inputs[0] is None else node.inputs[0].producer()
    sizes = _sizes(node) if node is not None and node.op_type == "Conv" else None
    return sizes[0] if sizes else None


def _sizes(conv: ir.Node) -> tuple[int, ...] | None:
    weights = _weights(conv)
    return None if weights is None else weights.shape


def _of_this_machine() -> int | None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return 16 if platform.machine().lower() in ("aarch64", "arm64") else None
    return next((16 if "avx512f" in line.split() else 8 for line in _processor() if line.startswith("flags")), None)


def _processor() -> Iterator[str]:
    path = Path("/proc/cpuinfo")
    yield from path.read_text().splitlines() if path.exists() else ()


def _weights(node: ir.Node) -> np.ndarray | None:
    value = node.inputs[1]
    return None if value is None or value.const_value is None else value.const_value.numpy()


def _take_apart(node: ir.Node, block: int, plain: set[ir.Value]) -> None:
    node.domain, node.op_type = MICROSOFT, "FusedConv"
    value, weights = node.inputs[1], _weights(node)
    assert value is not None and weights is not None
    if value in plain:
        return
    plain.add(value)
    out, each, *window = weights.shape
    if each < block:  # images as ONNX has them, or a channel for itself: [out / block, each, window…, block]
        parts = weights.reshape(out // block, each, *window, block)
        found = np.moveaxis(parts, -1, 1)
    else:  # [out / block, in / block, window…, in's block, out's block]
        parts = weights.reshape(out // block, each // block, *window, block, block)
        found = np.moveaxis(parts, (-1, -2), (1, 3))
    contents = np.ascontiguousarray(found).reshape(weights.shape)
    value.const_value = ir.tensor(contents, name=value.name)
