"""Models for the tests of errors, as bytes."""

from __future__ import annotations

import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from text_form import parse


def model(nodes, inputs, outputs, initializers=(), opset=17, domains=()) -> bytes:
    graph = helper.make_graph(list(nodes), "small", list(inputs), list(outputs), list(initializers))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def floats(name: str, shape) -> object:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def add(elem_type: int = TensorProto.FLOAT) -> bytes:
    """y = x + scale, of [N, 3] and [3]."""
    shapes = {"x": ["N", 3], "scale": [3], "y": ["N", 3]}
    x, scale, y = (helper.make_tensor_value_info(name, elem_type, shape) for name, shape in shapes.items())
    return model([helper.make_node("Add", ["x", "scale"], ["y"], name="sum")], [x, scale], [y])


def unknown_operator(domain: str = "") -> bytes:
    return model(
        [
            helper.make_node("Relu", ["x"], ["r"]),
            helper.make_node("Frobnicate", ["r"], ["y"], name="frob", domain=domain),
        ],
        [floats("x", [1])],
        [floats("y", [1])],
        domains=[domain] if domain else [],
    )


def gather() -> bytes:
    """y = data[index], which fails for an index out of range."""
    data = numpy_helper.from_array(np.arange(4, dtype=np.float32), "data")
    index = helper.make_tensor_value_info("index", TensorProto.INT64, [1])
    return model(
        [helper.make_node("Gather", ["data", "index"], ["y"], name="pick")], [index], [floats("y", [1])], [data]
    )


def slow(size: int = 1024, steps: int = 60) -> bytes:
    """A chain of matrix products that takes seconds."""
    weight = numpy_helper.from_array(np.eye(size, dtype=np.float32), "w")
    names = ["x", *(f"t{i}" for i in range(1, steps)), "y"]
    nodes = [helper.make_node("MatMul", [a, "w"], [b]) for a, b in itertools.pairwise(names)]
    return model(nodes, [floats("x", [size, size])], [floats("y", [size, size])], [weight])


def endless_on_wasm() -> bytes:
    """One node whose time is the square of its boxes, from `boxes_apart`: minutes for 200,000."""
    most = numpy_helper.from_array(np.array([1 << 30], np.int64), "most")
    picked = helper.make_tensor_value_info("picked", TensorProto.INT64, ["n", 3])
    nodes = [helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["picked"], name="endless")]
    return model(nodes, [floats("boxes", [1, "n", 4]), floats("scores", [1, 1, "n"])], [picked], [most])


def endless_loop() -> bytes:
    """A Loop of float[2] without a trip count, whose condition stays true."""
    return parse(
        """g (float[2] x) => (float[2] y) {
        y = Loop (, , x) <body = turn (int64 i, bool go, float[2] s) => (bool again, float[2] next)
            { again = Identity(go)  next = Sin(s) }> }"""
    ).SerializeToString()


def loop_of_dispatches() -> bytes:
    """A Loop that the CPU ends after a billion iterations, with a state on the GPU."""
    return parse(
        """g (float[2] x) => (float[2] y) {
        y = Loop (, , x) <body = turn (int64 i, bool go, float[2] s) => (bool again, float[2] next)
            { next = Sin(s)  most = Constant<value_int=1000000000>()  again = Less(i, most) }> }"""
    ).SerializeToString()


def loop_for_the_gpu() -> bytes:
    """A Loop whose condition stays true and depends on its state, so that each iteration waits for the GPU."""
    return parse(
        """g (float[2] x) => (float[2] y) {
        y = Loop (, , x) <body = turn (int64 i, bool go, float[2] s) => (bool again, float[2] next)
            { next = Sin(s)  m = ReduceMax<keepdims=0>(next)  two = Constant<value_float=2.0>()
              again = Less(m, two) }> }"""
    ).SerializeToString()


