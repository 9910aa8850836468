"""Models with user kernels in native onnxruntime: the kernels' references run between its parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from py_ort import UserKernel, register_kernel, unregister_kernel
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.testing.compare import Native, compare
from py_ort.testing.native_model import NativeModel
from py_ort.testing.reference import reference
from py_ort.testing.split_model import split

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
W = np.arange(1, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    kernels = (
        UserKernel(name="split::Half", expression="x * by", attributes={"by": 0.5}, reference=lambda x, by: x * by),
        UserKernel(
            name="split::Sum",
            inputs=["x", "y", "z?"],
            body="store_y(i, load_x(i));",
            outputs=["s", "n"],
            dtypes={"s": "x", "n": "int64"},
            reference=lambda x, y, z=0.0: (x + y + z, np.sign(x)),
        ),
        UserKernel(name="split::Silent", expression="x"),
    )
    for kernel in kernels:
        register_kernel(kernel)
    yield
    for kernel in kernels:
        unregister_kernel(kernel.name)


def model(nodes: list[onnx.NodeProto], *outputs: str) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph(
        nodes, "split", [x], [onnx.ValueInfoProto(name=name) for name in outputs], [numpy_helper.from_array(W, "w")]
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("split", 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=imports)


def half(x: str, y: str, **attributes: float) -> onnx.NodeProto:
    return helper.make_node("Half", [x], [y], domain="split", **attributes)


def test_native_nodes_before_between_and_behind() -> None:
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["a"]),
        half("a", "b", by=3.0),
        helper.make_node("Add", ["b", "x"], ["c"]),
        half("w", "v"),
        helper.make_node("Sum", ["c", "v"], ["d", "signs"], domain="split"),
        helper.make_node("Neg", ["d"], ["e"]),
    ]
    native = NativeModel(model(nodes, "e", "signs", "w", "b").SerializeToString())
    (feeds, found) = native.first_taken([{"x": X}])
    assert native.trouble == "" and feeds["x"] is X
    assert list(found) == ["e", "signs", "w", "b"]
    c = X * W * 3 + X
    np.testing.assert_allclose(found["e"], -(c + W / 2), rtol=1e-6)
    assert found["signs"].dtype == np.int64 and found["signs"].tolist() == np.sign(c).tolist()
    np.testing.assert_array_equal(found["w"], W)


def test_values_that_only_a_branch_reads_and_sequences() -> None:
    yes = helper.make_graph([helper.make_node("Neg", ["b"], ["t"])], "yes", [], [floats("t")])
    no = helper.make_graph([helper.make_node("Add", ["b", "a"], ["f"])], "no", [], [floats("f")])
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("SequenceConstruct", ["a", "x"], ["pair"]),
        half("a", "b"),
        helper.make_node("ReduceMax", ["b"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["condition"], to=TensorProto.BOOL),
        helper.make_node("If", ["condition"], ["c"], then_branch=yes, else_branch=no),
        helper.make_node("ConcatFromSequence", ["pair"], ["joined"], axis=0),
    ]
    outputs = NativeModel(model(nodes, "c", "joined").SerializeToString()).run({"x": X})
    np.testing.assert_array_equal(outputs[0], -np.abs(X) / 2)
    np.testing.assert_array_equal(outputs[1], np.concatenate([np.abs(X), X]))


def floats(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def test_weights_in_another_file(tmp_path) -> None:
    nodes = [half("w", "v"), helper.make_node("Mul", ["x", "v"], ["a"]), helper.make_node("Add", ["a", "w"], ["y"])]
    file = tmp_path / "model.onnx"
    onnx.save(model(nodes, "y"), file, save_as_external_data=True, location="w.bin", size_threshold=0)
    for native in (NativeModel(file), NativeModel(file.read_bytes(), tmp_path)):
        np.testing.assert_allclose(native.run({"x": X})[0], X * W / 2 + W, rtol=1e-6)


def test_what_cannot_be_compared_says_why() -> None:
    silent = helper.make_node("Silent", ["x"], ["y"], domain="split")
    native = NativeModel(model([silent], "y").SerializeToString())
    assert native.run({"x": X}) is None
    assert native.trouble == "user kernel split::Silent has no reference= to compare with"
    unknown = helper.make_node("Unknown", ["b"], ["y"], domain="split")
    native = NativeModel(model([half("x", "b"), unknown], "y").SerializeToString())
    assert native.run({"x": X}) is None
    assert "refuses the model or its inputs" in native.trouble and "Unknown" in native.trouble


def test_a_kernel_inside_of_a_node_has_no_reference() -> None:
    def branch(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=name)])

    inner = helper.make_node("If", ["c"], ["t"], "inner", then_branch=branch("a", half("x", "a")))
    inner.attribute.append(helper.make_attribute("else_branch", branch("b", helper.make_node("Neg", ["x"], ["b"]))))
    outer = helper.make_node("If", ["c"], ["y"], "outer", then_branch=branch("t", inner))
    outer.attribute.append(helper.make_attribute("else_branch", branch("e", helper.make_node("Abs", ["x"], ["e"]))))
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    proto = model([condition, outer], "y").SerializeToString()
    with pytest.raises(NotImplemented, match=r"no reference .*split::Half runs inside of If 'outer': its reference= "):
        reference(proto, {"x": X})


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda x, by: x[:1], "split::Half: y is [2, 3], its reference= returns [1, 3]"),
        (lambda x, by: (x, x), "split::Half: the reference gives 2 outputs, not 1"),
        (
            lambda x, by: 1 // 0,
            "split::Half: its reference= raised ZeroDivisionError: integer division or modulo by zero",
        ),
    ],
)
def test_a_wrong_reference_is_the_kernels_fault(returned, words) -> None:
    """The error names the kernel, not onnxruntime, and has the user's exception as its cause."""
    proto = model([half("x", "y")], "y").SerializeToString()
    register_kernel("split::Half", expression="x * by", attributes={"by": 0.5}, reference=returned)
    for compared in (
        lambda: reference(proto, {"x": X}),
        lambda: compare(proto, {"x": X}, Native(), Native()),
    ):
        with pytest.raises(InvalidArgument) as caught:
            compared()
        assert str(caught.value) == words
        assert isinstance(caught.value.__cause__, ZeroDivisionError if "raised" in words else type(None))


def test_sessions_are_made_once_for_all_feeds() -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["a"]), half("a", "b"), helper.make_node("Neg", ["b"], ["c"])]
    made = []

    def make_session(part: bytes) -> ort.InferenceSession:
        made.append(ort.InferenceSession(part))
        return made[-1]

    parts = split(model(nodes, "c").SerializeToString(), None, make_session)
    assert parts is not None
    for feed in (X, X[:1], np.concatenate([X, X])):
        (found,) = parts.run({"x": feed})
        np.testing.assert_allclose(found, -(feed * W / 2), rtol=1e-6)
    assert len(made) == 2
