"""Outputs that no memory, no number of 64 bits or no array of numpy has room for: typed errors, at once."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import parse

from py_ort.exceptions import NotImplemented, OutOfMemory, RuntimeException

PROVIDERS = ["webgpu", "wasm"]

#: Nodes that make more of x (float[1,2,3]) than there is memory, by a fed size s (int64[1]).
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
    session = new_session(parse(text, constants).SerializeToString(), providers=[provider])
    with pytest.raises(OutOfMemory):
        session.run(None, {"x": np.ones((1, 2, 3), np.float32), "s": np.array([size])})


def test_tables_beyond_all_memory(new_session):
    """Pad has eight bytes of a table for each byte of this output, which fits."""
    text = "g (uint8[2] x, int64[2] p) => (int64[1] y) { t = Pad(x, p)  y = Shape(t) }"
    session = new_session(parse(text).SerializeToString(), providers=["wasm"])
    with pytest.raises(OutOfMemory):
        session.run(None, {"x": np.ones(2, np.uint8), "p": np.array([0, 2**30])})


@pytest.mark.parametrize("ends", [(0, 1e30), (0, np.inf), (np.nan, 1)], ids=str)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_ranges_without_end(new_session, provider, ends):
    text = "g (float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }"
    session = new_session(parse(text).SerializeToString(), providers=[provider])
    with pytest.raises((OutOfMemory, RuntimeException), match="Range"):
        session.run(None, dict(zip("abc", np.float32([*ends, 1]), strict=True)))


def test_more_dimensions_than_numpy_has(new_session):
    text = "g (float[1] x) => (float[] y) { y = Reshape(x, s) }"
    session = new_session(parse(text, {"s": np.ones(301, np.int64)}).SerializeToString(), providers=["wasm"])
    with pytest.raises(NotImplemented, match="'y' has 301 dimensions"):
        session.run(None, {"x": np.ones(1, np.float32)})
