"""FakeQuantize → MatMulNBits with weights of 8 bits: the product is told in which steps its rows are.

DynamicFakeQuantize becomes a part of it. Its kernel may then multiply the integers themselves, where the device does.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.fuse.dynamic_products import is_rounding
from py_ort.compiler.passes.match import only_user
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, SCALES, ZEROS, block_products, given
from py_ort.ir.graph import array, attribute, origins, remove, set_attributes, set_origins
from py_ort.ir.operators import INTERNAL, MICROSOFT

_BITS = 8


class ByteRows(Pass):
    """Products that may be of integers."""

    after = ("block_ends", "packed_projections", "round_trips")

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider's kernel of these products can do besides."""
        self._takes = target.offers("bytes", OP_TYPE, MICROSOFT)

    def call(self, model: ir.Model) -> int:
        """Take each product of rounded rows."""
        return sum(_fuse(node) for node in block_products(model)) if self._takes else 0


def _fuse(product: ir.Node) -> bool:
    if (
        attribute(product, "bits", 4) != _BITS
        or "norm_epsilon" in product.attributes
        or "a_scale" in product.attributes
    ):
        return False
    columns = int(attribute(product, "N"))
    rows = product.inputs[0]
    rounding = None if rows is None else rows.producer()
    if rounding is None or not all(_alike(given(product, index), columns) for index in (SCALES, ZEROS)):
        return False
    if (rounding.domain, rounding.op_type) == (INTERNAL, "FakeQuantize"):
        set_attributes(product, a_scale=attribute(rounding, "scale", 1.0), a_zero=attribute(rounding, "zero", 0.0))
        return True
    if not is_rounding(rounding) or only_user(rounding.outputs[0]) is not product:
        return False
    product.replace_input_with(0, rounding.inputs[0])
    set_attributes(product, a_dynamic=1)
    set_origins(product, (*origins(rounding), *origins(product)))
    remove(rounding)
    return True


def _alike(value: ir.Value | None, columns: int) -> bool:
    """Whether the blocks of each column have the same; true of nothing."""
    if value is None:
        return True
    contents = array(value)
    if contents is None:
        return False
    blocks = contents.reshape(columns, -1)
    return bool(np.all(blocks == blocks[:, :1]))
