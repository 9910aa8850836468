"""DequantizeLinear of constant weights → MatMul becomes MatMulNBits, which reads the integers as they are.

Folded, the weights would be floats: four to eight times as many bytes on the GPU. onnxruntime does the same with
weights of 4 bits. Convolutions keep in mind in which steps theirs were, for `passes/placed/byte_convolutions.py`.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.match import drop, made_by
from py_ort.compiler.passes.quantization import BYTES, byte_steps_of, computes_on_bytes, is_dynamic_rounding
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.compiler.target import Target
from py_ort.ir.block_products import OP_TYPE, pack_nibbles
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import has_epilogue
from py_ort.ir.graph import array, attribute, origins, rank, remove, replace_value, set_attributes
from py_ort.ir.operators import MICROSOFT, NHWC
from py_ort.schema.dialect import W_SCALE

#: Bits of the types that weights may have, and what makes their values unsigned.
_TYPES = {
    ir.DataType.INT8: (8, 128),
    ir.DataType.UINT8: (8, 0),
    ir.DataType.INT4: (4, 8),
    ir.DataType.UINT4: (4, 0),
}
#: Least number of elements; smaller weights are faster as floats, and small in any form.
_WORTH = 1 << 18
#: The same if the left operand is rounded to integers, which some devices multiply directly.
_WORTH_ROUNDED = 1 << 12
#: Elements with one scale, where a whole column has one.
_BLOCK = 128


def _runs_few_bits(target: Target) -> bool:
    """Return True if the first provider has the products, and does not work on integers (`Quantized`)."""
    return target.has(MICROSOFT, OP_TYPE) is True and not computes_on_bytes(target)


@rewrite("Conv", needs=_runs_few_bits, after=("quantized",), before=("folding",))  # which makes floats of the weights
def dequantized_weights(node: ir.Node, target: Target) -> bool:
    """Note the steps of a Conv's weights; then take each MatMul by weights that the model keeps as integers."""
    if not target.offers("bytes", "Conv", NHWC):
        return False
    source = made_by(node.inputs[1], "DequantizeLinear")
    scales = None if source is None else array(source.inputs[1])
    integers = None if source is None else source.inputs[0]
    if (
        source is None
        or scales is None
        or integers is None
        or integers.dtype not in BYTES
        or W_SCALE in node.attributes
    ):
        return False
    if scales.size > 1 and (scales.ndim > 1 or attribute(source, "axis", 1) != 0):  # blocks have more axes
        return False
    set_attributes(node, **{W_SCALE: scales.reshape(-1).tolist()})
    return True


@dequantized_weights.also("MatMul")
def _of_few_bits(node: ir.Node, target: Target) -> bool:
    source = made_by(node.inputs[1], "DequantizeLinear")
    if source is None or len(node.inputs) > 2 or has_epilogue(node) or (rank(node.inputs[0]) or 0) < 2:
        return False
    integers = array(source.inputs[0])
    dtype = None if source.inputs[0] is None else source.inputs[0].dtype
    if integers is None or dtype not in _TYPES or integers.ndim != 2:
        return False
    bits, offset = _TYPES[dtype]
    (k, n), block = integers.shape, int(attribute(source, "block_size", 0)) or _BLOCK
    scales = _blocks(array(source.inputs[1]), source, k, n, block)
    zeros = _blocks(array(source.inputs[2]), source, k, n, block) if len(source.inputs) > 2 else np.zeros((1, 1))
    if scales is None or zeros is None or block < 16 or block & (block - 1):
        return False
    of_bytes = target.offers("bytes", OP_TYPE, MICROSOFT)  # multiplied as they are
    of_bytes &= bits == 8 and len(scales) == len(zeros) == 1 and k % 4 == n % 4 == 0 and _is_rounded(node.inputs[0])
    if integers.size < (_WORTH_ROUNDED if of_bytes else _WORTH):
        return False
    count = -(-k // block)
    weights = np.zeros((count * block, n), np.uint8)
    weights[:k] = integers.astype(np.int16) + offset
    build = Builder(node, origin=[*origins(source), *origins(node)])
    packed = pack_nibbles if bits == 4 else np.asarray
    packed_zeros = None
    shifted = np.broadcast_to(zeros.astype(np.int16) + offset, (count, n)).astype(np.uint8)
    if (shifted != 1 << (bits - 1)).any():
        packed_zeros = build.constant(packed(np.ascontiguousarray(shifted.T)))
    inputs = [
        node.inputs[0],
        build.constant(packed(np.ascontiguousarray(weights.T)).reshape(n, count, block * bits // 8)),
        build.constant(np.ascontiguousarray(np.broadcast_to(scales, (count, n)).T)),
        *([] if packed_zeros is None else [packed_zeros]),
    ]
    result = build.op(OP_TYPE, *inputs, domain=MICROSOFT, K=k, N=n, bits=bits, block_size=block)
    replace_value(node.outputs[0], result)
    remove(node)
    drop(source.outputs[0])
    return True


def _is_rounded(rows: ir.Value | None) -> bool:
    return rows is not None and (is_dynamic_rounding(rows.producer()) or byte_steps_of(rows) is not None)


def _blocks(contents: np.ndarray | None, source: ir.Node, k: int, n: int, block: int) -> np.ndarray | None:
    """Scales or zero points as something that broadcasts to [blocks of k, n]; None if they are not of columns."""
    if contents is None:
        return None
    axis = int(attribute(source, "axis", 1)) % 2
    if contents.size == 1:
        return contents.reshape(1, 1)
    if contents.ndim == 1:
        return contents[None] if axis == 1 else None
    return contents if axis == 0 and contents.shape == (-(-k // block), n) else None