def endless_to_load() -> bytes:
    """A node "endless" that takes a minute on the CPU, even while a session is made that also has a GPU."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["t"], name="endless"), helper.make_node("Sin", ["t"], ["y"])]
    x, w = floats("x", [1, 16, 638, 638]), floats("w", [16, 16, 127, 127])
    return model(nodes, [x, w], [floats("y", [1, 16, 512, 512])])


def boxes_apart(count: int) -> dict[str, np.ndarray]:
    """Boxes without any overlap."""
    corner = np.arange(count, dtype=np.float32)[:, None] * 2
    boxes = np.concatenate([corner, corner, corner + 1, corner + 1], 1)[None]
    return {"boxes": boxes, "scores": np.ones((1, 1, count), np.float32)}


def endless_on_webgpu() -> bytes:
    """One dispatch in which each thread adds size^3 products, of [size, size]."""
    names = ["a", "b", "c", "d"]
    nodes = [helper.make_node("Einsum", names, ["y"], name="endless", equation="ij,jk,kl,lm->im")]
    return model(nodes, [floats(name, ["n", "n"]) for name in names], [floats("y", ["n", "n"])])


RNG = np.random.default_rng(4)
WEIGHTS = {
    name: RNG.standard_normal(shape).astype(np.float32)
    for name, shape in {
        "w": (12, 4, 3, 3),
        "g": (12, 6, 3, 3),
        "m": (12, 13),
        "t": (7, 13),
        "u": (12, 5, 2, 3),
        "v": (10, 12, 2, 2),
    }.items()
}


def two_products(scale: float = 1) -> bytes:
    """Convolutions, transposed and grouped ones too, then matrices in both orders; no size fills its panels.

    Args:
        scale: Factor of all weights: sessions share equal weights.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["a", "g"], ["b"], group=2, pads=[1] * 4),
        helper.make_node("ConvTranspose", ["b", "u"], ["e"], group=2),
        helper.make_node("ConvTranspose", ["e", "v"], ["f"], strides=[2, 2]),
        helper.make_node("ReduceMean", ["f", "axes"], ["c"], keepdims=0),
        helper.make_node("MatMul", ["c", "m"], ["d"]),
        helper.make_node("Gemm", ["d", "t"], ["y"], transB=1),
    ]
    constants = [numpy_helper.from_array(array * array.dtype.type(scale), name) for name, array in WEIGHTS.items()]
    constants.append(numpy_helper.from_array(np.array([2, 3]), "axes"))
    return model(nodes, [floats("x", ["N", 4, 8, 8])], [floats("y", ["N", 7])], constants, 18)


def recurrent() -> bytes:
    """y = LSTM(x), x float32 [4, 2, 3], five units."""
    r = np.random.default_rng(2)
    weights = [("w", (1, 20, 3)), ("r", (1, 20, 5))]
    return model(
        [helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=5)],
        [floats("x", [4, 2, 3])],
        [floats("y", [4, 1, 2, 5])],
        [numpy_helper.from_array(r.standard_normal(shape).astype(np.float32), name) for name, shape in weights],
    )


def windows() -> bytes:
    """Pads, windows, sizes and trips, of float[n,4,h,w], that a page computes at run time."""
    constants = {
        "w": RNG.standard_normal((6, 4, 3, 3)).astype(np.float32),
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 2]),
        "scales": np.float32([1, 1, 2, 1.5]),
        "starts": np.array([1, 0]),
        "ends": np.array([100, -1]),
        "axes": np.array([2, 3]),
        "trips": np.array(3),
        "go": np.array(True),
    }
    text = """g (float[n,4,h,w] x) => (float[m,6,i,j] y) {
        a = Pad(x, p)
        b = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,2], dilations=[1,1]>(a, w)
        c = MaxPool<kernel_shape=[3,2], pads=[1,0,1,1], strides=[2,1]>(b)
        d = AveragePool<kernel_shape=[2,2], count_include_pad=1, pads=[1,1,1,1]>(c)
        e = Resize<mode="linear">(d, , scales)
        f = Slice(e, starts, ends, axes)
        y = Loop (trips, go, f) <body = turn (int64 i, bool on, float[b,6,k,l] s) => (bool still, float[b,6,k,l] t)
            { still = Identity(on)  t = Sin(s) }> }"""
    return parse(text, constants).SerializeToString()


def integer_products() -> bytes:
    """A grouped convolution with int8 weights, then a matrix in uint8; none fills its panels."""
    rng = np.random.default_rng(6)
    weights = {
        "w": rng.integers(-128, 128, (10, 2, 3, 3)).astype(np.int8),
        "w_zero": np.int8(-3),
        "m": rng.integers(0, 256, (10, 13)).astype(np.uint8),
        "m_zero": np.uint8(131),
        "small": np.float32(0.001),
        "axes": np.array([2, 3]),
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "q_scale", "q_zero"]),
        helper.make_node("ConvInteger", ["q", "w", "q_zero", "w_zero"], ["c"], group=2, pads=[1] * 4),
        helper.make_node("Cast", ["c"], ["c_float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["c_float", "axes"], ["mean"], keepdims=0),
        helper.make_node("Mul", ["mean", "small"], ["a"]),
        helper.make_node("DynamicQuantizeLinear", ["a"], ["b", "b_scale", "b_zero"]),
        helper.make_node("MatMulInteger", ["b", "m", "b_zero", "m_zero"], ["d"]),
        helper.make_node("Cast", ["d"], ["y"], to=TensorProto.FLOAT),
    ]
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    return model(nodes, [floats("x", ["N", 4, 8, 8])], [floats("y", ["N", 13])], constants, 18)
