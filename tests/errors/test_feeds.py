"""Feeds that do not fit: each error names the input, the expected and the actual value; the session still works."""

import numpy as np
import pytest
import small_models
from graphs import parse
from native import native_session

from py_ort.exceptions import InvalidArgument, PyOrtError, RuntimeException

X, SCALE = np.zeros((2, 3), np.float32), np.ones(3, np.float32)

WRONG = {
    "missing": (
        {"x": X},
        ["'scale'", "(['scale']) are missing from input feed (['x'])", "tensor(float)"],
    ),
    "missing all": ({}, ["'x'", "'scale'"]),
    "extra": ({"x": X, "scale": SCALE, "z": X}, ["'z'", "has 'x'"]),
    "another name": ({"x": X, "scales": SCALE}, ["no input 'scales'", "did you mean 'scale'?", "it has 'x'"]),
    "dtype": ({"x": X.astype(np.float64), "scale": SCALE}, ["'x'", "tensor(float)", "tensor(double)"]),
    "dtype int": ({"x": X, "scale": np.ones(3, np.int64)}, ["'scale'", "tensor(int64)"]),
    "rank": ({"x": X[0], "scale": SCALE}, ["'x'", "rank 1", "[N, 3]"]),
    "dimension": ({"x": np.zeros((2, 4), np.float32), "scale": SCALE}, ["'x'", "[2, 4]", "[N, 3]"]),
    "no such type": ({"x": np.zeros((2, 3), "datetime64[s]"), "scale": SCALE}, ["'x'", "datetime64"]),
}


@pytest.mark.parametrize("feeds, words", WRONG.values(), ids=WRONG)
def test_wrong_feeds(new_session, feeds, words):
    session = new_session(small_models.add(), providers=["wasm"])
    with pytest.raises(InvalidArgument) as caught:
        session.run(None, feeds)
    for word in words:
        assert word in str(caught.value)
    np.testing.assert_array_equal(session.run(None, {"x": X, "scale": SCALE})[0], X + 1)


def test_wrong_output_name(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    with pytest.raises(InvalidArgument, match=r"'nope'.*'y'"):
        session.run(["nope"], {"x": X, "scale": SCALE})


def test_a_kernel_that_fails_names_its_node(new_session):
    session = new_session(small_models.gather(), providers=["wasm"])
    with pytest.raises((RuntimeException, InvalidArgument)) as caught:
        session.run(None, {"index": np.array([7])})
    assert caught.value.node == "pick" and caught.value.op_type == "Gather"
    assert session.run(None, {"index": np.array([2])})[0].tolist() == [2]


def test_a_closed_session(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    session.close()
    session.close()
    with pytest.raises(PyOrtError, match="closed"):
        session.run(None, {"x": X, "scale": SCALE})


#: Uses of a scalar that reveal its rank: (input's type, nodes, constants, refused shapes of feeds).
SCALARS = {
    "If": (
        "bool",
        "y = If (p) <then_branch = a () => (float[] b) { b = Neg(x) }, "
        "else_branch = c () => (float[] d) { d = Abs(x) }>",
        {},
        [],
    ),
    "behind comparisons": (
        "int64",
        "e = Equal(p, one)  f = Not(e)  z = If (f) <then_branch = a () => (float[] b) "
        "{ b = Neg(x) }, else_branch = c () => (float[] d) { d = Abs(x) }>  y = Relu(z)",
        {"one": np.array(1)},
        [],
    ),
    "Loop": (
        "int64",
        "y = Loop (p, , x) <body = t (int64 i, bool g, float[] s) => (bool h, float[] n) "
        "{ h = Identity(g)  n = Add(s, s) }>",
        {},
        [],
    ),
    "Clip": ("float", "y = Clip(x, p)", {}, []),
    "Range": ("int64", "y = Range(p, nine, one)", {"nine": np.array(9), "one": np.array(1)}, []),
    "TopK": ("int64", "y, i = TopK(x, p)", {}, []),
    "broadcast": ("float", "y = Mul(x, p)", {}, [(1, 1, 1)]),
    "Reshape": ("float", "y = Reshape(p, one)", {"one": np.array([1])}, []),
    "Gather, broadcast": ("int64", "r = Gather(x, p)  y = Add(x, r)", {}, [(1, 1)]),
    "output": ("float", "y = Identity(p)", {}, [(1,), (1, 1)]),
    "Shape": ("float", "y = Shape(p)", {}, [(1,), (1, 1)]),
    "captured": (
        "float",
        "y = If (c) <then_branch = a () => (float[] b) { b = Mul(p, p) }, "
        "else_branch = d () => (float[] e) { e = Abs(x) }>",
        {"c": np.array(True)},
        [(1,), (1, 1)],
    ),
}


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("type_name, nodes, constants, refused", SCALARS.values(), ids=SCALARS)
def test_a_tensor_of_one_element_for_a_scalar(new_session, provider, type_name, nodes, constants, refused):
    """As in native onnxruntime; a feed that would change the result's shape, or of two elements, is refused."""
    model = parse(f"g (float[a,b] x, {type_name} p) => (out y) {{ {nodes} }}".replace("out y", "float[] y"), constants)
    model.graph.output[0].ClearField("type")
    session = new_session(model.SerializeToString(), providers=[provider])
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    one = np.array(1, {"float": np.float32, "int64": np.int64, "bool": bool}[type_name])
    expected = session.run(None, {"x": x, "p": one})[0]
    for shape in ((1,), (1, 1), (1, 1, 1)):
        feeds = {"x": x, "p": one.reshape(shape)}
        if refused and len(shape) >= len(refused[0]):
            with pytest.raises(InvalidArgument, match='"p" wants shape'):
                session.run(None, feeds)
        else:
            np.testing.assert_array_equal(session.run(None, feeds)[0], expected, strict=True)
    with pytest.raises(InvalidArgument, match='"p" wants shape'):
        session.run(None, {"x": x, "p": np.stack([one, one])})
    if not refused or len(refused[0]) > 1:
        wanted = native_session(model).run(None, {"x": x, "p": one.reshape(1)})[0]
        np.testing.assert_array_equal(expected, wanted, strict=True)


@pytest.mark.parametrize(
    "node", ["Slice(x, n, m, a)", "Pad(x, p, zero, a)", "CenterCropPad<axes=[0,0]>(x, m)"], ids=["Slice", "Pad", "Crop"]
)
def test_axes_named_twice(new_session, node):
    """Starts of the same axis added up: elements past the tensor were read."""
    numbers = {"n": np.array([5, 5]), "m": np.array([6, 6]), "p": np.array([1, 1, 1, 1]), "a": np.array([0, 0])}
    inputs = ", ".join(f"int64[{name}_size] {name}" for name in numbers)
    text = f"g (float[h,w] x, {inputs}) => (float[p,q] y) {{ y = {node} }}"
    session = new_session(parse(text, {"zero": np.float32(0)}).SerializeToString(), providers=["wasm"])
    with pytest.raises(RuntimeException, match="name an axis twice"):
        session.run(None, {"x": np.ones((6, 4), np.float32), **numbers})
