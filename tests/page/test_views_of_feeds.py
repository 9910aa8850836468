"""Values read on the CPU through views of feeds: each run reads its own, and repeats no earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from array_models import assert_as_native
from text_form import parse

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 10
TYPES = {"int64": np.int64, "bool": np.bool_, "float": np.float32, "double": np.float64, "string": object}


@dataclass
class Reader:
    """Nodes that read `v`, of this shape, and make `y`; its values in four runs."""

    nodes: str
    shape: Sequence[int]
    values: Sequence[Any]
    kind: str = "int64"
    options: Mapping[str, str] = field(default_factory=dict)


ONE = [[1], [3], [2], [5]]
FLOATS = [X + step for step in range(4)]
FLAGS = [[True], [False], [False], [True]]
PADS = [[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 1]]
TURN = "turn (int64 i, bool c, float[8,4] s) => (bool d, float[8,4] t) { t = Add(s, s)  d = Identity(c) }"
YES, NO = (f"{op.lower()} () => (float[8,4] b) {{ b = {op}(x) }}" for op in ("Neg", "Abs"))
READERS = {
    "TopK": Reader("y, at = TopK(x, v)", [1], [[2], [3], [1], [4]]),
    "Slice": Reader("s = Slice(x, zero, v, zero)  y = Neg(s)", [1], ONE),
    "Pad": Reader("y = Pad(x, v)", [4], PADS),
    "Tile": Reader("y = Tile(x, v)", [2], [[1, 2], [2, 1], [1, 1], [3, 1]]),
    "Reshape": Reader("r = Reshape(x, v)  y = Neg(r)", [2], [[4, 8], [2, 16], [16, 2], [1, 32]]),
    "Range": Reader("r = Range(none, v, one)  f = Cast<to=1>(r)  y = Neg(f)", [], ONE),
    "Gather": Reader("g = Gather(x, v)  y = Neg(g)", [], ONE),
    "Loop": Reader(f"y = Loop(v, , x) <body = {TURN}>", [], ONE),
    "If": Reader(f"y = If(v) <then_branch = {YES}, else_branch = {NO}>", [1], FLAGS, "bool"),
    "NonZero": Reader(
        "u = NonZero(v)  f = Cast<to=1>(u)  y = Neg(f)",
        [4],
        [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]],
        "bool",
    ),
    "Shape of NonZero": Reader(
        "u = NonZero(v)  n = Shape(u)  w = Expand(row, n)  y = Neg(w)",
        [4],
        [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]],
        "bool",
    ),
    "Unique": Reader(
        "u = Unique(v)  f = Cast<to=1>(u)  y = Neg(f)", [4], [[1, 2, 3, 4], [9, 8, 7, 6], [1, 1, 1, 2], [5, 5, 5, 5]]
    ),
    "sequence": Reader("q = SequenceConstruct(v, v)  c = SequenceAt(q, none)  y = Neg(c)", [8, 4], FLOATS, "float"),
    "SplitToSequence": Reader(
        "q = SplitToSequence<axis=1>(v)  c = ConcatFromSequence<axis=0>(q)  y = Neg(c)", [8, 4], FLOATS, "float"
    ),
    "Optional": Reader("o = Optional(v)  c = OptionalGetElement(o)  y = Neg(c)", [8, 4], FLOATS, "float"),
    "double": Reader("w = Mul(v, v)  c = Cast<to=1>(w)  y = Neg(c)", [8, 4], FLOATS, "double"),
    "strings": Reader(
        'w = ai.onnx.ml.LabelEncoder<keys_strings=["a","b"], values_floats=[1.0,2.0]>(v)  y = Neg(w)',
        [2],
        [["a", "b"], ["b", "b"], ["b", "a"], ["a", "a"]],
        "string",
    ),
    "Scaler": Reader("w = ai.onnx.ml.Scaler<offset=[1.0], scale=[0.5]>(v)  y = Neg(w)", [8, 4], FLOATS, "float"),
    "a node on wasm": Reader("c = Tanh(v)  y = Neg(c)", [8, 4], FLOATS, "float", {"forceCpuNodeNames": "cpu"}),
}


def drawn_views(reader: Reader, rng: np.random.Generator) -> tuple[str, list[int], dict[str, np.ndarray]]:
    """Views from a feed to `v`, the shape of the feed, and constants. Drawn backwards: the last one first."""
    nodes: list[str] = []
    shape, value, shapes = list(reader.shape), "v", {}
    for step in range(int(rng.integers(1, 4))):
        kind = rng.choice(["Identity", "Reshape", "Squeeze", *["Unsqueeze"] * (1 in shape)])
        before, operand = f"v{step}", ""
        if kind == "Squeeze":  # of an additional axis of the feed
            axis = int(rng.integers(0, len(shape) + 1))
            operand = f", axis{axis}"
            shape.insert(axis, 1)
        elif kind == "Unsqueeze":
            axis = shape.index(1)
            operand = f", axis{axis}"
            del shape[axis]
        elif kind == "Reshape":
            operand = f", shape{step}"
            shapes[f"shape{step}"] = np.array(shape, np.int64)
            shape = [1, *shape]
        nodes.append(f"{value} = {kind}({before}{operand})")
        value = before
    nodes.append(f"{value} = Identity(fed)")
    return "  ".join(nodes[::-1]), shape, shapes


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", READERS)
def test_each_run_reads_its_own_feed(new_session, name, seed):
    reader = READERS[name]
    views, shape, shapes = drawn_views(reader, np.random.default_rng([seed, len(name)]))
    arrays = {"zero": np.array([0]), "none": np.array(0), "one": np.array(1), "row": np.ones((1, 1), np.float32)}
    arrays |= shapes | {f"axis{k}": np.array([k]) for k in range(6)}
    fed = reader.kind + (str(shape) if shape else "")
    text = f"g (float[8,4] x, {fed} fed) => (y) {{ {views}  {reader.nodes} }}"
    model = parse(f'<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]> {text}', arrays)
    for node in model.graph.node:
        node.name = "cpu" if node.op_type == "Tanh" else ""
    session = new_session(model, providers=[("webgpu", reader.options)])
    runs = [{"x": X, "fed": np.array(value, TYPES[reader.kind]).reshape(shape)} for value in reader.values]
    assert_as_native(session, model, *runs, rtol=1e-4)
