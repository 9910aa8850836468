"""The less common operators of com.microsoft that native onnxruntime has on the CPU, on both providers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contributed_cases import PROVIDERS, Case, Draws, check, step

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ops.quantized_parts import NF4


def _bnb4(name: str, rows: tuple[int, ...], k: int, n: int, block: int, kind: int, transposed: int = 1) -> Case:
    inputs = [f32(*rows, k if transposed else n), u8((n * k + 1) // 2), np.abs(f32(-(-n * k // block)))]
    given = {"K": k, "N": n, "block_size": block, "quant_type": kind, "transB": transposed}
    expected = None if transposed else _looked_up(k, n, block)
    return Case(name, "MatMulBnb4", inputs, given, tolerance=1e-4, expected=expected)


def _looked_up(k: int, n: int, block: int) -> Any:
    """In plain numpy, for NF4: with transB=0 native leaves most of its result uninitialized."""

    def run(a: Any, packed: Any, largest: Any) -> Any:
        values = np.array(NF4, np.float32)[np.stack([packed >> 4, packed & 15], -1).reshape(-1)]
        return [a @ (values * np.repeat(largest, block)).reshape(n, k)]

    return run


REGIONS = np.array(
    [[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, -0.2, 1.2, 1.4], [0.9, 0.8, 0.1, 0.2], [0.5, 0.5, 0.5, 0.5]], np.float32
)

_DRAWS = Draws()
RNG, f32, u8, i8 = _DRAWS.rng, _DRAWS.f32, _DRAWS.u8, _DRAWS.i8


def _crop(name: str, size: tuple[int, int], **attributes: Any) -> Case:
    inputs = [f32(2, 3, 6, 7), REGIONS, np.array([0, 1, 1, 0, 1], np.int32), np.array(size, np.int32)]
    return Case(name, "CropAndResize", inputs, attributes, fed=3)


def _embeddings(name: str, kind: Any, segments: bool = True, mask: bool = True) -> Case:
    made = u8 if kind == np.uint8 else i8
    words = RNG.integers(0, 20, (2, 6)).astype(np.int32)
    tables = [made(20, 16), made(9, 16), made(2, 16) if segments else None, made(16), made(16)]
    scales = [np.array(s, np.float32) for s in (0.02, 0.03, 0.04, 0.01, 0.05)]
    zeros = [np.array(z, kind) for z in (3, 7, 100, 60, 5)]
    if not segments:
        scales[2] = zeros[2] = None
    inputs = [
        *(words, RNG.integers(0, 2, (2, 6)).astype(np.int32) if segments else None, *tables),
        *(RNG.integers(0, 2, (2, 6)).astype(np.int32) if mask else None, *scales, *zeros),
    ]
    return Case(name, "QEmbedLayerNormalization", inputs, {"epsilon": 1e-6}, outputs=2, tolerance=1e-4)


WORDS = RNG.integers(1, 20, (5, 7)).astype(np.int32)
WORDS[0, 4:] = WORDS[1, 1:] = WORDS[2, 2] = WORDS[3, 6] = 0


def _words(name: str, width: int, **attributes: int) -> Case:
    return Case(name, "WordConvEmbedding", [WORDS, f32(4, 1, width, 5), f32(4), f32(20, 5)], attributes)


def _tokens(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int64)


def _attn_lstm(name: str, *more: str, way: str = "forward", **attributes: Any) -> Case:
    steps, batch, size, hidden, places, depth, fit = 4, 3, 5, 6, 7, 3, 2
    ways, read = (2 if way == "bidirectional" else 1), 4 if "layer" in more else depth
    known = {
        "lengths": np.array([4, 2, 3], np.int32),
        "h": f32(ways, batch, hidden),
        "c": f32(ways, batch, hidden),
        "peepholes": f32(ways, 3 * hidden),
    }
    inputs = [
        *(f32(steps, batch, size), f32(ways, 4 * hidden, size + read), f32(ways, 4 * hidden, hidden)),
        *(f32(ways, 8 * hidden), *(known[key] if key in more else None for key in known)),
        *(f32(ways, hidden, fit), f32(ways, depth, fit), f32(ways, fit), f32(batch, places, depth)),
        np.array([5, 7, 1], np.int32) if "memory" in more else None,
        f32(ways, depth + hidden, read) if "layer" in more else None,
    ]
    attributes = {"hidden_size": hidden, "direction": way, **attributes}
    return Case(f"{name} {way}".strip(), "AttnLSTM", inputs, attributes, outputs=3, tolerance=1e-4)


def _moved(pads: list[int]) -> Case:
    inputs = [f32(1, 3, 5, 6), f32(3, 2, 3, 3), np.array(pads, np.int64), f32(2)]
    return Case(f"pads {pads}", "ConvTransposeWithDynamicPads", inputs, {"strides": [2, 2]})


def _quantized(last: int) -> Case:
    x = u8(1, 6, 5, 4) if last else u8(1, 4, 6, 5)
    inputs = [x, *step(0.02, 117), i8(6, 4, 3, 3), *step(0.01, 0, np.int8), *step(0.4, 100)]
    return Case(f"channels last {last}", "QLinearConv", inputs, {"channels_last": last, "pads": [1, 1, 1, 1]})


def _fp_q4(name: str, rows: tuple[int, ...], k: int, n: int, kind: int) -> Case:
    blocks, has_zero = -(-k // 32), kind != 0
    packed = u8(n, blocks, 4 + has_zero + 16)
    packed[..., :4] = f32(n, blocks, 1).view(np.uint8)
    if has_zero:
        packed[..., 4] &= 15
    inputs = [f32(*rows, k), packed.reshape(-1), _tokens(k, n)]
    return Case(name, "MatMulFpQ4", inputs, {"blk_quant_type": kind}, expected=_fp_q4_product)


def _fp_q4_product(a: Any, packed: Any, shape: Any) -> Any:
    """In plain numpy: native has it only on CPUs with AVX-512. A block's second half is in the high bits."""
    k, n = shape
    blocks = packed.reshape(n, -(-k // 32), -1)
    scales = np.ascontiguousarray(blocks[..., :4]).view(np.float32)
    zeros = blocks[..., 4:5].astype(np.float32) if blocks.shape[-1] > 20 else np.float32(8)
    numbers = np.concatenate([blocks[..., -16:] & 15, blocks[..., -16:] >> 4], -1)
    return [a @ (scales * (numbers - zeros)).reshape(n, -1)[:, :k].T]


def _grouped(name: str, k: int, zeros: Any = None, *, bits: int = 4, alike: bool = True, **attributes: Any) -> Case:
    """MatMulNBits with g_idx: groups of one length, in any order, or of any length."""
    n, block, blocks = 6, 16, -(-k // 16)
    groups = RNG.permutation(np.repeat(np.arange(blocks), block)[:k]) if alike else RNG.integers(0, blocks, k)
    points = {None: None, np.uint8: u8(n * -(-blocks * bits // 8)), np.float32: RNG.integers(0, 16, n * blocks)}[zeros]
    inputs = [f32(3, k), u8(n, blocks, block * bits // 8), np.abs(f32(n * blocks))]
    inputs += [None if points is None else points.astype(zeros), groups.astype(np.int32), f32(n)]
    # Natively other bits fail, and zero points of bytes count as 8.
    expected = _grouped_product if bits != 4 or zeros == np.uint8 else None
    sizes = {"K": k, "N": n, "bits": bits, "block_size": block, **attributes}
    return Case(name, "MatMulNBits", inputs, sizes, expected=expected, tolerance=1e-4)


def _grouped_product(a: Any, packed: Any, scales: Any, zeros: Any, groups: Any, bias: Any) -> Any:
    n, k = len(packed), a.shape[1]
    bits = packed.shape[-1] // 2

    def numbers(of: Any) -> Any:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        return (of.reshape(n, -1, 1) >> shifts & (1 << bits) - 1).reshape(n, -1).astype(np.float32)

    points = np.full((n, packed.shape[1]), 1 << bits - 1) if zeros is None else numbers(zeros)
    return [a @ ((numbers(packed)[:, :k] - points[:, groups]) * scales.reshape(n, -1)[:, groups]).T + bias]


GROUPED = [
    _grouped("", 64),
    _grouped("the last group is shorter", 72),
    _grouped("zero points of floats", 72, np.float32),
    _grouped("zero points of bytes", 72, np.uint8),
    _grouped("rows are not rounded", 64, accuracy_level=4),
    *(_grouped(f"{bits} bits", 72, np.uint8, bits=bits) for bits in (2, 8)),
    _grouped("groups of other lengths", 64, alike=False),
    _grouped("groups of other lengths, zero points of floats", 72, np.float32, alike=False),
]


ATTENTION_LSTMS = [
    _attn_lstm(""),
    _attn_lstm("with all", "lengths", "h", "c", "peepholes", "memory", "layer", clip=0.8),
    _attn_lstm("", "lengths", way="reverse"),
    _attn_lstm(
        "with all", "lengths", "h", "c", "peepholes", "memory", "layer", way="bidirectional",
        activations=["HardSigmoid", "Tanh", "Tanh", "Sigmoid", "LeakyRelu", "Tanh"],
        activation_alpha=[0.3, 0.2], activation_beta=[0.4],
    ),
    *(
        _attn_lstm(
            f"with {of or 'no'} numbers", "h", "c", way="bidirectional",
            activations=["HardSigmoid", "Elu", "LeakyRelu", "Sigmoid", "ThresholdedRelu", "ScaledTanh"],
            activation_alpha=[0.3, 0.7][:of] or None,
        )
        for of in (0, 2)
    ),
]  # fmt: skip


CASES = [
    _words("", 3),
    _words("of two characters", 2, embedding_size=4, conv_window_size=2, char_embedding_size=5),
    _words("of all characters", 7),
    _bnb4("FP4", (3,), 32, 6, 16, 0),
    _bnb4("NF4", (2, 5), 64, 12, 64, 1),
    _bnb4("blocks across columns", (1,), 16, 8, 32, 1),
    _bnb4("transposed", (3,), 32, 6, 16, 1, 0),
    _bnb4("the last block is not full", (2,), 24, 7, 64, 1),
    _bnb4("an odd number of weights", (2,), 33, 17, 16, 0),
    _crop("", (4, 5)),
    _crop("with a value outside", (11, 9), extrapolation_value=2.5),
    _crop("of one", (1, 3)),
    _crop("nearest", (4, 1), mode="nearest", extrapolation_value=1.0),
    *(Case(name, "CDist", [f32(7, 5), f32(4, 5)], {"metric": name}, fed=2) for name in ("sqeuclidean", "euclidean")),
    _fp_q4("", (3,), 64, 6, 0),
    _fp_q4("with zero points", (2, 3), 96, 5, 1),
    _fp_q4("a block that is not full", (1,), 40, 3, 1),
    Case("", "UnfoldTensor", [f32(3, 10)], {"size": 4, "step": 3}),
    Case("of an inner axis", "UnfoldTensor", [f32(2, 9, 3)], {"size": 2, "step": 2, "dim": 1}),
    Case("of integers", "UnfoldTensor", [RNG.integers(-9, 9, (8, 3)).astype(np.int32)], {"size": 3, "dim": 0}),
    *(_moved(pads) for pads in ([0, 0, 0, 0], [1, 0, 1, 2])),
    Case("", "NhwcMaxPool", [u8(1, 6, 7, 3)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("of int8", "NhwcMaxPool", [i8(2, 5, 5, 4)], {"kernel_shape": [2, 2]}),
    *(_quantized(last) for last in (0, 1)),
    Case("", "MatMulInteger16", [(f32(2, 3, 4) * 99).astype(np.int16), (f32(4, 5) * 99).astype(np.int16)], {}),
    Case("", "SampleOp", [f32(3, 4)], {}),
    *GROUPED,
    *(_embeddings(kind.__name__, kind) for kind in (np.uint8, np.int8)),
    _embeddings("without segments and mask", np.uint8, False, False),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, new_session, provider):
    check(case, new_session, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", ATTENTION_LSTMS, ids=str)
def test_attention_lstm(case, new_session, provider):
    check(case, new_session, provider, whole=False)


def _mask(*shape: int) -> np.ndarray:
    return (RNG.random(shape) > 0.3).astype(np.int32)


def _pool(name: str, mask: tuple[int, ...], kernel: list[int], **attributes: Any) -> Case:
    inputs = [f32(2, 3, *mask[2:]), _mask(*mask)]
    return Case(name, "MaxpoolWithMask", inputs, {"kernel_shape": kernel, **attributes}, fed=2)


def _detect(
    name: str, source: np.ndarray, written: np.ndarray, place: int, *more: np.ndarray, most: int | None = 3
) -> Case:
    inputs = [source, written, _tokens(place), *more]
    sizes = {} if most is None else {"min_ngram_size": 1, "max_ngram_size": most}
    return Case(name, "BifurcationDetector", inputs, sizes, outputs=2, fed=4)


def _hashes(name: str, kind: Any = np.int64, *, packed: bool = False, outputs: int = 2, **given: Any) -> Case:
    """Of two rows, or of rows one after the other (packed), whose offsets are another input."""
    largest, whole = np.iinfo(kind).max, ("past", "offsets", "eos")

    def read(key: str) -> np.ndarray | None:
        return None if given.get(key) is None else given[key].astype(kind if key in whole else np.int32)

    inputs = [RNG.integers(0, 5, 12 if packed else (2, 6)), RNG.integers(largest // 4, largest // 2, 3)]
    inputs = [x.astype(kind) for x in (*inputs, np.array([11, 13, 1009, 7]))]
    inputs += [np.array([0, 1, 7, 12], np.int32)] if packed else []
    inputs += [read(key) for key in (*whole, "segments", *(("before", "capture") if packed else ()))]
    attributes = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 9, "reset_on_eos": given.get("resets", 0)}
    if given.get("capture") is not None:
        attributes["state_update_capacity"] = 3
    return Case(name, "VarlenNGramHashMapping" if packed else "NGramHashMapping", inputs, attributes, outputs=outputs)


def _murmur(kind: str, x: np.ndarray, seed: int, positive: int) -> Case:
    return Case(kind, "MurmurHash3", [x], {"seed": seed, "positive": positive})


PAST, OFFSETS, SEGMENTS = _tokens(3, 2, 1, 3).reshape(2, 2), _tokens(0, 11, 24, 1033), np.arange(12).reshape(2, 6) // 4
PACKED = {"packed": True, "past": _tokens(3, 2, 1, 3, 2, 2).reshape(3, 2)}
END = _tokens(2).reshape(())
WITH_ALL = PACKED | {
    **{"offsets": OFFSETS, "eos": END, "resets": 1, "segments": np.arange(12) // 3},
    **{"before": _tokens(0, 0, 0, 1, 2, 2).reshape(3, 2), "capture": _tokens(2, 9, -1)},
}

ON_THE_CPU = [
    _pool("of one axis", (1, 1, 9), [3], pads=[1, 1]),
    _pool("of one axis, a mask for each channel", (2, 3, 9), [3], strides=[2]),
    _pool("of two axes", (1, 1, 6, 7), [2, 3], strides=[2, 1], pads=[1, 1, 0, 1]),
    _pool("of two axes, a mask for each image", (2, 1, 5, 4), [3, 3], auto_pad="SAME_UPPER", strides=[2, 2]),
    _pool("of three axes", (1, 1, 4, 5, 3), [2, 2, 2]),
    _detect("without a prediction", _tokens(4, 5, 6, 5, 8), _tokens(1, 6, 5), 2),
    _detect("all predicted", _tokens(4, 5, 6, 7), _tokens(1, 5), 2, _tokens(6, 7, 9)),
    _detect("none predicted", _tokens(4, 5, 6, 7), _tokens(1, 5), 2, _tokens(5, 1, 1)),
    _detect("many", _tokens(4, 5, 4, 5, 8), _tokens(1), 2, _tokens(4, 5, 4, 3), most=2),
    _detect("at the end", _tokens(4, 5, 6, 7), _tokens(6, 7), 4, _tokens(7)),
    _detect("by itself", _tokens(4, 5, 4, 5, 8), _tokens(1), 2, _tokens(4, 5, 4, 3), most=None),
    _detect("empty", _tokens(), _tokens(1), 0, _tokens(7)),
    _hashes("", outputs=1),
    _hashes("of int32", np.int32),
    _hashes("behind others", past=PAST),
    _hashes("with an end", eos=END),
    _hashes("with an end that resets", eos=END, resets=1),
    _hashes("with all", np.int32, past=PAST, offsets=OFFSETS, eos=END, segments=SEGMENTS, resets=1),
    _hashes("of segments", segments=SEGMENTS, past=PAST),
    _hashes("", outputs=1, packed=True),
    _hashes("of int32", np.int32, **PACKED),
    _hashes("of segments", segments=np.arange(12) // 3, outputs=3, packed=True),
    _hashes("with all", outputs=4, **WITH_ALL),
    _murmur("int32", np.array([3, -4, 0], np.int32), 0, 1),
    _murmur("int64", np.array([3, -4, 2**40]), 42, 0),
    _murmur("float32", f32(2, 3), 7, 1),
    _murmur("float64", f32(5).astype(np.float64), 0, 1),
    _murmur("string", np.array(["", "a", "ab", "abc", "abcd", "naïve text"], object), 5, 0),
    Case("", "DynamicTimeWarping", [np.abs(f32(6, 9))], {}),
    Case("of one batch", "DynamicTimeWarping", [np.abs(f32(1, 8, 3))], {}),
    Case("ties", "DynamicTimeWarping", [np.ones((5, 7), np.float32)], {}),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", ON_THE_CPU, ids=str)
def test_equals_native_on_the_cpu(case, new_session, provider):
    """The GPU has no kernel for these: they run on wasm, and placements say so."""
    check(case, new_session, provider, whole=False)


def test_words_without_characters(new_session, provider):
    """They are zeros, even if valid characters follow an invalid first one; native leaves them uninitialized."""
    case = _words("", 3)
    words = WORDS.copy()
    words[1] = words[3, 0] = 0
    model, _ = case.model()
    (found,) = new_session(model, providers=PROVIDERS[provider]).run(None, {"x0": words})
    (wanted,) = case.wanted()
    assert not found[[1, 3]].any()
    np.testing.assert_allclose(found[[0, 2, 4]], wanted[[0, 2, 4]], rtol=2e-5, atol=2e-5)


def test_other_metrics_are_refused(new_session):
    model, _ = Case("", "CDist", [f32(3, 4), f32(5, 4)], {"metric": "cosine"}).model()
    with pytest.raises(NotImplemented, match="CDist by 'cosine'"):
        new_session(model, providers=["wasm"])


@pytest.mark.parametrize("fed", [5, 1])
def test_groups_that_are_fed_or_are_none(new_session, fed):
    case = GROUPED[0]
    inputs = list(case.inputs)
    if fed == 1:
        inputs[4] = inputs[4] + np.int32(1)
    model, _ = Case("", case.op, inputs, case.attributes, fed=fed).model()
    with pytest.raises(NotImplemented if fed > 1 else InvalidGraph, match="g_idx"):
        new_session(model, providers=["wasm"])
