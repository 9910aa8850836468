"""Rounding → MatMulNBits of bytes: the kernel that rounds writes bytes beside its floats, for all who multiply them.

Output 4 of a kernel with the feature "words", which ends in a FakeQuantize, is input 8 of those products: bytes less
128, four to a word; empty where the device multiplies no bytes. Input 9 is what they stand for: int32 [1, 4] of their
sum, which is not asked for, the byte of 0 and the bits of the scale. Without it each product makes bytes of its rows,
in a launch of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.placed.kernel_pass import KernelPass, Takes
from py_ort.compiler.passes.quantization import Rounding, rounding_by
from py_ort.ir.block_products import ZEROS, block_products
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import attribute, input_at
from py_ort.ir.operators import INTERNAL, op_types, roundings
from py_ort.ir.programs import parse_program
from py_ort.schema.dialect import (
    A_SCALE,
    A_ZERO,
    ELEMENTWISE_CHAIN,
    INTO,
    NBITS_STEPS,
    NBITS_WORDS,
    PROGRAM,
    REDUCTION,
    WORDS_OUTPUT,
    X_COLUMNS,
    Y_COLUMNS,
)

_OFFSET = 128
_IN_A_WORD = 4


class ByteWords(KernelPass):
    """Bytes from where numbers are rounded."""

    after = ("elementwise_chains", "transposed_operands", "columns")  # a chain of columns writes no bytes

    def __init__(self, provider_of: Callable[[ir.Node], str], takes: Takes) -> None:
        """`provider_of`: of a node; `takes`: whether the kernel of one, where it is placed, writes bytes, too."""
        super().__init__(takes)
        self._provider_of = provider_of

    def call(self, model: ir.Model) -> int:
        """Take each product of rows that are whole steps, and weights whose zero points are the middle."""
        return sum(self._join(product) for product in block_products(model) if A_SCALE in product.attributes)

    def _join(self, product: ir.Node) -> bool:
        scale, zero = (float(attribute(product, name)) for name in (A_SCALE, A_ZERO))
        if input_at(product, ZEROS) is not None or input_at(product, NBITS_WORDS) is not None:
            return False
        if any(int(attribute(product, name)) % _IN_A_WORD for name in ("K", "N")):
            return False
        host = _maker(product.inputs[0])
        if host is None or host.graph is not product.graph or host.outputs[0].dtype != ir.DataType.FLOAT:
            return False
        if self._provider_of(host) != self._provider_of(product) or not self._takes(host):
            return False
        found = _rounding(host)
        wanted = (roundings()[8], np.float32(scale), zero)
        if found is None or (found.op_type, np.float32(found.step), found.zero) != wanted:
            return False
        row = np.array([[0, zero - _OFFSET, 0, 0]], np.int32)
        row[0, 2] = np.float32(scale).view(np.int32)
        product.resize_inputs(NBITS_STEPS + 1)
        product.replace_input_with(NBITS_WORDS, _words(host))
        product.replace_input_with(NBITS_STEPS, Builder(product).constant(row))
        return True


def _maker(value: ir.Value | None) -> ir.Node | None:
    """Return the node that makes a value's numbers, whatever shape they have been given since."""
    node = None if value is None else value.producer()
    while node is not None and node.domain == "" and node.op_type in op_types("view"):
        value = node.inputs[0]
        node = None if value is None else value.producer()
    return node if node is not None and value is node.outputs[0] else None


def _rounding(host: ir.Node) -> Rounding | None:
    """How a kernel rounds at last, if it does."""
    if has_epilogue(host):
        return rounding_by(host)
    if (host.domain, host.op_type) != (INTERNAL, ELEMENTWISE_CHAIN):
        return None
    if {REDUCTION, "perm", X_COLUMNS, Y_COLUMNS, INTO} & set(host.attributes):
        return None
    last = parse_program(attribute(host, PROGRAM))[-1]
    return Rounding(last.op, *last.numbers[:2]) if last.op in roundings().values() else None


def _words(host: ir.Node) -> ir.Value:
    """The output with the bytes, which the host gets unless it has it."""
    if len(host.outputs) <= WORDS_OUTPUT:
        host.resize_outputs(WORDS_OUTPUT + 1)
        words = host.outputs[WORDS_OUTPUT]
        words.name, words.type = f"{host.outputs[0].name}_words", ir.TensorType(ir.DataType.UINT32)
        words.shape = ir.Shape([None])
    return host.outputs[WORDS_OUTPUT]
