"""GreedySearch and BeamSearch with their decoder inside, compared with onnxruntime, on both providers."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from array_models import any_size, model_of
from native import native_session
from onnx import helper
from small_decoder import VOCABULARY, small_decoder
from small_t5 import WIDTH, small_t5, small_whisper

from py_ort.exceptions import NotImplemented

PROVIDERS = {"webgpu": ["webgpu", "wasm"], "wasm": ["wasm"]}
PAD, EOS, LENGTH = 1, 3, 12
RNG = np.random.default_rng(7)
PROMPTS = RNG.integers(4, VOCABULARY, (3, 4)).astype(np.int32)
PROMPTS[0, :2] = PAD
ORDER = {
    "GreedySearch": (
        *("input_ids", "max_length", "min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask"),
        "attention_mask",
    ),
    "BeamSearch": (
        *("input_ids", "max_length", "min_length", "num_beams", "num_return_sequences", "length_penalty"),
        *("repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask", "decoder_input_ids"),
        *("logits_processor", "cross_qk_layer_head", "extra_decoding_ids", "temperature"),
    ),
}
ORDER["Sampling"] = (*ORDER["GreedySearch"], "presence_mask", "seed")
ORDER["WhisperBeamSearch"] = ORDER["BeamSearch"]
BEAMS: dict[str, Any] = {
    "min_length": np.array([1], np.int32),
    "num_beams": np.array([4], np.int32),
    "num_return_sequences": np.array([3], np.int32),
    "length_penalty": np.array([1], np.float32),
}


def some(*shape: int) -> np.ndarray:
    """A mask that keeps a part of the vocabulary."""
    return RNG.integers(0, 2, shape).astype(np.int32)


#: Additions of each to the inputs, and to the attributes.
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "least length": ({"min_length": np.array([9], np.int32)}, {}),
    "repetitions": ({"repetition_penalty": np.array([1.7], np.float32)}, {}),
    "vocabulary": ({"vocab_mask": some(VOCABULARY)}, {}),
    "first word": ({"prefix_vocab_mask": some(3, VOCABULARY)}, {}),
    "mask": ({"attention_mask": np.array([[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]], np.int32)}, {}),
    "pairs": ({}, {"no_repeat_ngram_size": 2}),
}
BEAM_VARIANTS = {
    "long": ({"length_penalty": np.array([2], np.float32)}, {}),
    "short": ({"length_penalty": np.array([-0.5], np.float32)}, {}),
    "one": ({"num_beams": np.array([1], np.int32), "num_return_sequences": np.array([1], np.int32)}, {}),
}


def search(
    op: str, feeds: dict[str, np.ndarray], attributes: dict[str, Any], count: int | None = None
) -> onnx.ModelProto:
    """A search with `count` outputs, by default all that tests compare."""
    outputs = ["sequences", "sequences_scores", "scores"]
    outputs = outputs[: (1 if op in ("GreedySearch", "Sampling") else 2) if count is None else count]
    names = [name if name in feeds else "" for name in ORDER[op]]
    while not names[-1]:
        names.pop()
    given = {"decoder": small_decoder(0), "eos_token_id": EOS, "pad_token_id": PAD, "model_type": 0, **attributes}
    node = helper.make_node(op, names, outputs, name="search", domain="com.microsoft", **given)
    return model_of([node], feeds, outputs, opset=17, sizes=any_size(feeds))


def native(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return native_session(model, options).run(None, feeds)


def feeds_of(op: str, variant: str, **more: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    inputs, attributes = (VARIANTS | BEAM_VARIANTS)[variant]
    beams = {} if op in ("GreedySearch", "Sampling") else BEAMS
    return {"input_ids": PROMPTS, "max_length": np.array([LENGTH], np.int32), **beams, **inputs, **more}, attributes


def _on(provider: str, variants: Iterable[str]) -> list[tuple[str, str]]:
    return [(variant, provider) for variant in variants]


@pytest.fixture
def searched(new_session):
    """Run a search; return its model and its outputs."""

    def run(op, feeds, attributes, provider="wasm", count=None):
        model = search(op, feeds, attributes, count)
        with new_session(model, providers=PROVIDERS[provider]) as session:
            return model, session.run(None, feeds)

    return run


def _same_tokens(model: onnx.ModelProto, feeds: dict[str, np.ndarray], found: list[np.ndarray], least: int = 0) -> None:
    """The same tokens; onnxruntime leaves those after the last one of all rows undefined."""
    (found,), (wanted,) = found, native(model, feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    last = int(np.flatnonzero((found != PAD).any(0))[-1]) + 1  # later columns are padding in all rows
    assert last > least
    np.testing.assert_array_equal(found[:, :last], wanted[:, :last])


def _as_alone(model: onnx.ModelProto, feeds: dict[str, np.ndarray], found: list[np.ndarray]) -> None:
    """Each text of the batch has onnxruntime's result for it alone."""
    texts, scores = found
    for i in range(len(PROMPTS)):
        alone = {name: x[i : i + 1] if x.ndim > 1 and len(x) == len(PROMPTS) else x for name, x in feeds.items()}
        (wanted,), (wanted_scores,) = native(model, alone)
        np.testing.assert_array_equal(texts[i], wanted)
        np.testing.assert_allclose(scores[i], wanted_scores, rtol=2e-5, atol=2e-5)
    assert (texts.dtype, scores.dtype) == (np.int32, np.float32)


