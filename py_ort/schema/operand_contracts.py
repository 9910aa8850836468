"""The table of contracts, in the language of `operands.py`; standard library only, as all that the build reads."""

from __future__ import annotations

MICROSOFT, NHWC = "com.microsoft", "com.ms.internal.nhwc"

_CONV = """
    group = 1; out_channels = 0; weight_layout = '';
    weight_layout == '' ? W[M, C / group, ...]; weight_layout == 'HWIO' ? W[..., C / group, M];
    weight_layout == '' ? rank(W) == rank(X); out_channels == 0 ? M % group == 0;
    packed_k = 0; packed_k == 0 or packed_k * group == C
"""
_CONV_BIAS = "out_channels == 0 ? B[M]; out_channels != 0 ? B[out_channels]"
_RESIDUAL = "Z[...]; rank(Z) == rank(X)"
_CONV_TRANSPOSE = f"""
    group = 1; out_channels = 0; weight_layout = '';
    weight_layout == '' ? W[C, M, ...]; weight_layout == 'HWIO' ? W[..., C, M]; C % group == 0;
    weight_layout == '' ? rank(W) == rank(X);
    out_channels == 0 ? B[M * group]; out_channels != 0 ? B[out_channels]; {_RESIDUAL}
"""
_ONE = "[] | [1]"
_NUMBERS = "[] | [_]"
_QUANTIZED_CONV = (
    f"XScale{_ONE}; XZeroPoint{_ONE}; {_CONV}; {{0}}; YScale{_ONE}; YZeroPoint{_ONE}; {_CONV_BIAS}".format(
        """out_channels == 0 ? WScale[] | [M or 1]; out_channels != 0 ? WScale[] | [out_channels or 1];
    WZeroPoint[] | [_]; size(WZeroPoint) == 1 or size(WZeroPoint) == size(WScale)"""
    )
)
_PRODUCT = "transA = 0; transB = 0; packed_n = 0"
_QUANTIZE = """
    axis = 1; block_size = 0; X[...]; block_size == 0 ? Scale[] | [1 or dim(X, axis)];
    block_size != 0 ? rank(Scale) == rank(X); block_size != 0 ? within(X, Scale, axis) and within(Scale, X, axis);
    block_size != 0 ? dim(X, axis) <= dim(Scale, axis) * block_size;
    block_size != 0 ? dim(Scale, axis) * block_size < dim(X, axis) + block_size;
    ZeroPoint[...]; same(ZeroPoint, Scale) or block_size == 0 and size(Scale) == 1 and size(ZeroPoint) == 1
"""
#: Halves of the heads' columns that are rotated: R.
_ROTATED = """
    num_heads = 0; rotary_embedding_dim = 0; rotary_embedding_dim == 0 or rotary_embedding_dim == 2 * R;
    rank(X) == 4 ? 2 * R <= dim(X, 3); rank(X) == 3 and num_heads == 0 ? dim(X, 2) % (2 * R) == 0;
    rank(X) == 3 and num_heads != 0 ? dim(X, 2) % num_heads == 0 and 2 * R * num_heads <= dim(X, 2);
    size(Cos) != 0 or size(X) == 0
"""


def _recurrent(gates: int, last: str = "") -> str:
    """A state of each direction is [D, batch, H], or with layout 1 [batch, D, H]."""
    return f"""
        layout = 0; hidden_size = 0; X[_, _, I]; W[D, {gates} * H, I]; R[D, {gates} * H, H]; B[D, {2 * gates} * H];
        layout == 0 ? SequenceLens[dim(X, 1)]; layout != 0 ? SequenceLens[dim(X, 0)];
        layout == 0 ? InitialH[D, dim(X, 1), H]; layout != 0 ? InitialH[dim(X, 0), D, H]; {last};
        hidden_size == 0 or hidden_size == H
    """


_LSTM = "layout == 0 ? InitialC[D, dim(X, 1), H]; layout != 0 ? InitialC[dim(X, 0), D, H]; P[D, 3 * H]"
_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
_TO_FLOATS = ("MatMulIntegerToFloat", "DynamicQuantizeMatMul")
_GRID = """
    Grid[N, ..., _]; rank(Grid) == rank(X); dim(Grid, -1) == rank(X) - 2; size(X) != 0 or size(Grid) == 0
"""
_PAST = "PastKey[B, {0}, P, _]; PastValue[B, {0}, P, _]"

