"""An encoder and a decoder like T5's, for searches: two layers, random weights, a vocabulary of 20."""

from __future__ import annotations

import numpy as np
import onnx
from decoder_texts import JOINED, PROJECTED
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HEADS, SIZE, LAYERS = 20, 2, 4, 2
WIDTH = HEADS * SIZE

_ENCODED = """
   e_x = Gather(tokens, encoder_input_ids)
   e_mixed = CumSum(e_x, one_step)
   encoder_hidden_states = Tanh(e_mixed)
"""
_CROSS = """
   ck# = MatMul(encoder_hidden_states, wck#)
   cv# = MatMul(encoder_hidden_states, wcv#)
   ckh# = Reshape(ck#, heads)
   cvh# = Reshape(cv#, heads)
   present_key_cross_# = Transpose<perm = [0, 2, 1, 3]>(ckh#)
   present_value_cross_# = Transpose<perm = [0, 2, 1, 3]>(cvh#)
"""
_BEGIN = """
   e = Gather(tokens, ids)
   length = Shape<start = 2, end = 3>(SELF_KEY)
   place = Gather(places, length)
   x0 = Add(e, place)
   seen = Cast<to = 1>(encoder_attention_mask)
   hidden = Sub(one, seen)
   masked = Mul(hidden, low)
   middle = Constant<value_ints = [1, 2]>()
   mask = Unsqueeze(masked, middle)
"""
_LAYER = f"""{PROJECTED}
   present_key_self_# = Concat<axis = 2>(PAST_KEY#, kt#)
   present_value_self_# = Concat<axis = 2>(PAST_VALUE#, vt#)
   transposed# = Transpose<perm = [0, 1, 3, 2]>(present_key_self_#)
   scores# = MatMul(qt#, transposed#)
   weights# = Softmax<axis = -1>(scores#)
   found# = MatMul(weights#, present_value_self_#)
   cturned# = Transpose<perm = [0, 1, 3, 2]>(CROSS_KEY#)
   cscores# = MatMul(qt#, cturned#)
   cbiased# = Add(cscores#, mask)
   cweights# = Softmax<axis = -1>(cbiased#)
   cfound# = MatMul(cweights#, CROSS_VALUE#)
   both# = Add(found#, cfound#)
   back# = Transpose<perm = [0, 2, 1, 3]>(both#)
{JOINED}"""


def _layers(text: str, **names: str) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return "".join(text.replace("#", str(i)).replace("@", str(i + 1)) for i in range(LAYERS))


def _constants(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "tokens": random(VOCABULARY, WIDTH),
        "places": random(64, WIDTH) / 2,
        "head": random(WIDTH, VOCABULARY) * 2,
        "one": np.array(1, np.float32),
        "one_step": np.array(1),
        "low": np.array(-10000, np.float32),
        "heads": np.array([0, 0, HEADS, SIZE]),
        "width": np.array([0, 0, WIDTH]),
        **{
            f"w{part}{i}": random(WIDTH, WIDTH) * np.float32(0.6)
            for i in range(LAYERS)
            for part in ("q", "k", "v", "o", "ck", "cv")
        },
        "no_past": np.zeros((1, HEADS, 0, SIZE), np.float32),
    }


def _graph(name: str, text: str, inputs: dict[str, list], outputs: dict[str, list], seed: int) -> onnx.GraphProto:
    graph = onnx.parser.parse_graph(f"{name} () => () {{ {text} }}")
    read = {value for node in graph.node for value in node.input}
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in _constants(seed).items() if name in read
    )
    made = helper.make_tensor_value_info
    for target, values in ((graph.input, inputs), (graph.output, outputs)):
        for name, shape in values.items():
            whole = name.endswith(("ids", "mask"))
            target.append(made(name, TensorProto.INT32 if whole else TensorProto.FLOAT, shape))
    return graph


def _caches(name: str, positions: str) -> dict[str, list]:
    """Shapes of caches whose names end in the layer's number."""
    shape = ["batch", HEADS, positions, SIZE]
    return {name.format(kind) + str(i): shape for i in range(LAYERS) for kind in ("key", "value")}


