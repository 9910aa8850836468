"""Threads of the CPU provider: they change no result, and a session without any says so."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from session_settings import settings
from text_form import parse
from waiting import wait_until

from py_ort import InferenceSession
from py_ort.compiler.compile import compile_model

BUILT = (Path(__file__).parents[2] / "py_ort/assets/simd128.wasm").stat().st_size > 8  # an empty module is 8 bytes
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BUILT, reason="built without threads: clang and lld 19 are needed for that"),
]
RNG = np.random.default_rng(7)


def _recurrent(op: str, gates: int, batch: int, hidden: int, ways: int = 1, attributes: str = "") -> tuple[Any, ...]:
    shapes = {"w": (ways, gates * hidden, 30), "r": (ways, gates * hidden, hidden), "b": (ways, 2 * gates * hidden)}
    return [7, batch, 30], f"y = {op}<hidden_size={hidden}{attributes}>(x, w, r, b)", shapes


_KEYS = {"k": (2, 3, 150, 40), "v": (2, 3, 150, 40), "past_k": (2, 3, 30, 40), "past_v": (2, 3, 30, 40)}
_ATTENTION = "y = Attention<%s>(x, k, v, mask, past_k, past_v)"
_CONVOLUTIONS = """a = Conv<pads=[1,1,1,1]>(x, w)  b = Conv<pads=[2,2,2,2], group=24>(a, d)
    c = Conv<pads=[1,1,1,1], strides=[2,2]>(b, v)  y = MaxPool<kernel_shape=[3,3]>(c)"""
_BYTES = """u, us, uz = DynamicQuantizeLinear(x)  a = DequantizeLinear(u, us, uz)
    i = QuantizeLinear(a, s, z)  y = DequantizeLinear(i, s, z)"""
#: Sizes of x, nodes from x to y, and their constants, or the sizes of random ones.
MODELS: dict[str, tuple[list[int], str, dict[str, Any]]] = {
    "product": ([150, 260], "y = MatMul(x, w)", {"w": (260, 170)}),
    # Fewer rows than tiles for all: columns are divided, too.
    "few rows": ([6, 500], "y = MatMul(x, w)", {"w": (500, 900)}),
    # So few rows, although more than columns, that columns are divided as well.
    "more rows": ([200, 260], "y = MatMul(x, w)", {"w": (260, 90)}),
    # Blocks of elements to bytes, by their own range and by given scales, and back.
    "bytes": ([37, 4001], _BYTES, {"s": np.float32(0.04), "z": np.int8(3)}),
    # By Winograd, by channel, strided.
    "convolutions": ([1, 16, 60, 50], _CONVOLUTIONS, {"w": (24, 16, 3, 3), "d": (24, 1, 5, 5), "v": (20, 24, 3, 3)}),
    # Output channels are divided, of which the last panel is incomplete.
    "few tiles": ([1, 40, 13, 14], "y = Conv<pads=[1,1,1,1]>(x, w, b)", {"w": (100, 40, 3, 3), "b": (100,)}),
    # Columns are divided here too, and each piece gathers the pixels again.
    "few pixels": ([1, 10, 11, 9], "y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)", {"w": (500, 10, 3, 3)}),
    "rows": ([200, 700], "a = LayerNormalization(x, s)  y = Softmax(a)", {"s": (700,)}),
    # Blocks of elements, the last of which is incomplete.
    "functions": ([37, 4001], "y = Gelu(x)", {}),
    # Blocks of rows of each head, keys and values packed.
    "attention": ([2, 6, 150, 40], _ATTENTION % "is_causal=1", {**_KEYS, "mask": (6, 1, 180)}),
    "capped attention": ([2, 6, 150, 40], _ATTENTION % "softcap=2.0", {**_KEYS, "mask": (6, 1, 180)}),
    # So few rows that keys and values are read unpacked.
    "decoded": ([2, 8, 2, 48], "y = Attention(x, k, v)", {"k": (2, 4, 700, 48), "v": (2, 4, 700, 48)}),
    "a direction each": _recurrent("LSTM", 4, 1, 250, 2, ', direction="bidirectional"'),
    "steps": _recurrent("LSTM", 4, 6, 260, 1, ', direction="reverse"'),
    "steps in two phases": _recurrent("GRU", 3, 6, 264),
    "reset behind the product": _recurrent("GRU", 3, 6, 264, 1, ", linear_before_reset=1"),
}


def _weights(shape: Any, small: bool) -> np.ndarray:
    """Random weights, small ones for recurrent layers; or a constant as it is."""
    if not isinstance(shape, tuple):
        return np.asarray(shape)
    return RNG.standard_normal(shape).astype(np.float32) / np.float32(16 if small else 1)


@pytest.mark.parametrize("simd", ["fixed", "auto"])
@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(new_session, name, simd):
    sizes, nodes, constants = MODELS[name]
    weights = {key: _weights(each, small="hidden_size" in nodes) for key, each in constants.items()}
    model = parse(f"g (float{sizes} x) => (y) {{ {nodes} }}", weights, 24)
    feeds = {"x": RNG.standard_normal(sizes).astype(np.float32)}

    def session(threads: int) -> InferenceSession:
        return new_session(model, settings(intra_op_num_threads=threads), providers=[("wasm", {"simd": simd})])

    (expected,) = session(1).run(None, feeds)
    parallel = session(3)
    assert parallel.stats()["created"]["wasm"]["threads"] == 3
    wait_until(lambda: parallel.stats()["page"]["wasm"]["threads"] >= 3)
    before = parallel.stats()["page"]["wasm"]["shared_kernels"]
    for _ in range(10):
        np.testing.assert_array_equal(parallel.run(None, feeds)[0], expected)
    assert parallel.stats()["page"]["wasm"]["shared_kernels"] >= before + 10


def test_zero_is_what_the_machine_has(new_session):
    session = new_session(small_models.two_products(), providers=["wasm"])
    assert 1 <= session.stats()["created"]["wasm"]["threads"] <= 8


def test_a_page_itself_has_none_and_says_so(plain_page):
    """Its own thread must not wait for others. Without a GPU, all cores are used."""
    means = plain_page.load_compiled(compile_model(small_models.two_products(), providers=["wasm"])).info["wasm"]
    assert means["threads"] == 1
    if (os.cpu_count() or 1) > 1:
        assert "use a worker" in means["without_threads"]
