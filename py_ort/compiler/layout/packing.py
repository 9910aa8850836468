"""Constant weights in the order in which the kernels of each provider read them (docs/internals.md, section 3)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.content_keys import derive
from py_ort.ir.graph import all_nodes, attribute, dims, required, set_attributes, static_sizes, tensor_of
from py_ort.ir.operators import NHWC, operator
from py_ort.providers import PROVIDERS, PlacedNode
from py_ort.providers.packing import Packed, Packing
from py_ort.providers.wasm.packing import signed
from py_ort.schema.dialect import PACKED_N, WEIGHT_LAYOUT


def pack_weights(model: ir.Model, placed: Mapping[ir.Node, PlacedNode]) -> int:
    """Pack the weights of every convolution and matrix product; evaluated when the plan's weights are written.

    Returns:
        How many nodes got packed weights.
    """
    packer = _Packer()
    orders = {name: provider.packing() for name, provider in PROVIDERS.items()}
    return sum(packer.pack(node, orders[placed[node].provider]) for node in list(all_nodes(model.graph)))


_INT8 = ir.DataType.INT8
_BYTES = (_INT8, ir.DataType.UINT8)


def integer_weights(node: ir.Node) -> tuple[int, int] | None:
    """Return the indices of the inputs with packable 8-bit weights and their zero points; or None."""
    return operator("" if node.domain == NHWC else node.domain, node.op_type).integer_weights


class _Packer:
    """Packs weights; packs a tensor once if several nodes read it in the same order."""

    def __init__(self) -> None:
        self._done: dict[Any, ir.Value] = {}

    def pack(self, node: ir.Node, packing: Packing) -> bool:
        if node.domain == NHWC and node.op_type in ("Conv", "ConvTranspose"):
            return self._convolution(node, packing)
        if node.domain == "" and node.op_type in ("MatMul", "Gemm"):
            return self._product(node, packing)
        weights = integer_weights(node)
        return weights is not None and self._integers(node, packing, *weights)

    def _convolution(self, node: ir.Node, packing: Packing) -> bool:
        shape = _constant_shape(node.inputs[1], 4)
        if shape is None or attribute(node, WEIGHT_LAYOUT):
            return False
        return self._take(node, packing.convolution(node, shape))

    def _product(self, node: ir.Node, packing: Packing) -> bool:
        right = node.inputs[1]
        shape = _constant_shape(right, 2)
        if right is None or shape is None or attribute(node, PACKED_N):
            return False
        taken = self._take(node, packing.product(node, right, shape))
        if taken and node.op_type == "Gemm":
            set_attributes(node, transB=0, alpha=1.0)
        return taken

    def _integers(self, node: ir.Node, packing: Packing, index: int, zero_index: int) -> bool:
        """The zero points of uint8 are made less as the weights are."""
        weights, zeros = node.inputs[index], (*node.inputs, *(None,) * zero_index)[zero_index]
        shape = _constant_shape(weights, None, _BYTES)
        if weights is None or shape is None or attribute(node, PACKED_N) or attribute(node, WEIGHT_LAYOUT):
            return False
        moved = weights.dtype == ir.DataType.UINT8
        if moved and zeros is not None and zeros.const_value is None:
            return False
        if not self._take(node, packing.integers(node, shape), index):
            return False
        if moved and zeros is not None and zeros.const_value is not None:
            self._replace(node, Packed("signed", signed, tuple(zeros.const_value.shape.numpy()), {}, _INT8), zero_index)
        elif moved:
            node.resize_inputs(max(len(node.inputs), zero_index + 1))
            node.replace_input_with(zero_index, self._moved_zero(node.inputs[index]))
        return True

    def _take(self, node: ir.Node, packed: Packed | None, index: int = 1) -> bool:
        if packed is None:
            return False
        self._replace(node, packed, index)
        set_attributes(node, **packed.attributes)
        return True

    def _moved_zero(self, weights: ir.Value | None) -> ir.Value:
        """The zero point, 128 less, of weights that had none."""
        assert weights is not None and weights.graph is not None
        zero = self._done.get((id(weights.const_value), "zero"))
        if zero is None:
            tensor = tensor_of(np.array(-128, np.int8))
            zero = ir.Value(
                name=f"{weights.name}__zero", type=ir.TensorType(_INT8), shape=ir.Shape(()), const_value=tensor
            )
            weights.graph.initializers[required(zero.name)] = zero
            self._done[id(weights.const_value), "zero"] = zero
        return zero

    def _replace(self, node: ir.Node, order: Packed, index: int) -> None:
        old = node.inputs[index]
        assert old is not None and old.const_value is not None and node.graph is not None
        key = (id(old.const_value), order.kind)
        packed = self._done.get(key)
        if packed is None:
            tensor = old.const_value

            def evaluate() -> ir.TensorProtocol:
                return tensor_of(np.ascontiguousarray(order.convert(tensor.numpy())))

            made, name = order.dtype or tensor.dtype, f"{old.name}__{order.kind}"
            lazy = ir.LazyTensor(evaluate, dtype=made, shape=ir.Shape(order.shape), name=name)
            derive(lazy, tensor, order.kind)
            packed = ir.Value(name=name, type=ir.TensorType(made), shape=ir.Shape(order.shape), const_value=lazy)
            graph = _owner(old, node)
            graph.initializers[required(packed.name)] = packed
            self._done[key] = packed
        node.replace_input_with(index, packed)
        if not old.uses() and not old.is_graph_output() and old.graph is not None:
            old.graph.initializers.pop(old.name or "", None)


def _owner(value: ir.Value, node: ir.Node) -> ir.Graph:
    found = value.graph if value.graph is not None else node.graph
    assert isinstance(found, ir.Graph)
    return found


def _constant_shape(
    value: ir.Value | None,
    rank: int | None,
    dtypes: Container[ir.DataType | None] = (ir.DataType.FLOAT, ir.DataType.FLOAT16),
) -> tuple[int, ...] | None:
    if value is None or value.const_value is None or value.dtype not in dtypes:
        return None
    found = static_sizes(dims(value))
    if found is None or (rank is not None and len(found) != rank) or 0 in found:
        return None
    return tuple(found)
