"""Sizes and numbers beyond memory, 64 bits, shaders or numpy's arrays are typed errors, at once.

Windows and regions beyond the image take only the time of their part inside it.
"""

import numpy as np
import pytest
import small_models
from native import native_session
from text_form import parse

from py_ort import RunOptions
from py_ort.exceptions import NotImplemented, OutOfMemory, RuntimeException

PROVIDERS = ["webgpu", "wasm"]

#: Nodes that make more of x (float[1,2,3]) than memory holds, by a fed size s (int64[1]).
HUGE = {
    "Pad": "p = Concat<axis=0>(five, s)  t = Pad(x, p)",
    "Pad, edge": "p = Concat<axis=0>(five, s)  t = Pad<mode='edge'>(x, p)",
    "Pad, both sides": "p = Concat<axis=0>(two, s, two, s)  t = Pad(x, p)",
    "Resize": "f = Cast<to=1>(s)  u = Cast<to=1>(two)  p = Concat<axis=0>(u, f)  t = Resize(x, , p)",
    "CenterCropPad": "t = CenterCropPad<axes=[2]>(x, s)",
    "Tile": "p = Concat<axis=0>(two, s)  t = Tile(x, p)",
    "Expand": "p = Concat<axis=0>(one, one, s)  z = ReduceMax<keepdims=1>(x)  t = Expand(z, p)",
    "ConstantOfShape": "t = ConstantOfShape(s)",
    "Range": "z = Squeeze(s)  t = Range(none, z, step)",
    "OneHot": "t = OneHot(one, s, values)",
}
_CONSTANTS = {
    "five": np.zeros(5, np.int64),
    "two": np.ones(2, np.int64),
    "one": np.ones(1, np.int64),
    "none": np.array(0),
    "step": np.array(1),
    "values": np.float32([0, 1]),
}


@pytest.mark.parametrize("size", [2**31, 2**32, 2**40, 2**62, 2**63 - 1], ids=hex)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("nodes", HUGE.values(), ids=HUGE)
def test_sizes_beyond_all_memory(new_session, provider, nodes, size):
    constants = {name: value for name, value in _CONSTANTS.items() if name in nodes}
    text = f"g (float[1,2,3] x, int64[1] s) => (int64[k] y) {{ {nodes}  y = Shape(t) }}".replace("'", '"')
    session = new_session(parse(text, constants), providers=[provider])
    with pytest.raises(OutOfMemory):
        session.run(None, {"x": np.ones((1, 2, 3), np.float32), "s": np.array([size])})


def test_tables_beyond_all_memory(new_session):
    """Pad needs eight bytes of a table for each byte of this output, which fits."""
    text = "g (uint8[2] x, int64[2] p) => (int64[1] y) { t = Pad(x, p)  y = Shape(t) }"
    session = new_session(parse(text), providers=["wasm"])
    with pytest.raises(OutOfMemory):
        session.run(None, {"x": np.ones(2, np.uint8), "p": np.array([0, 2**30])})


@pytest.mark.parametrize("ends", [(0, 1e30), (0, np.inf), (np.nan, 1)], ids=str)
def test_ranges_without_end(new_session, provider, ends):
    text = "g (float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }"
    session = new_session(parse(text), providers=[provider])
    with pytest.raises((OutOfMemory, RuntimeException), match="Range"):
        session.run(None, dict(zip("abc", np.float32([*ends, 1]), strict=True)))


def test_more_dimensions_than_numpy_has(new_session):
    text = "g (float[1] x) => (float[] y) { y = Reshape(x, s) }"
    session = new_session(parse(text, {"s": np.ones(301, np.int64)}), providers=["wasm"])
    with pytest.raises(NotImplemented, match="'y' has 301 dimensions"):
        session.run(None, {"x": np.ones(1, np.float32)})


#: Attributes of a window that shaders, or the core, cannot count in 32 bits.
BEYOND_32_BITS = {
    "pad": "kernel_shape=[2,2], strides=[2,2], pads=[0,0,281474976710656,0]",
    "pad and stride": "kernel_shape=[2,2], strides=[281474976710656,1], pads=[0,0,281474976710656,0]",
    "dilation": "kernel_shape=[2,2], dilations=[4294967296,1], pads=[2147483648,0,2147483648,0]",
    "stride": "kernel_shape=[2,2], strides=[4294967296,1]",
}
IMAGE = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
SOON = RunOptions()
SOON.timeout = 30.0


