"""The internal dialect: attributes that passes add to ONNX's operators, and operators of py_ort's own domains.

Python imports these names. `dialect_code.py` writes them as constants of TypeScript and C++, and the tables of
docs/internals.md, section 2. `tests/unit/ops/test_dialect.py` refuses any other spelling. Only the standard library is
imported, because builds run this file before anything is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

INTERNAL_DOMAIN = "com.ms.internal"
NHWC_DOMAIN = "com.ms.internal.nhwc"


@dataclass(frozen=True)
class Operator:
    """An operator of `INTERNAL_DOMAIN`, the names of its inputs, and the module of `py_ort` that makes its nodes."""

    name: str
    inputs: str
    meaning: str
    maker: str


@dataclass(frozen=True)
class Attribute:
    """An attribute of an internal operator, or one that ONNX and com.microsoft do not have on these operators."""

    name: str
    type: str
    operators: str
    meaning: str


@dataclass(frozen=True)
class Place:
    """The index of an input or output that passes or kernels name."""

    name: str
    operators: str
    index: int
    meaning: str


OPERATORS: list[Operator] = []
ATTRIBUTES: list[Attribute] = []
PLACES: list[Place] = []


def _operator(name: str, inputs: str, meaning: str, maker: str) -> str:
    OPERATORS.append(Operator(name, inputs, meaning, maker))
    return name


def _attribute(name: str, kind: str, operators: str, meaning: str) -> str:
    ATTRIBUTES.append(Attribute(name, kind, operators, meaning))
    return name


def _place(name: str, operators: str, index: int, meaning: str) -> int:
    PLACES.append(Place(name, operators, index, meaning))
    return index


# Operators.
ELEMENTWISE_CHAIN = _operator(
    "ElementwiseChain", "any", "elementwise operators, then maybe a reduction", "passes/placed/elementwise_chains"
)
EXPERT_MATMUL = _operator(
    "ExpertMatMul", "x, choices, experts, scales, zeros, bias", "rows by the matrices of chosen experts", "ops/experts"
)
BYTE_TABLE = _operator("ByteTable", "x, table", "a function of bytes, by its 256 results", "passes/fuse/byte_tables")
_ROUNDED = "passes/fuse/round_trips"
FAKE_QUANTIZE = _operator("FakeQuantize", "x", "floats to steps of 8 bits (`scale`, `zero`) and back", _ROUNDED)
FAKE_QUANTIZE16 = _operator("FakeQuantize16", "x", "the same with steps of 16 bits", _ROUNDED)
DYNAMIC_FAKE_QUANTIZE = _operator(
    "DynamicFakeQuantize", "x", "the same with the steps of DynamicQuantizeLinear", "passes/fuse/dynamic_products"
)
_COUNTED = "passes/placed/counts"
NON_ZERO_COUNT = _operator("NonZeroCount", "x", "results of NonZero, and their number", _COUNTED)
COMPRESS_COUNT = _operator("CompressCount", "x, condition", "the same of Compress", _COUNTED)
UNIQUE_COUNT = _operator("UniqueCount", "x", "the same of Unique", _COUNTED)
NON_MAX_SUPPRESSION_COUNT = _operator("NonMaxSuppressionCount", "as in ONNX", "the same of NonMaxSuppression", _COUNTED)

# ElementwiseChain.
_CHAIN = ELEMENTWISE_CHAIN
PROGRAM = _attribute("program", "text", _CHAIN, "instructions on the inputs, broadcast (`ir/programs.py`)")
REDUCTION = _attribute("reduction", "text", _CHAIN, "the Reduce operator of the last register; with axes, keepdims")
FINISH = _attribute("finish", "text", _CHAIN, "the program of the reduced value")

# Products (ir/epilogue.py).
_PRODUCTS = "Conv, ConvTranspose, Gemm, MatMul"
_ENDED = f"{_PRODUCTS}, MatMulNBits, MatMulIntegerToFloat, Softmax, normalizations"
EPILOGUE = _attribute("epilogue", "text", _ENDED, "a program of the product with its bias (0) and the residual (1)")
PRODUCT_BIAS = _place("bias", _PRODUCTS, 2, "[N], which ONNX's MatMul lacks; Gemm's C, one row before an epilogue")
PRODUCT_RESIDUAL = _place("residual", _PRODUCTS, 3, "of the result's shape; only if the epilogue reads it")

# Products of few bits (ir/block_products.py).
_NBITS, _BYTES = "MatMulNBits", "MatMulNBits, NHWC Conv"
GATE = _attribute("gate", "text", _NBITS, "the program of the first half of the columns; multiplies the second half")
NORM_EPSILON = _attribute("norm_epsilon", "float", _NBITS, "of the normalization of input 0's rows")
A_SCALE = _attribute("a_scale", "float", _BYTES, "input 0 consists of whole steps of this size")
A_ZERO = _attribute("a_zero", "float", _BYTES, "the step, of 256, that is 0")
A_DYNAMIC = _attribute("a_dynamic", "int", _NBITS, "1: input 0 is first rounded as by DynamicQuantizeLinear")
NBITS_NORM = _place("norm", _NBITS, 6, "[K], the scale of the normalization")
NBITS_RESIDUAL = _place("residual", _NBITS, 7, "of the result's shape, added last unless the epilogue adds it")
NBITS_WORDS = _place("words", _NBITS, 8, "input 0 as bytes less 128, four to a word")
NBITS_STEPS = _place("steps", _NBITS, 9, "int32 [1, 4] of the words: a sum (unused), the byte of 0, the scale's bits")
WORDS_OUTPUT = _place("words (output)", "kernels with the feature `words`", 4, "the result's bytes, for MatMulNBits")

# Convolutions of bytes (passes/placed/byte_convolutions.py).
W_SCALE = _attribute("w_scale", "floats", "Conv", "steps of weights that were integers; between passes only")
CONV_SCALES = _place("scales", "NHWC Conv", 4, "[M], steps of the weights")

# Columns of wider tensors (passes/placed/columns.py).
_COLUMNS = "kernels with the feature `columns`"
X_COLUMNS = _attribute(
    "x_columns", "ints", _COLUMNS, "first and count of input 0's columns; Concat, chain: of each input"
)
RESIDUAL_COLUMNS = _attribute("residual_columns", "ints", "NHWC Conv", "first and count of the residual's columns")
Y_COLUMNS = _attribute("y_columns", "ints", _COLUMNS, "first column of the result, and the width of its tensor")
INTO = _attribute("into", "int", _COLUMNS, "the input that is this tensor; without it the node makes the tensor")
CONV_INTO = _place("into", "NHWC Conv", 5, "the tensor to write columns of")
CONV_TRANSPOSE_INTO = _place("into", "NHWC ConvTranspose", 4, "the same")
RESIZE_INTO = _place("into", "Resize", 4, "the same")
POOL_INTO = _place("into", "NHWC pools", 1, "the same")

# Sums in parts, strides (passes/placed/product_parts.py, transposed_operands.py).
_MATMULS = "MatMul, FusedMatMul"
_SKIP_NORMS = "SkipLayerNormalization, SkipSimplifiedLayerNormalization"
Y_PARTS = _attribute("y_parts", "int", "MatMul", "1: the result is [parts, …] of float32, still to be added up")
X_PARTS = _attribute("x_parts", "int", _SKIP_NORMS, "1: input 0 is such parts")
A_PERM = _attribute("a_perm", "ints", _MATMULS, "the Transpose of input 0, before all else")
B_PERM = _attribute("b_perm", "ints", _MATMULS, "the Transpose of input 1, before all else")
Y_PERM = _attribute("y_perm", "ints", _MATMULS, "the Transpose of the result, after all else")

# ONNX's Attention (ops/attention.py).
_ATTENTION = "Attention"
OFFSETS = _attribute("offsets", "ints", _ATTENTION, "first columns of queries, keys, values in wider rows")
HEAD_SIZES = _attribute("head_sizes", "ints", _ATTENTION, "of queries and keys, of values; with `offsets`")
NAN_ROWS = _attribute("nan_rows", "int", _ATTENTION, "1: rows without unmasked keys are NaN, not 0")
MASK_BROADCASTS = _attribute("mask_broadcasts", "int", _ATTENTION, "1: the mask is broadcast, not padded")
GROWS = _attribute("grows", "int", _ATTENTION, "1: caches may have room for more rows")
GROWS_WITH = _attribute("grows_with", "ints", _ATTENTION, "model inputs whose last axis has the caches' length")
ATTENTION_MASK = _place("mask", _ATTENTION, 3, "ONNX's attn_mask")
ATTENTION_PAST_KEY = _place("past_key", _ATTENTION, 4, "ONNX's")
ATTENTION_PAST_VALUE = _place("past_value", _ATTENTION, 5, "ONNX's")
ATTENTION_LENGTHS = _place("lengths", _ATTENTION, 6, "ONNX's nonpad_kv_seqlen")
ATTENTION_KEPT = _place("kept", _ATTENTION, 7, "ours: true for keys that count; the rest get no weight at all")

# Packed weights: section 3.
_INTEGER_PRODUCTS = "MatMulInteger, QLinearMatMul, QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul"
_CONVOLUTIONS = "NHWC Conv, ConvTranspose, QLinearConv, ConvInteger"
WEIGHT_LAYOUT = _attribute("weight_layout", "text", _CONVOLUTIONS, "the order of constant weights")
OUT_CHANNELS = _attribute("out_channels", "int", _CONVOLUTIONS, "M, which packed weights do not tell")
PACKED_N = _attribute("packed_n", "int", f"MatMul, Gemm, {_INTEGER_PRODUCTS}", "columns of the packed B")
PACKED_K = _attribute("packed_k", "int", f"{_INTEGER_PRODUCTS}, QLinearConv, ConvInteger", "rows of B; C / group")
#: Values of `weight_layout`.
HWIO, OHWI, IHWO, PANEL8, PANEL8X4 = "HWIO", "OHWI", "IHWO", "panel8", "panel8x4"