def small_t5(
    seed: int = 0, *, old: bool = False, states: bool = False, pointer: bool = False
) -> dict[str, onnx.GraphProto]:
    """Graphs of opset 17: `encoder` and `decoder`.

    Args:
        seed: Seed of the weights.
        old: The encoder runs the decoder's first step, too.
        states: The decoder has the encoder's hidden states among its inputs.
        pointer: The decoder reads the encoder's text, too.
    """
    encoded = ["batch", "source"]
    source = {"encoder_input_ids": encoded, "encoder_attention_mask": encoded}
    own, cross = _caches("present_{}_self_", "all"), _caches("present_{}_cross_", "source")
    logits = {"logits": ["batch", 1, VOCABULARY]}
    hidden = {"encoder_hidden_states": [*encoded, WIDTH]}
    text = _ENCODED + _layers(_CROSS)
    if old:
        begin = _BEGIN.replace("SELF_KEY", "no_past").replace("ids", "decoder_input_ids")
        # Rows of the batch without a position.
        begin += """
   rows = Shape<start = 0, end = 1>(decoder_input_ids)
   rest = Shape<start = 1>(no_past)
   shape = Concat<axis = 0>(rows, rest)
   past = Expand(no_past, shape)
"""
        names = {"PAST_KEY#": "past", "PAST_VALUE#": "past", "CROSS_KEY": "present_key_cross_"}
        layers = _layers(_LAYER, **names, CROSS_VALUE="present_value_cross_")
        text += f"{begin} {layers} logits = MatMul(x{LAYERS}, head)"
        encoder = _graph(
            "encoder", text, {**source, "decoder_input_ids": ["batch", 1]}, {**logits, **hidden, **own, **cross}, seed
        )
    else:
        encoder = _graph("encoder", text, source, cross, seed)
    names = {"PAST_KEY": "past_key_self_", "PAST_VALUE": "past_value_self_", "CROSS_KEY": "past_key_cross_"}
    layers = _layers(_LAYER, **names, CROSS_VALUE="past_value_cross_")
    begin = _BEGIN.replace("SELF_KEY", "past_key_self_0").replace("ids", "input_ids")
    if pointer:
        text = "text = Gather(tokens, encoder_input_ids)  mean = ReduceMean<axes = [1]>(text)"
        begin = f"{text} {begin}".replace("x0 = Add(e, place)", "pointed = Add(e, mean)  x0 = Add(pointed, place)")
    inputs = {"input_ids": ["batch", 1], **({"encoder_input_ids": encoded} if pointer else {})}
    inputs |= {"encoder_attention_mask": encoded, **(hidden if states else {})}
    inputs |= _caches("past_{}_self_", "past") | _caches("past_{}_cross_", "source")
    decoder = _graph("decoder", f"{begin} {layers} logits = MatMul(x{LAYERS}, head)", inputs, {**logits, **own}, seed)
    return {"encoder": encoder, "decoder": decoder}


def small_whisper(seed: int = 0, *, states: bool = False) -> dict[str, onnx.GraphProto]:
    """The same without a mask, of features [batch, WIDTH, frames]; the encoder runs the decoder's first step.

    Args:
        seed: Seed of the weights.
        states: The decoder has the encoder's hidden states among its inputs.
    """
    graphs = small_t5(seed, old=True, states=states)
    for graph in graphs.values():
        names = [value.name for value in graph.input]
        del graph.input[names.index("encoder_attention_mask")]
        kept = [n for n in graph.node if n.output[0] not in ("seen", "hidden", "masked", "middle", "mask")]
        del graph.node[:]
        graph.node.extend(kept)
        for node in graph.node:
            if "mask" in node.input:
                node.op_type = "Identity"
                node.input.remove("mask")
            if "encoder_input_ids" in node.input:
                node.CopyFrom(helper.make_node("Transpose", ["encoder_input_ids"], node.output, perm=[0, 2, 1]))
    encoder = graphs["encoder"]
    features = helper.make_tensor_value_info("encoder_input_ids", TensorProto.FLOAT, ["batch", WIDTH, "source"])
    encoder.input[0].CopyFrom(features)
    encoder.input[1].type.tensor_type.shape.dim[1].dim_param = "begun"
    encoder.output[0].type.tensor_type.shape.dim[1].dim_param = "begun"
    return graphs
