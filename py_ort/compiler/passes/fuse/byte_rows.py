"""FakeQuantize → MatMulNBits with weights of 8 bits: gives the product the quantization steps of its rows.

DynamicFakeQuantize becomes a part of it. Its kernel may then multiply the integers themselves, where the device does.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import only_user
from py_ort.compiler.passes.quantization import byte_steps_of, is_dynamic_rounding
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, SCALES, ZEROS
from py_ort.ir.graph import array, attribute, input_at, origins, remove, set_attributes, set_origins
from py_ort.ir.operators import MICROSOFT
from py_ort.schema.dialect import A_DYNAMIC, A_SCALE, A_ZERO, NORM_EPSILON

_BITS = 8


@rewrite(
    OP_TYPE,
    domain=MICROSOFT,
    needs=lambda target: target.offers("bytes", OP_TYPE, MICROSOFT),
    after=("block_ends", "packed_projections", "round_trips"),
)
def byte_rows(product: ir.Node, target: Target) -> bool:
    """Say of a product's rows that they are integers."""
    if not target.runs_first(product):
        return False
    if attribute(product, "bits", 4) != _BITS or {NORM_EPSILON, A_SCALE} & set(product.attributes):
        return False
    rows = product.inputs[0]
    rounding = None if rows is None else rows.producer()
    dynamic = rounding is not None and is_dynamic_rounding(rounding)
    steps = None if dynamic else byte_steps_of(rows)
    if not dynamic and steps is None:
        return False
    columns = int(attribute(product, "N"))
    if not all(_alike(input_at(product, index), columns) for index in (SCALES, ZEROS)):
        return False
    if steps is not None:
        set_attributes(product, **{A_SCALE: steps.step, A_ZERO: steps.zero})
        return True
    if rounding is None or only_user(rounding.outputs[0]) is not product:
        return False
    product.replace_input_with(0, rounding.inputs[0])
    set_attributes(product, **{A_DYNAMIC: 1})
    set_origins(product, (*origins(rounding), *origins(product)))
    remove(rounding)
    return True


def _alike(value: ir.Value | None, columns: int) -> bool:
    """Return True if all blocks of a column have equal numbers, or if there is no input."""
    if value is None:
        return True
    contents = array(value)
    if contents is None or contents.size % columns:
        return False
    blocks = contents.reshape(columns, -1)
    return bool(np.all(blocks == blocks[:, :1]))
