"""Operators by which decoders run token by token, on both providers."""

import numpy as np
import pytest
from contributed_cases import Case, Draws, check
from native import native_session

from py_ort.exceptions import NotImplemented

_DRAWS = Draws()
RNG, f32 = _DRAWS.rng, _DRAWS.f32

_ONE = "DecoderMaskedMultiHeadAttention"
_ROWS, _CACHES = [f32(2, 1, 24) for _ in range(3)], [f32(2, 3, 6, 8) for _ in range(2)]
_SHARED = {"num_heads": 3, "past_present_share_buffer": 1}
_MASK = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 1]], np.int32)
_BEAMS = RNG.integers(0, 2, (1, 2, 6)).astype(np.int32)
_FOUR, _TWO = np.array([4], np.int32), np.array([2], np.int32)

CASES = [
    Case("", "NGramRepeatBlock", [np.array([[1, 2, 3, 1, 2]]), f32(1, 6)], {"ngram_size": 3}, fed=2),
    Case("", _ONE, [*_ROWS, None, None, *_CACHES, _FOUR], _SHARED, outputs=3, fed=6),
    Case(
        "with everything",
        _ONE,
        [*_ROWS, _MASK, f32(1, 3, 1, 5), *_CACHES, _FOUR, None, None, f32(72)],
        {**_SHARED, "scale": 0.4, "mask_filter_value": -2.0},
        outputs=3,
        fed=8,
    ),
    Case("beams", _ONE, [*_ROWS, None, None, *_CACHES, _FOUR, _TWO, _BEAMS], _SHARED, outputs=3, fed=8),
    Case("cross", _ONE, [f32(2, 1, 24), *_CACHES, _MASK[:, [0, 1, 2, 3, 4, 1]]], {"num_heads": 3}, fed=4),
    Case("cross, with a bias", _ONE, [f32(2, 1, 24), *_CACHES, *[None] * 7, f32(72)], {"num_heads": 3}, fed=3),
]


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, provider, new_session):
    """All of it on the provider."""
    check(case, new_session, provider)


@pytest.mark.parametrize(
    "inputs",
    [[f32(2, 1, 72), None, None, None, None, *_CACHES, _FOUR], [*_ROWS, None, None, *_CACHES]],
    ids=["packed", "caches that grow"],
)
def test_what_native_refuses(inputs, new_session):
    """Forms that onnxruntime has only on GPUs."""
    model, _ = Case("", _ONE, inputs, {"num_heads": 3}, outputs=3, fed=9).model()
    with pytest.raises(NotImplemented, match=_ONE):
        new_session(model, providers=["webgpu", "wasm"])


def test_outputs_without_names(provider, new_session):
    """They are unwanted, as if they were missing."""
    case = CASES[-2]
    model, feeds = case.model()
    model.graph.node[0].output.extend(["", ""])
    (found,) = new_session(model, providers=[provider]).run(None, feeds)
    np.testing.assert_allclose(found, case.wanted()[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("case", CASES[-2:], ids=str)
def test_scores_of_cross_attention(case, provider, new_session):
    """They are masked and scaled, before the softmax."""
    for attributes in ({}, {"scale": 0.4, "mask_filter_value": -2.0}):
        asked = Case(
            case.name, case.op, case.inputs, {**case.attributes, **attributes, "output_qk": 1}, 4, fed=case.fed
        )
        model, feeds = asked.model()
        node = model.graph.node[0]
        node.output[:] = [node.output[0], "", "", node.output[3]]
        del model.graph.output[1:3]
        model.graph.output[1].type.tensor_type.elem_type = 1  # native infers another type
        source = model.SerializeToString()
        wanted = native_session(source).run(None, feeds)
        found = new_session(source, providers=[provider]).run(None, feeds)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES[1:4], ids=str)
def test_scores_of_self_attention(case, new_session):
    """The CPU kernel of MultiHeadAttention returns them."""
    model, feeds = Case(case.name, case.op, case.inputs, {**case.attributes, "output_qk": 1}, 4, fed=case.fed).model()
    model.graph.output[3].type.tensor_type.elem_type = 1  # native infers another type
    source = model.SerializeToString()
    found = new_session(source, providers=["wasm"]).run(None, feeds)
    for a, b in zip(found, native_session(source).run(None, feeds), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