#: By domain and operator, in the canonical form of `docs/internals.md`, section 2, and the forms that passes make.
CONTRACTS: dict[tuple[str, str], str] = {
    ("", "Conv"): f"X[_, C, ...]; {_CONV}; {_CONV_BIAS}; {_RESIDUAL}",
    (NHWC, "Conv"): f"X[_, ..., C]; {_CONV}; {_CONV_BIAS}; {_RESIDUAL}",
    ("", "ConvTranspose"): f"X[_, C, ...]; {_CONV_TRANSPOSE}",
    (NHWC, "ConvTranspose"): f"X[_, ..., C]; {_CONV_TRANSPOSE}",
    (MICROSOFT, "NhwcConv"): "group = 1; X[_, ..., C]; W[M, ..., C / group]; B[M]; rank(W) == rank(X)",
    ("", "DeformConv"): """
        group = 1; X[N, C, ...]; W[M, C / group, ...]; Offset[N, _, ...]; B[M]; Mask[N, _, ...];
        rank(W) == rank(X); rank(Offset) == rank(X); rank(Mask) == rank(X)
    """,
    ("", "QLinearConv"): f"X[_, C, ...]; {_QUANTIZED_CONV}",
    (NHWC, "QLinearConv"): f"X[_, ..., C]; {_QUANTIZED_CONV}",
    ("", "ConvInteger"): f"X[_, C, ...]; {_CONV}; XZeroPoint{_ONE}",
    ("", "Gemm"): f"""
        {_PRODUCT}; transA == 0 ? A[M, K]; transA != 0 ? A[K, M];
        packed_n == 0 and transB == 0 ? B[K, N]; packed_n == 0 and transB != 0 ? B[N, K];
        packed_n == 0 ? C[] | [N or 1] | [M or 1, N or 1];
        packed_n != 0 ? C[] | [packed_n or 1] | [M or 1, packed_n or 1]
    """,
    ("", "BatchNormalization"): "X[_, C, ...] | [_]; Scale[C]; B[C]; Mean[C]; Var[C]",
    (NHWC, "BatchNormalization"): "X[_, ..., C]; Scale[C]; B[C]; Mean[C]; Var[C]",
    **dict.fromkeys((("", "InstanceNormalization"), ("", "GroupNormalization")), "X[_, C, ...]; Scale[C]; B[C]"),
    **dict.fromkeys(((NHWC, "InstanceNormalization"), (NHWC, "GroupNormalization")), "X[_, ..., C]; Scale[C]; B[C]"),
    ("", "LayerNormalization"): "X[...]; Scale[...]; B[...]; broadcasts(Scale, X); broadcasts(B, X)",
    **dict.fromkeys(
        (("", "RMSNormalization"), ("", "SimplifiedLayerNormalization"), (MICROSOFT, "SimplifiedLayerNormalization")),
        "X[...]; Scale[...]; broadcasts(Scale, X)",
    ),
    ("", "Clip"): f"X[...]; Min{_ONE}; Max{_ONE}",
    ("", "Compress"): "X[...]; Condition[_]",
    ("", "Det"): "X[..., M, M]",
    ("", "EyeLike"): "X[_, _]",
    ("", "MaxUnpool"): "X[_, _, ...]; I[_, _, ...]; same(X, I)",
    ("", "Multinomial"): "X[_, _]",
    ("", "NonMaxSuppression"): f"Boxes[B, S, 4]; Scores[B, _, S]; MaxOutput{_ONE}; IouThreshold{_ONE}; Threshold{_ONE}",
    ("", "Split"): "axis = 0; num_outputs = 0; X[...]; Split[_]; num_outputs <= dim(X, axis)",
    ("", "Tile"): f"X[...]; Repeats{_NUMBERS}",
    ("", "DFT"): f"X[...]; Length{_ONE}; Axis{_ONE}",
    ("", "Col2Im"): "X[...]; ImageShape[_]; BlockShape[_]",
    ("", "STFT"): f"Signal[_, _] | [_, _, 1 or 2]; Step{_ONE}; Window[_]; Length{_ONE}",
    **dict.fromkeys(
        ((domain, f"Global{name}Pool") for domain in ("", NHWC) for name in ("Average", "Lp", "Max")),
        "X[_, _, _, ...]",
    ),
    **dict.fromkeys(
        (("", "Softmax"), ("", "LogSoftmax"), ("", "Hardmax")),
        "axis = -1; X[...]; axis < rank(X); 0 <= axis + rank(X)",
    ),
    ("", "Resize"): """
        axes = 0; coordinate_transformation_mode = ''; X[...]; Roi[...];
        coordinate_transformation_mode == 'tf_crop_and_resize' ? axes == 0 or size(Roi) == 2 * axes;
        coordinate_transformation_mode == 'tf_crop_and_resize' ? axes != 0 or size(Roi) == 2 * rank(X)
    """,
    ("", "TensorScatter"): """
        axis = -2; Past[B, ...]; Update[B, ...]; WriteIndices[B]; rank(Update) == rank(Past);
        within(Update, Past, axis) and within(Past, Update, axis)
    """,
    **dict.fromkeys((("", f"{name}Window") for name in ("Blackman", "Hamming", "Hann")), f"Size{_ONE}"),
    ("", "LSTM"): _recurrent(4, _LSTM),
    ("", "GRU"): _recurrent(3),
    ("", "RNN"): _recurrent(1),
    ("", "ScatterND"): """
        Data[...]; Indices[..., K]; Updates[...]; K <= rank(Data);
        rank(Updates) == rank(Data) + rank(Indices) - 1 - K;
        prefix(Updates, Indices, rank(Indices) - 1); suffix(Updates, Data, rank(Data) - K)
    """,
    ("", "ScatterElements"): """
        axis = 0; Data[...]; Indices[...]; Updates[...]; rank(Indices) == rank(Data); same(Updates, Indices);
        within(Indices, Data, axis)
    """,
    ("", "GatherElements"): """
        axis = 0; Data[...]; Indices[...]; rank(Indices) == rank(Data); within(Indices, Data, axis)
    """,
    ("", "GatherND"): """
        batch_dims = 0; Data[...]; Indices[..., K]; K + batch_dims <= rank(Data); batch_dims < rank(Indices);
        prefix(Data, Indices, batch_dims)
    """,
    ("", "GridSample"): f"X[N, _, ...]; {_GRID}",
    (NHWC, "GridSample"): f"X[N, ..., _]; {_GRID}",
    ("", "RoiAlign"): "X[_, _, _, _]; Rois[R, 4]; BatchIndices[R]",
    ("", "MaxRoiPool"): "X[_, _, _, _]; Rois[_, 5]",
    ("", "OneHot"): f"Indices[...]; Depth{_ONE}; Values[2]",
    ("", "TopK"): f"X[...]; K{_ONE}",
    ("", "Trilu"): f"X[...]; K{_ONE}",
    ("", "Range"): f"Start{_ONE}; Limit{_ONE}; Delta{_ONE}",
    ("", "CumSum"): f"X[...]; Axis{_ONE}",
    ("", "CumProd"): f"X[...]; Axis{_ONE}",
    ("", "ReverseSequence"): "batch_axis = 1; X[...]; SequenceLens[dim(X, batch_axis)]",
    ("", "Slice"): f"""
        Data[...]; Starts{_NUMBERS}; Ends{_NUMBERS}; Axes{_NUMBERS}; Steps{_NUMBERS}; size(Ends) == size(Starts);
        size(Axes) == size(Starts); size(Steps) == size(Starts)
    """,
    ("", "NegativeLogLikelihoodLoss"): "Scores[_, C, ...] | [C]; Target[...]; Weight[C]",
    ("", "SoftmaxCrossEntropyLoss"): "Scores[_, C, ...] | [C]; Target[...]; Weight[C]",
    ("", "Pad"): "Data[...]; Pads[_]; Value[...]; size(Value) == 1",
    ("", "RotaryEmbedding"): f"""
        X[B, _, S, _] | [B, S, _]; Cos[_, R] | [B, S, R]; Sin[...]; PositionIds[B, S]; same(Cos, Sin);
        given(PositionIds) ? rank(Cos) == 2; {_ROTATED}
    """,
    (MICROSOFT, "RotaryEmbedding"): f"""
        X[B, _, S, _] | [B, S, _]; PositionIds[] | [1] | [B, S]; Cos[_, R]; Sin[...]; same(Cos, Sin); {_ROTATED}
    """,
    ("", "Attention"): """
        offsets = 0; q_num_heads = 0; kv_num_heads = 0; Q[...]; K[...]; V[...];
        offsets == 0 ? rank(Q) == rank(K) and rank(K) == rank(V);
        offsets == 0 ? dim(Q, 0) == dim(K, 0) and dim(K, 0) == dim(V, 0); offsets == 0 ? dim(K, -2) == dim(V, -2);
        rank(K) == 4 ? dim(K, 1) == dim(V, 1); rank(K) == 4 ? dim(Q, 3) == dim(K, 3) and dim(Q, 1) % dim(K, 1) == 0;
        offsets == 0 and rank(K) == 3 ? dim(Q, 2) * kv_num_heads == dim(K, 2) * q_num_heads;
        offsets == 0 and rank(K) == 3 ? dim(Q, 2) % q_num_heads == 0 and dim(V, 2) % kv_num_heads == 0; Mask[...];
        PastKey[_, _, P, _]; PastValue[_, _, P, _]; P != 0 ? dim(PastKey, 0) == dim(Q, 0);
        P != 0 ? dim(PastValue, 0) == dim(Q, 0);
        P != 0 and rank(K) == 4 ? dim(PastKey, 1) == dim(K, 1) and dim(PastKey, 3) == dim(K, 3);
        P != 0 and rank(K) == 4 ? dim(PastValue, 1) == dim(V, 1) and dim(PastValue, 3) == dim(V, 3);
        P != 0 and rank(K) == 3 ? dim(PastKey, 1) == kv_num_heads and dim(PastValue, 1) == kv_num_heads;
        P != 0 and offsets == 0 and rank(K) == 3 ? dim(PastKey, 3) * kv_num_heads == dim(K, 2);
        P != 0 and offsets == 0 and rank(K) == 3 ? dim(PastValue, 3) * kv_num_heads == dim(V, 2)
    """,
    ("", "LinearAttention"): """
        q_num_heads = 1; kv_num_heads = 1; Q[B, T, W]; K[B, T, C]; V[B, T, N]; W % q_num_heads == 0;
        N % kv_num_heads == 0; W * kv_num_heads == C * q_num_heads; Past[...]; Decay[B, T, kv_num_heads or C];
        Beta[B, T, kv_num_heads or 1]
    """,
    ("", "CausalConvWithState"): "X[...]; W[C, 1, _]; Bias[C]",
    **{("", f"Reduce{name}"): "Data[...]; Axes[_]" for name in _REDUCTIONS.split()},
    ("", "DequantizeLinear"): _QUANTIZE,
    ("", "QuantizeLinear"): _QUANTIZE,
    **dict.fromkeys(
        (("", "MatMulInteger"), ("", "QLinearMatMul"), *((MICROSOFT, name) for name in _TO_FLOATS)),
        "packed_k = 0; A[..., K]; packed_k == 0 or packed_k == K",
    ),
    (MICROSOFT, "QGemm"): """
        transA = 0; packed_k = 0; A[_, _]; transA == 0 ? packed_k == 0 or packed_k == dim(A, 1);
        transA != 0 ? packed_k == 0 or packed_k == dim(A, 0)
    """,
    (MICROSOFT, "BiasGelu"): "X[..., E]; Bias[E]",
    (MICROSOFT, "BiasSplitGelu"): "X[..., E]; Bias[E]",
    (MICROSOFT, "BiasAdd"): "X[_, _, E]; Bias[E]; Skip[...]; same(Skip, X)",
    (MICROSOFT, "SkipLayerNormalization"): "X[..., E]; Skip[..., E]; Gamma[E]; Beta[E]; Bias[E]; broadcasts(Skip, X)",
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): "X[..., E]; Skip[..., E]; Gamma[E]; Bias[E]; broadcasts(Skip, X)",
    (MICROSOFT, "MultiHeadAttention"): f"""
        num_heads = 1; Query[B, S, Hidden] | [B, S, num_heads, 3, _]; Hidden % num_heads == 0;
        Key[B, L, Hidden] | [B, num_heads, L, Hidden / num_heads] | [B, L, num_heads, 2, Hidden / num_heads];
        Value[B, L, V] | [B, num_heads, L, _]; V % num_heads == 0; Bias[_]; Mask[...];
        rank(Mask) == 1 ? dim(Mask, 0) == B or dim(Mask, 0) == 3 * B + 2;
        rank(Value) == 3 ? size(Bias) == 2 * Hidden + V; rank(Key) == 5 ? size(Bias) == 3 * Hidden;
        rank(Value) == 4 ? size(Bias) == 2 * Hidden + num_heads * dim(Value, 3);
        rank(Query) == 5 ? size(Bias) == 3 * num_heads * dim(Query, 4);
        AttentionBias[B or 1, num_heads or 1, S, _]; {_PAST.format("num_heads")}; PastSequenceLength{_ONE};
        Beams[_, _, P]; dim(Beams, 0) * dim(Beams, 1) == B; not given(PastKey) ? dim(AttentionBias, 3) == L;
        given(PastKey) and not given(PastSequenceLength) ? dim(AttentionBias, 3) == L + P;
        rank(Mask) == 2 and not given(PastKey) ? dim(Mask, 0) == B and dim(Mask, 1) == L;
        dim(PastKey, 3) == Hidden / num_heads; dim(PastValue, 3) == V / num_heads;
        rank(Value) == 4 ? dim(PastValue, 3) == dim(Value, 3)
    """,
    (MICROSOFT, "Attention"): """
        num_heads = 1; qkv_hidden_sizes = 0; X[B, S, C]; W[C, N]; qkv_hidden_sizes == 0 ? N % (3 * num_heads) == 0;
        qkv_hidden_sizes == 0 or qkv_hidden_sizes == 3; Bias[N]; Mask[...]; Past[2, B, num_heads, P, _];
        dim(Past, 4) * 3 * num_heads == N; rank(Mask) == 2 ? dim(Mask, 0) == B;
        rank(Mask) == 2 and not given(Past) ? dim(Mask, 1) == S or dim(Mask, 1) == 1;
        AttentionBias[B or 1, num_heads or 1, S, _]; given(Past) ? dim(AttentionBias, 3) == S + P;
        not given(Past) ? dim(AttentionBias, 3) == S
    """,
    (MICROSOFT, "QAttention"): f"""
        num_heads = 1; X[B, S, C]; W[C, N]; N % (3 * num_heads) == 0; Bias[N]; XScale{_ONE};
        WScale[] | [N or 1]; Mask[...]; XZeroPoint{_ONE};
        WZeroPoint[] | [N or 1]; Past[2, B, num_heads, _, _]; dim(Past, 4) * 3 * num_heads == N
    """,
    (MICROSOFT, "GroupQueryAttention"): f"""
        num_heads = 1; kv_num_heads = 1; num_heads % kv_num_heads == 0; Query[B, S, W]; Key[B, S, K]; Value[B, S, K];
        given(Key) ? W % num_heads == 0; K * num_heads == W * kv_num_heads;
        not given(Key) ? W % (num_heads + 2 * kv_num_heads) == 0; {_PAST.format("kv_num_heads")}; SeqlensK[...];
        given(Key) ? dim(PastKey, 3) * num_heads == W; dim(PastKey, 3) == dim(PastValue, 3);
        not given(Key) ? dim(PastKey, 3) * (num_heads + 2 * kv_num_heads) == W; size(SeqlensK) == B;
        TotalLength{_ONE}; Cos[_, R]; Sin[_, R]; same(Cos, Sin); PositionIds[B, S];
        AttentionBias[B or 1, num_heads or 1, S, _]; HeadSink[num_heads]; given(Key) ? 2 * R * num_heads <= W;
        not given(Key) ? 2 * R * (num_heads + 2 * kv_num_heads) <= W
    """,
    (MICROSOFT, "CropAndResize"): "X[_, _, _, _]; Rois[R, 4]; BatchIndices[R]; CropSize[2]",
    (MICROSOFT, "EmbedLayerNormalization"): """
        Ids[B, S]; SegmentIds[B, S]; Words[_, H]; Positions[_, H]; Segments[_, H]; Gamma[H]; Beta[H]; Mask[B, _];
        PositionIds[B or 1, S]
    """,
    (MICROSOFT, "GatherBlockQuantized"): """
        quantize_axis = 1; Data[...]; Indices[...]; Scales[...]; ZeroPoints[...]; rank(Scales) == rank(Data);
        within(Data, Scales, quantize_axis) and within(Scales, Data, quantize_axis);
        rank(ZeroPoints) == rank(Scales)
    """,
    **dict.fromkeys(
        ((MICROSOFT, "GroupNorm"), (MICROSOFT, "SkipGroupNorm")),
        """
        channels_last = 1; X[_, _, ...]; Gamma[C]; Beta[C]; Skip[...]; Bias[C];
        channels_last != 0 ? dim(X, -1) == C; channels_last == 0 ? dim(X, 1) == C
    """,
    ),
}
