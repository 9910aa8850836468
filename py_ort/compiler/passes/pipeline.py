"""Which passes run, in which order, at which level."""

from __future__ import annotations

import enum
from collections.abc import Callable

import onnx_ir as ir

from py_ort.compiler.passes.attention.attention import Attention
from py_ort.compiler.passes.attention.cache_writes import CacheWrites
from py_ort.compiler.passes.attention.index_grids import IndexGrids
from py_ort.compiler.passes.attention.interleaved_heads import InterleavedHeads
from py_ort.compiler.passes.attention.packed_gates import PackedGates
from py_ort.compiler.passes.attention.packed_projections import PackedProjections
from py_ort.compiler.passes.attention.rotary_embedding import RotaryEmbedding
from py_ort.compiler.passes.attention.stacked_heads import StackedHeads
from py_ort.compiler.passes.attention.turned_attention import TurnedAttention
from py_ort.compiler.passes.clean.branches import Branches
from py_ort.compiler.passes.clean.casts import Casts
from py_ort.compiler.passes.clean.concats import Concats
from py_ort.compiler.passes.clean.constants import Constants
from py_ort.compiler.passes.clean.dead_code import DeadCode
from py_ort.compiler.passes.clean.expansions import Expansions
from py_ort.compiler.passes.clean.folding import Folding
from py_ort.compiler.passes.clean.identity import Identity
from py_ort.compiler.passes.clean.reshapes import Reshapes
from py_ort.compiler.passes.clean.sizes import Sizes
from py_ort.compiler.passes.clean.stacked_transposes import StackedTransposes
from py_ort.compiler.passes.clean.subexpressions import Subexpressions
from py_ort.compiler.passes.fuse.activation import Activation
from py_ort.compiler.passes.fuse.activation_forms import ActivationForms
from py_ort.compiler.passes.fuse.activation_offset import ActivationOffset
from py_ort.compiler.passes.fuse.affine import Affine
from py_ort.compiler.passes.fuse.batch_normalization import BatchNormalization
from py_ort.compiler.passes.fuse.conv_affine import ConvAffine
from py_ort.compiler.passes.fuse.dequantized_weights import DequantizedWeights
from py_ort.compiler.passes.fuse.flat_products import FlatProducts
from py_ort.compiler.passes.fuse.gates import Gates
from py_ort.compiler.passes.fuse.gelu import Gelu
from py_ort.compiler.passes.fuse.hard_swish import HardSwish
from py_ort.compiler.passes.fuse.linear import Linear
from py_ort.compiler.passes.fuse.padded_windows import PaddedWindows
from py_ort.compiler.passes.fuse.quantized import Quantized
from py_ort.compiler.passes.fuse.residual import Residual
from py_ort.compiler.passes.fuse.scale_shift import ScaleShift
from py_ort.compiler.passes.fuse.transposed_products import TransposedProducts
from py_ort.compiler.passes.norms.group_norm import GroupNorm
from py_ort.compiler.passes.norms.instance_norm import InstanceNorm
from py_ort.compiler.passes.norms.layer_norm import LayerNorm
from py_ort.compiler.passes.norms.rms_norm import RmsNorm
from py_ort.compiler.passes.norms.skip_norm import SkipNorm
from py_ort.compiler.passes.norms.transposed_norms import TransposedNorms
from py_ort.compiler.passes.pass_base import HasOperator, Pass


class Level(enum.IntEnum):
    """How far to optimise; numbers as onnxruntime's GraphOptimizationLevel.

    DISABLED: only what kernels need: operators in their newest forms, functions in their parts. BASIC: rewrites into
    ONNX's own operators, as every runtime makes them. EXTENDED: also operators with others fused into them, and packed
    weights. LAYOUT: also NHWC. ALL: also plans for the shapes that a session sees (`py_ort.runtime.shape_plans`).
    """

    DISABLED = 0
    BASIC = 1
    EXTENDED = 2
    LAYOUT = 3
    ALL = 99


def _nothing(domain: str, op_type: str) -> bool:
    return False


REQUIRED: list[Pass] = [Constants()]
"""These run at every level, before the rewrite to the newest opset."""


def pipeline(
    level: Level,
    *,
    has_operator: HasOperator = _nothing,
    matmul_bias: bool = False,
    product_residuals: bool = False,
    reads_columns: HasOperator = _nothing,
) -> list[Pass]:
    """Return the passes that run after the rewrite to the newest opset, before layout and placement.

    Args:
        level: How far to go; see `Level`.
        has_operator: Tells whether the first provider runs (domain, op_type); fusions into operators outside ONNX ask.
        matmul_bias: The kernels of MatMul take a bias.
        product_residuals: Those of MatMul and Gemm take a residual, which pays for the first provider.
        reads_columns: Tells whether the first provider's (domain, op_type) reads columns of wider tensors.
    """
    if level < Level.BASIC:
        return []
    integers: list[Pass] = [Identity(), Quantized(has_operator), DequantizedWeights(has_operator)]
    passes = integers if level >= Level.EXTENDED else []
    passes += [
        Folding(),
        Branches(),
        Casts(),
        Identity(),
        DeadCode(),
        BatchNormalization(),
        Sizes(),
        Subexpressions(),
        Expansions(),
        IndexGrids(),
        StackedTransposes(),
        *([RotaryEmbedding(has_operator)] if level >= Level.EXTENDED else []),  # before its reshapes merge with others
        InterleavedHeads(),
        Reshapes(),
        HardSwish(),
        InstanceNorm(has_operator),
        LayerNorm(),
        RmsNorm(has_operator),
        GroupNorm(has_operator),
        Gelu(),
        Gates(),
        Affine(),
        PaddedWindows(),
        FlatProducts(),
        ConvAffine(),
        Concats(),
        Identity(),
        Folding(),
        DeadCode(),
    ]
    if level >= Level.EXTENDED:
        products = [Residual("MatMul", "Gemm")] if product_residuals else []
        passes += [
            TransposedNorms(),
            RotaryEmbedding(has_operator),
            CacheWrites(has_operator),
            StackedHeads(has_operator),
            TurnedAttention(has_operator),
            Attention(has_operator),
            Reshapes(),
            Identity(),
            DeadCode(),
            TransposedProducts(has_operator),
            ActivationForms(),
            Linear(matmul_bias=matmul_bias),
            PackedProjections(reads_columns),
            PackedGates(reads_columns),
            ConvAffine(),
            *([ScaleShift()] if level >= Level.LAYOUT else []),
            Residual(),
            SkipNorm(has_operator),
            *products,
            Activation(),
            ActivationOffset(),
            Residual(),
            *products,
        ]
    return [*passes, DeadCode()]


def layout_pipeline(supports: Callable[[ir.Node], bool]) -> list[Pass]:
    """Return the passes that take the graph to NHWC and clean up behind it.

    Args:
        supports: Tells of a convolution or pool whether its provider has the NHWC form.
    """
    from py_ort.compiler.layout import Nhwc

    return [Nhwc(supports), Subexpressions(), Folding(), Reshapes(), Identity(), DeadCode()]
