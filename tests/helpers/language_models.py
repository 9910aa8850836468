"""Small decoders with random weights, in exporters' forms, and a plain loop over native onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from decoder_texts import ATTENDED, EMBEDDED, PROJECTED
from native import native_session
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HEADS, KV_HEADS, SIZE, LAYERS, PLACES = 48, 4, 2, 16, 2, 4096
WIDTH = HEADS * SIZE

_GROWING_LAYER = f"""{PROJECTED}
   key# = Concat<axis = 2>(past_key_#, kt#)
   value# = Concat<axis = 2>(past_value_#, vt#)
   present_key_# = Identity(key#)
   present_value_# = Identity(value#)
{ATTENDED}"""
#: In the form of onnxruntime-genai's builder: lengths of the mask, rotary embeddings in the operator.
_GROUPED = """
   x0 = Gather(tokens, input_ids)
   axis = Constant<value_ints = [1]>()
   mask32 = Cast<to = 6>(attention_mask)
   seen = ReduceSum<keepdims = 0>(mask32, axis)
   one32 = Cast<to = 6>(axis)
   seqlens = Sub(seen, one32)
   columns = Shape<start = 1, end = 2>(attention_mask)
   total64 = Squeeze(columns)
   total = Cast<to = 6>(total64)
"""
_GROUPED_LAYER = """
   q# = MatMul(x#, wq#)
   k# = MatMul(x#, wk#)
   v# = MatMul(x#, wv#)
   joined#, present_key_#, present_value_# = com.microsoft.GroupQueryAttention
     <num_heads = 4, kv_num_heads = 2, do_rotary = 1>(q#, k#, v#, past_key_#, past_value_#, seqlens, total, cos, sin)
   out# = MatMul(joined#, wo#)
   sum# = Add(x#, out#)
   x@ = Tanh(sum#)
"""


def language_model(
    kind: str, dtype: Any = np.float32, seed: int = 0, room: int | str = "past", vocabulary: int = VOCABULARY
) -> onnx.ModelProto:
    """Return a decoder by transformers' names.

    Args:
        kind: "growing" (Concat, position_ids), or "grouped" (GroupQueryAttention, without position_ids).
        dtype: Dtype of weights, caches and logits.
        seed: Seed of the weights.
        room: Length of the input caches: a symbol, or with "grouped" a number.
        vocabulary: Number of tokens.
    """
    growing = kind == "growing"
    head, layer = (EMBEDDED, _GROWING_LAYER) if growing else (_GROUPED, _GROUPED_LAYER)
    heads = HEADS if growing else KV_HEADS
    layers = "".join(layer.replace("#", str(i)).replace("@", str(i + 1)) for i in range(LAYERS))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>'
        f"decoder () => () {{ {head} {layers} logits = MatMul(x{LAYERS}, head) }}"
    )
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = model.graph
    _rename(graph)
    if growing and dtype != np.float32:
        next(node for node in graph.node if node.output[0] == "seen").attribute[0].i = element
    graph.initializer.extend(_weights(growing, dtype, seed, vocabulary))
    info = helper.make_tensor_value_info
    cache = ["batch", heads, room, SIZE]
    graph.input.append(info("input_ids", TensorProto.INT64, ["batch", "rows"]))
    graph.input.append(info("attention_mask", TensorProto.INT64, ["batch", "all"]))
    if growing:
        graph.input.append(info("position_ids", TensorProto.INT64, ["batch", "rows"]))
    graph.output.append(info("logits", element, ["batch", "rows", vocabulary]))
    for i in range(LAYERS):
        for part in ("key", "value"):
            graph.input.append(info(f"past_key_values.{i}.{part}", element, cache))
            graph.output.append(
                info(f"present.{i}.{part}", element, ["batch", heads, "all" if room == "past" else room, SIZE])
            )
    return model


def _rename(graph: onnx.GraphProto) -> None:
    """The parser does not accept dots in names."""
    for node in graph.node:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                when, _, rest = name.partition("_")
                if when in ("past", "present") and rest[:3] in ("key", "val"):
                    part, _, layer = rest.partition("_")
                    names[i] = f"{'past_key_values' if when == 'past' else when}.{layer}.{part}"


def _weights(growing: bool, dtype: Any, seed: int, vocabulary: int) -> list[onnx.TensorProto]:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    narrow = WIDTH if growing else KV_HEADS * SIZE
    angles = np.arange(PLACES)[:, None] / 10 ** np.linspace(0, 3, SIZE // 2)
    values = {
        "tokens": random(vocabulary, WIDTH),
        "head": random(WIDTH, vocabulary),
        **{f"w{part}{i}": random(WIDTH, WIDTH) * dtype(0.25) for i in range(LAYERS) for part in "qo"},
        **{f"w{part}{i}": random(WIDTH, narrow) * dtype(0.25) for i in range(LAYERS) for part in "kv"},
    }
    if growing:
        values |= {
            "places": random(PLACES, WIDTH) / dtype(2),
            "one": np.array(1, dtype),
            "low": np.array(-10000, dtype),
            "scale": np.array(SIZE**-0.5, dtype),
            "heads": np.array([0, 0, HEADS, SIZE]),
            "width": np.array([0, 0, WIDTH]),
        }
    else:
        values |= {"cos": np.cos(angles).astype(dtype), "sin": np.sin(angles).astype(dtype)}
    return [numpy_helper.from_array(value, name) for name, value in values.items()]


def native_greedy(model: onnx.ModelProto, prompt: Sequence[int], count: int, penalty: float = 1.0) -> list[int]:
    """Choose the likeliest token each time, by native onnxruntime, with growing caches."""
    session = native_session(model)
    names = [arg.name for arg in session.get_inputs()]
    types = {arg.name: (arg.type, arg.shape) for arg in session.get_inputs()}
    caches = {
        name: np.zeros([1, shape[1], 0, shape[3]], np.float16 if "16" in kind else np.float32)
        for name, (kind, shape) in types.items()
        if name.startswith("past")
    }
    ids, seen, made = list(prompt), list(prompt), []
    while len(made) < count:
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, len(seen)), np.int64)}
        if "position_ids" in names:
            feeds["position_ids"] = np.arange(len(seen) - len(ids), len(seen))[None]
        logits, *presents = session.run(None, {**feeds, **caches})
        caches = dict(zip(caches, presents, strict=True))
        scores = logits[0, -1].astype(np.float64)
        for token in set(seen):
            scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
        ids = [int(np.argmax(scores))]
        made += ids
        seen += ids
    return made


def check_greedy(session: Any, model: onnx.ModelProto, prompt: Sequence[int], count: int) -> Any:
    """Generate, and assert that the tokens are native onnxruntime's; return the generation."""
    found = session.generate(list(prompt), max_new_tokens=count, timeout=60)
    assert found.result() == native_greedy(model, prompt, count)
    return found