@pytest.mark.parametrize("attributes", BEYOND_32_BITS.values(), ids=BEYOND_32_BITS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool", "Conv", "ConvTranspose"])
def test_windows_beyond_32_bits(new_session, provider, op, attributes):
    inputs, constants = ("x, w", {"w": np.ones((1, 1, 2, 2), np.float32)}) if "Conv" in op else ("x", {})
    text = f"g (float[n,c,h,w] x) => (float[p,q,r,s] y) {{ y = {op}<{attributes}>({inputs}) }}"
    session = new_session(parse(text, constants), providers=[provider])
    with pytest.raises(RuntimeException, match=r"2\^31|2147483647"):
        session.run(None, {"x": IMAGE}, SOON)


#: Far larger than the image of 8 x 8.
LARGE = {
    "MaxPool": "y = MaxPool<kernel_shape=[W,W], pads=[H,H,H,H]>(x)",
    "MaxPool, dilated": "y = MaxPool<kernel_shape=[W,2], dilations=[2,1], pads=[G,0,G,0]>(x)",
    "AveragePool": "y = AveragePool<kernel_shape=[W,W], pads=[H,H,H,H]>(x)",
    "AveragePool, padding": "y = AveragePool<kernel_shape=[W,W], count_include_pad=1, pads=[H,H,H,H]>(x)",
    "LpPool": "y = LpPool<kernel_shape=[W,W], pads=[H,H,H,H]>(x)",
    "LRN": "y = LRN<size=65537>(x)",
}


@pytest.mark.parametrize("size", [2**14, 2**16], ids=hex)
@pytest.mark.parametrize("node", LARGE.values(), ids=LARGE)
def test_windows_larger_than_the_image(new_session, provider, node, size):
    for name, value in (("W", size), ("H", size // 2), ("G", size - 1)):
        node = node.replace(f"[{name}", f"[{value}").replace(f",{name}", f",{value}")
    model = parse(f"g (float[n,c,h,w] x) => (float[p,q,r,s] y) {{ {node} }}")
    (y,) = new_session(model, providers=[provider]).run(None, {"x": IMAGE}, SOON)
    np.testing.assert_allclose(y, native_session(model).run(None, {"x": IMAGE})[0], rtol=1e-4, atol=1e-5)


def _roi(attributes, region):
    text = f"""g (float[n,c,h,w] x, float[k,4] r) => (float[p,q,s,t] y) {{
        y = RoiAlign<output_height=1, output_width=1, {attributes}>(x, r, b) }}"""
    return parse(text, {"b": np.zeros(1, np.int64)}), {"x": IMAGE, "r": np.float32([region])}


def _products(size):
    square = np.ones((size, size), np.float32)
    inputs = ", ".join(f"float[n,n] {name}" for name in "abcd")
    text = f"g ({inputs}) => (float[n,n] y) {{ y = Einsum<equation='ij,jk,kl,lm->im'>(a, b, c, d) }}".replace("'", '"')
    return parse(text), dict.fromkeys("abcd", square)


@pytest.mark.parametrize(
    ("model", "feeds"),
    [_roi("sampling_ratio=4194304", [0, 0, 8, 8]), _products(3000)],
    ids=["RoiAlign", "Einsum"],
)
def test_dispatches_that_never_end(new_session, model, feeds):
    """They would block the GPU for everything in the browser, until the browser is replaced."""
    session = new_session(model, providers=["webgpu"])
    with pytest.raises(RuntimeException, match="would not end"):
        session.run(None, feeds, SOON)


def test_loops_that_never_end(new_session):
    """By their trips, which are known before recording."""
    turn = "turn (int64 i, bool go, float[2] s) => (bool d, float[2] t) { d = Identity(go)  t = Sin(s) }"
    text = f"g (float[2] x, int64 t) => (float[2] y) {{ y = Loop(t, , x) <body = {turn}> }}"
    session = new_session(parse(text), providers=["webgpu"])
    x = np.float32([1, 2])
    np.testing.assert_allclose(session.run(None, {"x": x, "t": np.array(2)}, SOON)[0], np.sin(np.sin(x)), rtol=1e-5)
    endless = new_session(small_models.endless_loop(), providers=["webgpu"])
    for loop, feeds in ((session, {"x": x, "t": np.array(10**9)}), (endless, {"x": x})):
        with pytest.raises(RuntimeException, match="would not end"):
            loop.run(None, feeds, SOON)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2, 7])
@pytest.mark.parametrize("region", [[-40, -9, 30, 300], [5, 5, -3, 2], [-90, -90, -50, -50], [3, 3, 3, 3]], ids=str)
def test_regions_beyond_the_image(new_session, mode, coordinates, samples, region):
    model, feeds = _roi(
        f'mode="{mode}", coordinate_transformation_mode="{coordinates}", sampling_ratio={samples}', region
    )
    (y,) = new_session(model, providers=["webgpu"]).run(None, feeds, SOON)
    np.testing.assert_allclose(y, native_session(model).run(None, feeds)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("region", [[0, 0, 1e9, 1e9], [0, 0, np.nan, np.inf], [-np.inf, 0, np.inf, 1]], ids=str)
def test_regions_without_end(new_session, region):
    model, feeds = _roi("sampling_ratio=0", region)
    assert new_session(model, providers=["webgpu"]).run(None, feeds, SOON)[0].shape == (1, 1, 1, 1)