@pytest.mark.parametrize(("variant", "provider"), [*_on("wasm", VARIANTS), *_on("webgpu", ("pairs", "first word"))])
def test_greedy(variant, provider, searched):
    feeds, attributes = feeds_of("GreedySearch", variant)
    model, found = searched("GreedySearch", feeds, attributes, provider)
    _same_tokens(model, feeds, found)


#: Additions of each to the inputs, and to the attributes.
SAMPLING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "all": ({}, {"top_p": 1.0}),
    "likely": ({}, {"top_p": 0.7, "temperature": 3.0}),
    "unseeded": ({"seed": None}, {"top_p": 0.9, "temperature": 5.0}),
    "custom": ({}, {"top_p": 0.7, "temperature": 3.0, "custom": 1}),
    "nothing likely": ({}, {"top_p": 0.0, "min_tokens_to_keep": 4}),
    "filtered by a score": ({}, {"top_p": 0.3, "filter_value": -1.0}),
    "with all": (
        {
            "min_length": np.array([7], np.int32),
            "repetition_penalty": np.array([1.3], np.float32),
            "vocab_mask": np.array([1, 0] * (VOCABULARY // 2), np.int32),
            "prefix_vocab_mask": np.tile([0, 0, 1, 1, 1], (3, VOCABULARY // 5)).astype(np.int32),
        },
        {"top_p": 0.8, "temperature": 4.0, "no_repeat_ngram_size": 2},
    ),
}


@pytest.mark.parametrize(("variant", "provider"), [*_on("wasm", SAMPLING), *_on("webgpu", ("likely",))])
def test_sampling(variant, provider, searched):
    """Exactly the tokens that onnxruntime draws."""
    inputs, attributes = SAMPLING[variant]
    feeds, _ = feeds_of("Sampling", "plain", **{"seed": np.array([5], np.int32), **inputs})
    feeds = {name: x for name, x in feeds.items() if x is not None}
    model, found = searched("Sampling", feeds, attributes, provider)
    _same_tokens(model, feeds, found, least=PROMPTS.shape[1] + 2)


def test_presence(searched):
    """The penalty is that of the mask's tokens (onnxruntime's CPU uses the first token's for all)."""
    mask = np.tile((np.arange(VOCABULARY) >= 5).astype(np.int32), (3, 1))
    feeds, _ = feeds_of("Sampling", "plain", presence_mask=mask)
    _, (found,) = searched("Sampling", feeds, {"top_p": 1.0, "presence_penalty": 100.0})
    assert found[:, PROMPTS.shape[1] :].max() < 5


@pytest.mark.parametrize("op", ["GreedySearch", "Sampling", "BeamSearch"])
def test_another_decoder_first(op, searched):
    """The prompt is read by init_decoder."""
    feeds, _ = feeds_of(op, "first word")
    attributes = {"init_decoder": small_decoder(1)} | ({"top_p": 0.9} if op == "Sampling" else {})
    model, found = searched(op, feeds, attributes)
    (_as_alone if op == "BeamSearch" else _same_tokens)(model, feeds, found)


@pytest.mark.parametrize("attributes", [{}, {"init_decoder": small_decoder(1)}], ids=["", "another decoder first"])
def test_scores_of_each_turn(attributes, searched):
    """Scores of each token after each beam, for the steps that ran; then zeros."""
    feeds, _ = feeds_of("BeamSearch", "plain", input_ids=PROMPTS[1:2])
    model, (*_, found) = searched("BeamSearch", feeds, {**attributes, "early_stopping": 1}, count=3)
    *_, wanted = native(model, feeds)
    assert found.shape == wanted.shape
    turns = int(np.flatnonzero(found.any(axis=(1, 2, 3)))[-1]) + 1
    assert turns > 2
    np.testing.assert_allclose(found[:turns], wanted[:turns], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize(
    ("variant", "provider"), [*_on("wasm", (*VARIANTS, *BEAM_VARIANTS)), *_on("webgpu", ("pairs", "long"))]
)
def test_beams(variant, provider, early, searched):
    """onnxruntime judges by the scores of another text of the batch if a text can still improve, unless it stops
    early: so texts of a batch are compared with each of them alone.
    """
    feeds, attributes = feeds_of("BeamSearch", variant)
    model, found = searched("BeamSearch", feeds, {**attributes, "early_stopping": early}, provider)
    _as_alone(model, feeds, found)


T5 = {
    "new": small_t5(),
    "old": small_t5(old=True),
    "old with states": small_t5(old=True, states=True),
    "pointer": small_t5(pointer=True),
    "old pointer": small_t5(old=True, states=True, pointer=True),
}
T5_ATTRIBUTES = {"model_type": 1, "decoder_start_token_id": 2}
T5_CASES = [
    *(("wasm", "new", variant) for variant in (*VARIANTS, *BEAM_VARIANTS)),
    *(("wasm", "old", variant) for variant in ("plain", "first word", "least length", "mask")),
    *(("wasm", form, "plain") for form in ("old with states", "pointer", "old pointer")),
    ("webgpu", "new", "pairs"),
    ("webgpu", "old with states", "first word"),
]


@pytest.mark.parametrize("early", [0, 1])
@pytest.mark.parametrize(("provider", "form", "variant"), T5_CASES)
def test_t5(provider, form, variant, early, searched):
    """With an encoder, whichever graph runs the decoder's first step; each text as it is alone."""
    feeds, attributes = feeds_of("BeamSearch", variant)
    given = {**attributes, **T5[form], **T5_ATTRIBUTES, "early_stopping": early}
    model, found = searched("BeamSearch", feeds, given, provider)
    _as_alone(model, feeds, found)


def test_whole_texts(searched):
    """A decoder whose input_ids may be of any length receives all tokens of the text; here it reads the last one."""
    feeds, _ = feeds_of("BeamSearch", "plain")
    graphs = {name: onnx.GraphProto.FromString(graph.SerializeToString()) for name, graph in small_t5().items()}
    decoder = graphs["decoder"]
    decoder.input[0].type.tensor_type.shape.dim[1].dim_param = "so_far"
    for node in decoder.node:
        node.input[:] = ["last" if name == "input_ids" else name for name in node.input]
    decoder.node.insert(0, helper.make_node("Gather", ["input_ids", "end"], ["last"], axis=1))
    decoder.initializer.append(onnx.numpy_helper.from_array(np.array([-1]), "end"))
    model, found = searched("BeamSearch", feeds, {**graphs, **T5_ATTRIBUTES, "early_stopping": 1})
    _as_alone(model, feeds, found)


SOUND = np.random.default_rng(3).standard_normal((3, WIDTH, 5)).astype(np.float32)
BEGUN = np.array([[2, 5, 6], [2, 9, 6], [2, 5, 4]], np.int32)
WHISPER = {"model_type": 2, "decoder_start_token_id": 2}
WHISPER_CASES = [
    *(("wasm", "WhisperBeamSearch", True, variant) for variant in ("plain", "pairs", "repetitions", "first word")),
    ("wasm", "BeamSearch", False, "plain"),
    ("wasm", "WhisperBeamSearch", False, "cooler"),
    ("webgpu", "WhisperBeamSearch", True, "pairs"),
]


@pytest.mark.parametrize(("provider", "op", "states", "variant"), WHISPER_CASES)
def test_whisper(provider, op, states, variant, searched):
    """For sound, with the initial tokens of a text; each text as it is alone."""
    cooler = {"temperature": np.array([0.4], np.float32)} if variant == "cooler" else {}
    feeds, attributes = feeds_of(op, "plain" if cooler else variant, input_ids=SOUND, decoder_input_ids=BEGUN, **cooler)
    given = {**attributes, **WHISPER, "early_stopping": 1, **small_whisper(states=states)}
    model, found = searched(op, feeds, given, provider)
    _as_alone(model, feeds, found)


def test_processors_of_scores(new_session):
    """Whisper's rules for times are not supported."""
    more = {"input_ids": SOUND, "decoder_input_ids": BEGUN, "logits_processor": np.array([1], np.int32)}
    feeds, _ = feeds_of("WhisperBeamSearch", "plain", **more)
    with pytest.raises(NotImplemented, match="WhisperBeamSearch"):
        new_session(search("WhisperBeamSearch", feeds, {**WHISPER, **small_whisper()}), providers=["wasm"])


def test_on_the_gpu(new_session):
    """The decoder runs there, except shapes and the loop."""
    session = new_session(search("BeamSearch", *feeds_of("BeamSearch", "pairs")), providers=["webgpu", "wasm"])
    off = {node.reason for node in session.placement().nodes if node.provider == "wasm"}
    assert off <= {"shape arithmetic", "control flow", "between nodes on the CPU", "webgpu: no kernel"}, off


@pytest.mark.parametrize(
    "attributes",
    [{"model_type": 1}, {**small_t5(), **WHISPER}, {**T5_ATTRIBUTES, "encoder": small_t5()["encoder"]}],
    ids=["no encoder", "Whisper", "another decoder"],
)
def test_other_decoders(attributes, new_session):
    """Decoders that we do not know are refused when the session is made."""
    with pytest.raises(NotImplemented, match="BeamSearch"):
        new_session(search("BeamSearch", feeds_of("BeamSearch", "plain")[0], attributes), providers=["wasm"])
