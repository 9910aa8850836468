"""Threads of the CPU provider: they change no result, and a session without any says so."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import small_models
from onnx import helper, numpy_helper

from py_ort import SessionOptions
from py_ort.compiler.compile import compile_model

BUILT = (Path(__file__).parents[2] / "py_ort/assets/simd128.wasm").stat().st_size > 8  # an empty module is 8 bytes
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BUILT, reason="built without threads: clang and lld 19 are needed for that"),
]
RNG = np.random.default_rng(7)


def _weights(name: str, *shape: int):
    return numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)


def _product():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return nodes, [150, 260], [150, 170], [_weights("w", 260, 170)]


def _few_rows():
    """Fewer rows than tiles for all: columns are divided, too."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return nodes, [6, 500], [6, 900], [_weights("w", 500, 900)]


def _convolutions():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="winograd", pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["a", "d"], ["b"], name="depthwise", pads=[2, 2, 2, 2], group=24),
        helper.make_node("Conv", ["b", "v"], ["c"], name="strided", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("MaxPool", ["c"], ["y"], name="pool", kernel_shape=[3, 3]),
    ]
    weights = [_weights("w", 24, 16, 3, 3), _weights("d", 24, 1, 5, 5), _weights("v", 20, 24, 3, 3)]
    return nodes, [1, 16, 60, 50], [1, 20, 28, 23], weights


def _more_rows():
    """So few rows, although more than columns, that columns are divided as well."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return nodes, [200, 260], [200, 90], [_weights("w", 260, 90)]


def _few_tiles():
    """Output channels are divided, of which the last panel is incomplete."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"], name="winograd", pads=[1, 1, 1, 1])]
    return nodes, [1, 40, 13, 14], [1, 100, 13, 14], [_weights("w", 100, 40, 3, 3), _weights("b", 100)]


def _bytes():
    """Blocks of elements to bytes, by their own range and by given scales, and back."""
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["u", "us", "uz"], name="by range"),
        helper.make_node("DequantizeLinear", ["u", "us", "uz"], ["a"], name="of uint8"),
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["i"], name="by scale"),
        helper.make_node("DequantizeLinear", ["i", "s", "z"], ["y"], name="of int8"),
    ]
    scale, zero = np.float32(0.04), np.int8(3)
    return nodes, [37, 4001], [37, 4001], [numpy_helper.from_array(v, n) for v, n in ((scale, "s"), (zero, "z"))]


def _few_pixels():
    """Columns are divided here too, and each piece gathers the pixels again."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="strided", pads=[1, 1, 1, 1], strides=[2, 2])]
    return nodes, [1, 10, 11, 9], [1, 500, 6, 5], [_weights("w", 500, 10, 3, 3)]


def _rows():
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s"], ["a"], name="normalize"),
        helper.make_node("Softmax", ["a"], ["y"], name="softmax"),
    ]
    return nodes, [200, 700], [200, 700], [_weights("s", 700)]


def _functions():
    """Blocks of elements, the last of which is incomplete."""
    return [helper.make_node("Gelu", ["x"], ["y"], name="function")], [37, 4001], [37, 4001], []


def _attention(**attributes):
    """Blocks of rows of each head, keys and values packed."""
    inputs = ["x", "k", "v", "mask", "past_k", "past_v"]
    nodes = [helper.make_node("Attention", inputs, ["y"], name="attention", **attributes)]
    weights = [_weights(name, 2, 3, 150, 40) for name in "kv"]
    weights += [_weights(f"past_{name}", 2, 3, 30, 40) for name in "kv"]
    return nodes, [2, 6, 150, 40], [2, 6, 150, 40], [*weights, _weights("mask", 6, 1, 180)]


def _decoded():
    """So few rows that keys and values are read unpacked."""
    nodes = [helper.make_node("Attention", ["x", "k", "v"], ["y"], name="attention")]
    return nodes, [2, 8, 2, 48], [2, 8, 2, 48], [_weights(name, 2, 4, 700, 48) for name in "kv"]


def _recurrent(op: str, gates: int, batch: int, hidden: int, **attributes):
    ways = 2 if attributes.get("direction") == "bidirectional" else 1
    inputs = ["x", "w", "r", "b"]
    nodes = [helper.make_node(op, inputs, ["y"], name="layer", hidden_size=hidden, **attributes)]
    shapes = {"w": (ways, gates * hidden, 30), "r": (ways, gates * hidden, hidden), "b": (ways, 2 * gates * hidden)}
    weights = [
        numpy_helper.from_array(numpy_helper.to_array(_weights(name, *shape)) / np.float32(16), name)
        for name, shape in shapes.items()
    ]
    return nodes, [7, batch, 30], [7, ways, batch, hidden], weights


MODELS = {
    "product": _product,
    "few rows": _few_rows,
    "more rows": _more_rows,
    "bytes": _bytes,
    "convolutions": _convolutions,
    "few tiles": _few_tiles,
    "few pixels": _few_pixels,
    "rows": _rows,
    "functions": _functions,
    "attention": partial(_attention, is_causal=1),
    "capped attention": partial(_attention, softcap=2.0),
    "decoded": _decoded,
    "a direction each": partial(_recurrent, "LSTM", 4, 1, 250, direction="bidirectional"),
    "steps": partial(_recurrent, "LSTM", 4, 6, 260, direction="reverse"),
    "steps in two phases": partial(_recurrent, "GRU", 3, 6, 264),
    "reset behind the product": partial(_recurrent, "GRU", 3, 6, 264, linear_before_reset=1),
}


def _session(new_session, model, threads: int, simd: str = "auto"):
    options = SessionOptions()
    options.intra_op_num_threads = threads
    return new_session(model, options, providers=[("wasm", {"simd": simd})])


@pytest.mark.parametrize("simd", ["fixed", "auto"])
@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(new_session, name, simd):
    nodes, inputs, outputs, weights = MODELS[name]()
    model = small_models.model(
        nodes, [small_models.floats("x", inputs)], [small_models.floats("y", outputs)], weights, 24
    )
    feeds = {"x": RNG.standard_normal(inputs).astype(np.float32)}
    (expected,) = _session(new_session, model, 1, simd).run(None, feeds)
    session = _session(new_session, model, 3, simd)
    assert session.stats()["created"]["wasm"]["threads"] == 3
    deadline = time.monotonic() + 30
    while session.stats()["page"]["wasm"]["threads"] < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    before = session.stats()["page"]["wasm"]["shared_kernels"]
    for _ in range(10):
        np.testing.assert_array_equal(session.run(None, feeds)[0], expected)
    page = session.stats()["page"]["wasm"]
    assert page["threads"] >= 3 and page["shared_kernels"] >= before + 10


def test_zero_is_what_the_machine_has(new_session):
    session = new_session(small_models.two_products(), providers=["wasm"])
    assert 1 <= session.stats()["created"]["wasm"]["threads"] <= 8


def test_a_page_itself_has_none_and_says_so(plain_page):
    """Its own thread must not wait for others. Without a GPU, all cores are used."""
    means = plain_page.load_compiled(compile_model(small_models.two_products(), providers=["wasm"])).info["wasm"]
    assert means["threads"] == 1
    if (os.cpu_count() or 1) > 1:
        assert "use a worker" in means["without_threads"]
