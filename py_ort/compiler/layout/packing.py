"""Constant weights in the order in which the kernels of each provider read them (docs/internals.md, section 3).

8-bit weights become int8: uint8 by 128 less, its zero point, too. The wasm kernels read them where they were loaded,
but for machines that add products of bytes in 16 bits: there they take a copy with smaller weights (integer_excess.cc).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.placement.report import PlacedNode
from py_ort.ir.content_keys import derive
from py_ort.ir.graph import all_nodes, attribute, dims, set_attributes, tensor_of
from py_ort.ir.operators import NHWC, operator

PANEL = 8
#: Rows of 8-bit panels that lie next to each other.
FOUR = 4


def hwio(w: np.ndarray) -> np.ndarray:
    """[M, C / group, kh, kw] → [kh, kw, C / group, M]."""
    return w.transpose(2, 3, 1, 0)


def transposed_hwio(w: np.ndarray) -> np.ndarray:
    """ConvTranspose: [C, M / group, kh, kw] → [kh, kw, C, M / group]."""
    return w.transpose(2, 3, 0, 1)


def panels(matrix: np.ndarray) -> np.ndarray:
    """[…, K, N] → […, ceil(N / 8), K, 8], zero-filled."""
    *lead, rows, columns = matrix.shape
    count = -(-columns // PANEL)
    padded = matrix
    if columns % PANEL:
        padded = np.zeros((*lead, rows, count * PANEL), matrix.dtype)
        padded[..., :columns] = matrix
    return np.moveaxis(padded.reshape(*lead, rows, count, PANEL), -2, -3)


def conv_panels(w: np.ndarray, group: int) -> np.ndarray:
    """Conv: [M, C / group, kh, kw] → [group, ceil(M / group / 8), kh·kw·C / group, 8]."""
    out, inner, kh, kw = w.shape
    split = w.reshape(group, out // group, inner, kh, kw)
    return panels(split.transpose(0, 3, 4, 2, 1).reshape(group, kh * kw * inner, out // group))


def transposed_panels(w: np.ndarray, group: int) -> np.ndarray:
    """ConvTranspose: [C, M / group, kh, kw] → [group, ceil(kh·kw·M / group / 8), C / group, 8]."""
    inputs, each, kh, kw = w.shape
    split = w.reshape(group, inputs // group, each, kh, kw)
    return panels(split.transpose(0, 1, 3, 4, 2).reshape(group, inputs // group, kh * kw * each))


def integer_panels(matrix: np.ndarray) -> np.ndarray:
    """[…, K, N] of 8-bit integers → […, ceil(N / 8), ceil(K / 4), 8, 4] of int8, zero-filled; uint8 is less 128."""
    *lead, rows, columns = matrix.shape
    fours, count = -(-rows // FOUR), -(-columns // PANEL)
    padded = np.zeros((*lead, fours * FOUR, count * PANEL), np.int8)
    padded[..., :rows, :columns] = signed(matrix)
    axes = (*range(len(lead)), *(len(lead) + axis for axis in (2, 0, 3, 1)))
    return padded.reshape(*lead, fours, FOUR, count, PANEL).transpose(axes)


def signed(values: np.ndarray) -> np.ndarray:
    """Bytes as int8: uint8 less 128."""
    return values if values.dtype == np.int8 else (values ^ 0x80).view(np.int8)


def integer_conv_panels(w: np.ndarray, group: int) -> np.ndarray:
    """[M, C / group, k…] of 8-bit integers → [group, ceil(M / group / 8), ceil(taps·C / group / 4), 8, 4] of int8."""
    out, inner = w.shape[:2]
    split = w.reshape(group, out // group, inner, -1)
    return integer_panels(split.transpose(0, 3, 2, 1).reshape(group, -1, out // group))


def pack_weights(model: ir.Model, placed: Mapping[ir.Node, PlacedNode]) -> int:
    """Pack the weights of every convolution and matrix product; evaluated when the plan's weights are written.

    Returns:
        How many nodes got packed weights.
    """
    packer = _Packer()
    return sum(packer.pack(node, placed[node].provider) for node in list(all_nodes(model.graph)))


_INT8 = ir.DataType.INT8
_BYTES = (_INT8, ir.DataType.UINT8)


def integer_weights(node: ir.Node) -> tuple[int, int] | None:
    """Where 8-bit weights that are packed for the CPU are, and their zero points."""
    return operator("" if node.domain == NHWC else node.domain, node.op_type).integer_weights


class _Packer:
    """Remembers what was packed: a tensor that several nodes read in one order is packed once."""

    def __init__(self) -> None:
        self._done: dict[Any, ir.Value] = {}

    def pack(self, node: ir.Node, provider: str) -> bool:
        if node.domain == NHWC and node.op_type in ("Conv", "ConvTranspose"):
            return self._convolution(node, provider)
        if node.domain == "" and node.op_type in ("MatMul", "Gemm"):
            return self._product(node, provider)
        weights = integer_weights(node)
        return provider == "wasm" and weights is not None and self._integers(node, *weights)

    def _convolution(self, node: ir.Node, provider: str) -> bool:
        weights = node.inputs[1]
        shape = _constant_shape(weights, 4)
        if shape is None or attribute(node, "weight_layout"):
            return False
        group = attribute(node, "group", 1)
        if node.op_type == "ConvTranspose":
            inputs, each, kh, kw = shape
            if provider == "webgpu":
                return self._set(node, "transposed_hwio", "HWIO", transposed_hwio, (kh, kw, inputs, each))
            packed = (group, -(-kh * kw * each // PANEL), inputs // group, PANEL)
            return self._set(
                node,
                f"transposed_panel8/{group}",
                "panel8",
                lambda w: transposed_panels(w, group),
                packed,
                each * group,
            )
        out, inner, kh, kw = shape
        if provider == "webgpu" or (inner == 1 and out == group):
            return self._set(node, "hwio", "HWIO", hwio, (kh, kw, inner, out))
        packed = (group, -(-(out // group) // PANEL), kh * kw * inner, PANEL)
        return self._set(node, f"panel8/{group}", "panel8", lambda w: conv_panels(w, group), packed, out)

    def _set(
        self,
        node: ir.Node,
        kind: str,
        layout: str,
        convert: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, ...],
        channels: int | None = None,
    ) -> bool:
        self._replace(node, kind, convert, shape)
        set_attributes(node, weight_layout=layout, out_channels=channels)
        return True

    def _product(self, node: ir.Node, provider: str) -> bool:
        right = node.inputs[1]
        shape = _constant_shape(right, 2)
        alpha = float(attribute(node, "alpha", 1.0)) if node.op_type == "Gemm" else 1.0
        if right is None or shape is None or attribute(node, "packed_n"):
            return False
        if right.dtype != ir.DataType.FLOAT and (provider != "wasm" or alpha != 1.0 or not _is_wide(node)):
            return False
        transposed = bool(attribute(node, "transB", 0))
        rows, columns = (shape[1], shape[0]) if transposed else shape

        def matrix(w: np.ndarray) -> np.ndarray:
            plain = w.T if transposed else w
            return plain if alpha == 1.0 else (plain * np.float32(alpha)).astype(w.dtype)

        if provider == "webgpu":
            if not transposed and alpha == 1.0:
                return False
            self._replace(node, f"matrix/{transposed}/{alpha}", matrix, (rows, columns))
        else:
            packed = (-(-columns // PANEL), rows, PANEL)
            self._replace(node, f"panel8/{transposed}/{alpha}", lambda w: panels(matrix(w)), packed)
            set_attributes(node, packed_n=columns)
        if node.op_type == "Gemm":
            set_attributes(node, transB=0, alpha=1.0)
        return True

    def _integers(self, node: ir.Node, index: int, zero_index: int) -> bool:
        """Panels are of int8: the zero points of uint8 are made less as the weights are."""
        weights, zeros = node.inputs[index], (*node.inputs, *(None,) * zero_index)[zero_index]
        shape = _constant_shape(weights, None, _BYTES)
        if weights is None or shape is None or attribute(node, "packed_n") or attribute(node, "weight_layout"):
            return False
        moved = weights.dtype == ir.DataType.UINT8
        if moved and zeros is not None and zeros.const_value is None:
            return False
        if len(shape) > 2 and attribute(node, "kernel_shape"):
            group, (out, inner, *kernel) = attribute(node, "group", 1), shape
            depthwise = inner == 1 and out == group
            if out % group or depthwise or list(attribute(node, "kernel_shape")) != kernel:
                return False
            packed = (group, -(-(out // group) // PANEL), -(-math.prod(kernel) * inner // FOUR), PANEL, FOUR)
            self._replace(node, f"panel8x4/{group}", lambda w: integer_conv_panels(w, group), packed, index, _INT8)
            set_attributes(node, weight_layout="panel8x4", out_channels=out, packed_k=inner)
        elif len(shape) == 2:
            matrix = (-(-shape[1] // PANEL), -(-shape[0] // FOUR), PANEL, FOUR)
            self._replace(node, "panel8x4", integer_panels, matrix, index, _INT8)
            set_attributes(node, packed_n=shape[1], packed_k=shape[0])
        else:
            return False
        if moved and zeros is not None and zeros.const_value is not None:
            self._replace(node, "signed", signed, tuple(zeros.const_value.shape.numpy()), zero_index, _INT8)
        elif moved:
            node.resize_inputs(max(len(node.inputs), zero_index + 1))
            node.replace_input_with(zero_index, self._moved_zero(node.inputs[index]))
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
            weights.graph.initializers[zero.name] = zero  # type: ignore[index]
            self._done[id(weights.const_value), "zero"] = zero
        return zero

    def _replace(
        self,
        node: ir.Node,
        kind: str,
        convert: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, ...],
        index: int = 1,
        dtype: ir.DataType | None = None,
    ) -> None:
        old = node.inputs[index]
        assert old is not None and old.const_value is not None and node.graph is not None
        key = (id(old.const_value), kind)
        packed = self._done.get(key)
        if packed is None:
            tensor = old.const_value

            def evaluate() -> ir.TensorProtocol:
                return tensor_of(np.ascontiguousarray(convert(tensor.numpy())))

            made = dtype or tensor.dtype
            lazy = ir.LazyTensor(evaluate, dtype=made, shape=ir.Shape(shape), name=f"{old.name}__{kind}")
            derive(lazy, tensor, kind)
            packed = ir.Value(
                name=f"{old.name}__{kind}", type=ir.TensorType(made), shape=ir.Shape(shape), const_value=lazy
            )
            graph = _owner(old, node)
            graph.initializers[packed.name] = packed  # type: ignore[index]
            self._done[key] = packed
        node.replace_input_with(index, packed)
        if not old.uses() and not old.is_graph_output() and old.graph is not None:
            old.graph.initializers.pop(old.name or "", None)


def _is_wide(product: ir.Node) -> bool:
    """Return True if a product of the CPU computes in float32; a session widens its weights when it is made."""
    return product.inputs[0] is not None and product.inputs[0].dtype == ir.DataType.FLOAT


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
    found = dims(value)
    if found is None or (rank is not None and len(found) != rank) or any(d == 0 for d in found):
        return None
    return tuple(int(d) for d in found)  # type: ignore[arg-type]
