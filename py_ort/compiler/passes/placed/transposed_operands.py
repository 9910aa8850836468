"""Transpose → MatMul, and MatMul → Transpose: a kernel that steps from row to row by strides needs neither.

With `a_perm`, `b_perm` or `y_perm` a MatMul or FusedMatMul transposes its operands before all else, or its result at
last, as Transpose would; only kernels with the feature "perm" know these. Rows of k, and those of the result, stay what
they are. Runs after placement: between an operand and its Transpose there may be a launch of another provider.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.compiler.passes.match import made_by, only_for, only_user
from py_ort.compiler.passes.placed.kernel_pass import KernelPass, Takes
from py_ort.ir.graph import (
    all_nodes,
    attribute,
    input_at,
    origins,
    permutation,
    remove,
    replace_value,
    set_attributes,
    set_origins,
)
from py_ort.ir.operators import INTERNAL
from py_ort.schema.dialect import A_PERM, B_PERM, PRODUCT_RESIDUAL, Y_PARTS, Y_PERM

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)


class TransposedOperands(KernelPass):
    """Heads of attention where they are."""

    after = ("quantized_ends", "product_parts")
    before = ("elementwise_chains",)  # which take transposes, too

    def __init__(self, provider_of: Callable[[ir.Node], str], takes: Takes) -> None:
        """`provider_of`: of a node; `takes`: whether the kernel of one, where it is placed, reads by strides."""
        super().__init__(takes)
        self._provider_of = provider_of

    def call(self, model: ir.Model) -> int:
        """Fuse the transposes around each product."""
        products = [node for node in all_nodes(model.graph) if node.domain != INTERNAL and self._may(node)]
        return sum(self._operand(node, at) for node in products for at in (0, 1)) + sum(map(self._result, products))

    def _may(self, node: ir.Node) -> bool:
        return node.outputs[0].dtype in _FLOATS and Y_PARTS not in node.attributes and self._takes(node)

    def _operand(self, node: ir.Node, at: int) -> bool:
        value, name = node.inputs[at], (A_PERM, B_PERM)[at]
        transpose = made_by(value, "Transpose")
        if transpose is None or value is None or not only_for(value, node) or node.inputs.count(value) > 1:
            return False
        perm = permutation(transpose)
        if perm is None or len(perm) < 2 or name in node.attributes or not self._is_beside(transpose, node):
            return False
        # The axes of k, and of the matrix's other one.
        depth, other = (-1, -2) if at == 0 else (-2, -1)
        if attribute(node, ("transA", "transB")[at], 0):
            depth, other = other, depth
        last = len(perm) - 1
        if perm[depth] != last and not (at == 1 and perm[other] == last):
            return False
        node.replace_input_with(at, transpose.inputs[0])
        self._put(node, transpose, name, perm)
        return True

    def _result(self, node: ir.Node) -> bool:
        value = node.outputs[0]
        transpose = only_user(value)
        if transpose is None or (transpose.domain, transpose.op_type) != ("", "Transpose"):
            return False
        perm = permutation(transpose)
        if perm is None or perm[-1:] != [len(perm) - 1] or input_at(node, PRODUCT_RESIDUAL) is not None:
            return False
        if Y_PERM in node.attributes or not self._is_beside(transpose, node):
            return False
        value.shape = transpose.outputs[0].shape
        replace_value(transpose.outputs[0], value)
        self._put(node, transpose, Y_PERM, perm)
        return True

    def _is_beside(self, transpose: ir.Node, node: ir.Node) -> bool:
        return self._provider_of(transpose) == self._provider_of(node)

    def _put(self, node: ir.Node, transpose: ir.Node, name: str, perm: list[int]) -> None:
        set_attributes(node, **{name: perm})
        set_origins(node, (*origins(transpose), *origins(node)))
        remove(transpose)
