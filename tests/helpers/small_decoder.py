"""A decoder like GPT-2 for searches: two layers, random weights, a vocabulary of 20."""

from __future__ import annotations

import numpy as np
import onnx
from decoder_texts import ATTENDED, EMBEDDED, PROJECTED
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HEADS, SIZE, LAYERS = 20, 2, 4, 2
WIDTH = HEADS * SIZE

_LAYER = f"""{PROJECTED}
   pk# = Gather<axis = 0>(past_#, zero)
   pv# = Gather<axis = 0>(past_#, step)
   key# = Concat<axis = 2>(pk#, kt#)
   value# = Concat<axis = 2>(pv#, vt#)
   front = Constant<value_ints = [0]>()
   key5# = Unsqueeze(key#, front)
   value5# = Unsqueeze(value#, front)
   present_# = Concat<axis = 0>(key5#, value5#)
{ATTENDED}"""


def small_decoder(seed: int = 0) -> onnx.GraphProto:
    """A graph of opset 17 with onnxruntime's names for inputs and outputs."""
    layers = [_LAYER.replace("#", str(i)).replace("@", str(i + 1)) for i in range(LAYERS)]
    layers[1:] = [text.replace("   front = Constant<value_ints = [0]>()\n", "") for text in layers[1:]]
    text = f"decoder () => () {{ {EMBEDDED} {''.join(layers)} logits = MatMul(x{LAYERS}, head) }}"
    graph = onnx.parser.parse_graph(text)
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    constants = {
        "tokens": random(VOCABULARY, WIDTH),
        "places": random(64, WIDTH) / 2,
        "head": random(WIDTH, VOCABULARY) * 2,
        "one": np.array(1, np.float32),
        "low": np.array(-10000, np.float32),
        "scale": np.array(SIZE**-0.5, np.float32),
        "heads": np.array([0, 0, HEADS, SIZE]),
        "width": np.array([0, 0, WIDTH]),
        **{f"w{part}{i}": random(WIDTH, WIDTH) * np.float32(0.6) for i in range(LAYERS) for part in "qkvo"},
    }
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    info = helper.make_tensor_value_info
    graph.input.extend(
        [
            info("input_ids", TensorProto.INT32, ["batch", "rows"]),
            info("position_ids", TensorProto.INT32, ["batch", "rows"]),
            info("attention_mask", TensorProto.INT32, ["batch", "all"]),
            *(info(f"past_{i}", TensorProto.FLOAT, [2, "batch", HEADS, "past", SIZE]) for i in range(LAYERS)),
        ]
    )
    graph.output.extend(
        [
            info("logits", TensorProto.FLOAT, ["batch", "rows", VOCABULARY]),
            *(info(f"present_{i}", TensorProto.FLOAT, [2, "batch", HEADS, "all", SIZE]) for i in range(LAYERS)),
        ]
    )
    return graph
