"""The built page has WebGPU kernels for the operators of onnxruntime-web's WebGPU providers, and for more."""

from __future__ import annotations

import pytest

from py_ort.ir.operators import parts
from py_ort.providers.manifest import load_manifests

#: onnxruntime-web's JSEP, without reductions and control flow.
JSEP = """Abs Acos Acosh Add ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization Cast Ceil Clip Concat
Conv ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div Einsum Elu Equal Erf Exp Expand Flatten Floor
Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GridSample HardSigmoid
InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log MatMul MaxPool Mul Neg Not Pad Pow Range
Reciprocal Relu Reshape Resize RotaryEmbedding ScatterND Sigmoid SimplifiedLayerNormalization Sin Sinh Slice Softmax
Split Sqrt Squeeze Sub Tan Tanh ThresholdedRelu Tile Transpose Unsqueeze Where"""
MICROSOFT = """Attention BiasAdd BiasSplitGelu FastGelu FusedConv GatherBlockQuantized GroupQueryAttention MatMulNBits
MultiHeadAttention QuickGelu RotaryEmbedding SkipLayerNormalization SkipSimplifiedLayerNormalization"""
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
#: Everyday operators that JSEP lacks.
EVERYDAY = """And Or Xor Max Min Sum Mean Mod Sign Round Identity IsNaN IsInf Softplus Softsign Selu Celu PRelu
LogSoftmax LRN LpNormalization ConstantOfShape EyeLike OneHot TopK RoiAlign Trilu ScatterElements SpaceToDepth
QuantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger RNN GRU LSTM
GroupNormalization Attention RMSNormalization STFT DFT DeformConv MaxUnpool Col2Im NonZero Compress Unique
NonMaxSuppression LinearAttention CausalConvWithState NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss AffineGrid Det
MaxRoiPool"""
#: Of com.microsoft, made from others.
PARTS = """DynamicQuantizeMatMul EmbedLayerNormalization GroupNorm MatMulBnb4 MatMulIntegerToFloat NhwcConv QAttention
QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid
QLinearSoftmax QLinearWhere SkipGroupNorm"""
NHWC = """Conv ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool LRN BatchNormalization
DepthToSpace SpaceToDepth GridSample"""


@pytest.mark.parametrize(
    ("domain", "names"),
    [
        ("", JSEP),
        ("com.microsoft", MICROSOFT),
        ("", " ".join(f"Reduce{name}" for name in REDUCTIONS.split())),
        ("", EVERYDAY),
        ("com.ms.internal.nhwc", NHWC),
    ],
    ids=["jsep", "com.microsoft", "reductions", "everyday", "nhwc"],
)
def test_there_is_a_kernel(domain: str, names: str) -> None:
    manifest = load_manifests()["webgpu"]
    assert [name for name in names.split() if not manifest.has(domain, name)] == []


@pytest.mark.parametrize("name", PARTS.split())
def test_all_parts_have_kernels(name: str) -> None:
    found = parts("com.microsoft", name)
    assert found is not None
    assert [part for part in found.of if not load_manifests()["webgpu"].has(*part)] == []
