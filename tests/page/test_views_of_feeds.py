"""Values read on the CPU through views of feeds: each run reads its own, and repeats no earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session
from onnx import TensorProto, helper, numpy_helper

node, info = helper.make_node, helper.make_tensor_value_info
X = np.arange(32, dtype=np.float32).reshape(8, 4) / 10
ONE = [[1], [3], [2], [5]]
ML = "ai.onnx.ml"


def branch(op_type: str) -> onnx.GraphProto:
    return helper.make_graph([node(op_type, ["x"], ["b"])], op_type, [], [onnx.ValueInfoProto(name="b")])


def body() -> onnx.GraphProto:
    nodes = [node("Add", ["s", "s"], ["t"]), node("Identity", ["c"], ["d"])]
    inputs = [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [8, 4])]
    outputs = [info("d", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, [8, 4])]
    return helper.make_graph(nodes, "body", inputs, outputs)


@dataclass
class Reader:
    """A node that reads `v`, of this shape, and makes `y`; its values in four runs."""

    nodes: Sequence[onnx.NodeProto]
    shape: Sequence[int]
    values: Sequence[Any]
    dtype: Any = np.int64
    options: Mapping[str, str] = field(default_factory=dict)


FLOATS = [X + step for step in range(4)]
FLAGS = [[True], [False], [False], [True]]
READERS = {
    "TopK": Reader([node("TopK", ["x", "v"], ["y", "at"])], [1], [[2], [3], [1], [4]]),
    "Slice": Reader([node("Slice", ["x", "zero", "v", "zero"], ["s"]), node("Neg", ["s"], ["y"])], [1], ONE),
    "Pad": Reader([node("Pad", ["x", "v"], ["y"])], [4], [[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]),
    "Tile": Reader([node("Tile", ["x", "v"], ["y"])], [2], [[1, 2], [2, 1], [1, 1], [3, 1]]),
    "Reshape": Reader(
        [node("Reshape", ["x", "v"], ["r"]), node("Neg", ["r"], ["y"])], [2], [[4, 8], [2, 16], [16, 2], [1, 32]]
    ),
    "Range": Reader(
        [node("Range", ["none", "v", "one"], ["r"]), node("Cast", ["r"], ["f"], to=1), node("Neg", ["f"], ["y"])],
        [],
        ONE,
    ),
    "Gather": Reader([node("Gather", ["x", "v"], ["g"]), node("Neg", ["g"], ["y"])], [], ONE),
    "Loop": Reader([node("Loop", ["v", "", "x"], ["y"], body=body())], [], ONE),
    "If": Reader(
        [node("If", ["v"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))], [1], FLAGS, np.bool_
    ),
    "NonZero": Reader(
        [node("NonZero", ["v"], ["u"]), node("Cast", ["u"], ["f"], to=1), node("Neg", ["f"], ["y"])],
        [4],
        [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]],
        np.bool_,
    ),
    "Shape of NonZero": Reader(
        [
            node("NonZero", ["v"], ["u"]),
            node("Shape", ["u"], ["n"]),
            node("Expand", ["row", "n"], ["w"]),
            node("Neg", ["w"], ["y"]),
        ],
        [4],
        [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]],
        np.bool_,
    ),
    "Unique": Reader(
        [node("Unique", ["v"], ["u"]), node("Cast", ["u"], ["f"], to=1), node("Neg", ["f"], ["y"])],
        [4],
        [[1, 2, 3, 4], [9, 8, 7, 6], [1, 1, 1, 2], [5, 5, 5, 5]],
    ),
    "sequence": Reader(
        [
            node("SequenceConstruct", ["v", "v"], ["q"]),
            node("SequenceAt", ["q", "none"], ["c"]),
            node("Neg", ["c"], ["y"]),
        ],
        [8, 4],
        FLOATS,
        np.float32,
    ),
    "SplitToSequence": Reader(
        [
            node("SplitToSequence", ["v"], ["q"], axis=1),
            node("ConcatFromSequence", ["q"], ["c"], axis=0),
            node("Neg", ["c"], ["y"]),
        ],
        [8, 4],
        FLOATS,
        np.float32,
    ),
    "Optional": Reader(
        [node("Optional", ["v"], ["o"]), node("OptionalGetElement", ["o"], ["c"]), node("Neg", ["c"], ["y"])],
        [8, 4],
        FLOATS,
        np.float32,
    ),
    "double": Reader(
        [node("Mul", ["v", "v"], ["w"]), node("Cast", ["w"], ["c"], to=1), node("Neg", ["c"], ["y"])],
        [8, 4],
        FLOATS,
        np.float64,
    ),
    "strings": Reader(
        [
            node("LabelEncoder", ["v"], ["w"], domain=ML, keys_strings=["a", "b"], values_floats=[1.0, 2.0]),
            node("Neg", ["w"], ["y"]),
        ],
        [2],
        [["a", "b"], ["b", "b"], ["b", "a"], ["a", "a"]],
        object,
    ),
    "Scaler": Reader(
        [node("Scaler", ["v"], ["w"], domain=ML, offset=[1.0], scale=[0.5]), node("Neg", ["w"], ["y"])],
        [8, 4],
        FLOATS,
        np.float32,
    ),
    "a node on wasm": Reader(
        [node("Tanh", ["v"], ["c"], name="cpu"), node("Neg", ["c"], ["y"])],
        [8, 4],
        FLOATS,
        np.float32,
        {"forceCpuNodeNames": "cpu"},
    ),
}


def drawn_views(reader: Reader, rng: np.random.Generator) -> tuple[list[onnx.NodeProto], list[int]]:
    """Views from a feed to `v`, and the shape of the feed. Drawn backwards: the last one first."""
    nodes: list[onnx.NodeProto] = []
    shape, value = list(reader.shape), "v"
    for step in range(int(rng.integers(1, 4))):
        kind = rng.choice(["Identity", "Reshape", "Squeeze", *["Unsqueeze"] * (1 in shape)])
        before = f"v{step}"
        if kind == "Squeeze":  # of an additional axis of the feed
            axis = int(rng.integers(0, len(shape) + 1))
            nodes.append(node("Squeeze", [before, f"axis{axis}"], [value]))
            shape.insert(axis, 1)
        elif kind == "Unsqueeze":
            axis = shape.index(1)
            nodes.append(node("Unsqueeze", [before, f"axis{axis}"], [value]))
            del shape[axis]
        elif kind == "Reshape":
            wanted = f"shape{step}"
            nodes.append(node("Constant", [], [wanted], value=numpy_helper.from_array(np.array(shape, np.int64))))
            nodes[-1:] = [node("Reshape", [before, wanted], [value]), nodes[-1]]
            shape = [1, *shape]
        else:
            nodes.append(node("Identity", [before], [value]))
        value = before
    nodes.append(node("Identity", ["fed"], [value]))
    return nodes[::-1], shape


@pytest.mark.browser
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", READERS)
def test_each_run_reads_its_own_feed(new_session, name, seed):
    reader = READERS[name]
    views, shape = drawn_views(reader, np.random.default_rng([seed, len(name)]))
    arrays = {
        "zero": np.array([0]),
        "none": np.array(0),
        "one": np.array(1),
        "row": np.ones((1, 1), np.float32),
        **{f"axis{k}": np.array([k]) for k in range(6)},
    }
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(reader.dtype))
    inputs = [info("x", TensorProto.FLOAT, [8, 4]), info("fed", dtype, shape)]
    initializers = [numpy_helper.from_array(array, key) for key, array in arrays.items()]
    outputs = [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph([*views, *reader.nodes], "views", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    session = new_session(model, providers=[("webgpu", reader.options)])
    native = native_session(model)
    for value in reader.values:
        feeds = {"x": X, "fed": np.array(value, reader.dtype).reshape(shape)}
        np.testing.assert_allclose(
            session.run(None, feeds)[0], native.run(None, feeds)[0], rtol=1e-4, atol=1e-5, err_msg=f"{shape} {value}"
        )
