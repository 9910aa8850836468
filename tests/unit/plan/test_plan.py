"""Contents of a plan."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import compiled, parse

from py_ort.compiler import CompileOptions
from py_ort.compiler.plan.dump import dump, node_attributes, read_plan
from py_ort.compiler.plan.weights import ALIGNMENT
from py_ort.exceptions import InvalidArgument

I64 = np.int64
# Places: the heap, and the first device.
HEAP, DEVICE = 1, 2


def _f(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


MODEL = parse(
    "g (float[n,3] x) => (float[n,3] y, float[n,1] z) { a = Add(x, c)  y = Relu(a)  z = ReduceSum(a, axes) }",
    {"c": _f(3), "axes": np.array([1], I64)},
)


def test_values_nodes_and_uses() -> None:
    plan = read_plan(compiled(MODEL).plan)
    graph = plan.graphs[0]
    names = [plan.values[i].name.decode() for i in graph.inputs]
    assert names == ["x"] and [plan.values[i].name.decode() for i in graph.outputs] == ["y", "z"]
    x = plan.values[graph.inputs[0]]
    assert x.rankKnown and list(x.dims) == [-1, 3] and x.dtype == 1
    reduce = next(n for n in graph.nodes if n.opType == b"ReduceSum")
    assert list(reduce.uses) == [0, 1]
    assert node_attributes(reduce)["keepdims"] == 1
    assert all(node.provider == 1 for node in graph.nodes)


def test_weights_are_aligned_and_know_who_reads_them() -> None:
    result = compiled(MODEL)
    plan = read_plan(result.plan)
    found = {plan.values[w.value].name.decode(): w for w in plan.weights}
    assert {w.places for w in found.values()} == {DEVICE, HEAP}
    assert all(w.offset % ALIGNMENT == 0 for w in found.values())
    blob = result.weights.tobytes()
    assert len(blob) == plan.weightsSize == result.weights.size
    constant = next(w for w in found.values() if w.places == DEVICE)
    assert np.frombuffer(blob, np.float32, 3, constant.offset).tolist() == [0, 1, 2]


def test_input_placement() -> None:
    model = parse("g (float[n] x, int64[1] s) => (float[m] y) { r = Relu(x)  y = Reshape(r, s) }")
    plan = read_plan(compiled(model).plan)
    assert [p.places for p in plan.inputPlacement] == [DEVICE, HEAP]


def test_an_input_wanted_in_both_places() -> None:
    model = parse("g (float[3,3] x) => (float[3,3] y, float z) { y = Relu(x)  z = Det(x) }")
    plan = read_plan(compiled(model).plan)
    assert [p.places for p in plan.inputPlacement] == [HEAP | DEVICE]


def test_an_input_that_nothing_reads_goes_to_the_cpu() -> None:
    model = parse("g (float[3] x, float[2] unused) => (float[3] y) { y = Relu(x) }")
    plan = read_plan(compiled(model).plan)
    assert [p.places for p in plan.inputPlacement] == [DEVICE, HEAP]


def test_subgraphs_share_the_values() -> None:
    model = parse(
        """g (float[2] x, bool p) => (float[2] y) { a = Relu(x)
            y = If (p) <then_branch = yes () => (float[2] o) { o = Tanh(a) }, else_branch = no () => (float[2] q) { q
            = Mul(a, k) }> }""",
        {"k": np.float32([2, 3])},
    )
    plan = read_plan(compiled(model).plan)
    assert [g.name for g in plan.graphs] == [b"g", b"yes", b"no"] or {g.name for g in plan.graphs} == {
        b"g",
        b"yes",
        b"no",
    }
    outer = plan.graphs[0].nodes[0].outputs[0]
    branch = next(n for n in plan.graphs[0].nodes if n.opType == b"If")
    assert {s.name for s in branch.subgraphs} == {b"then_branch", b"else_branch"}
    for subgraph in branch.subgraphs:
        assert plan.graphs[subgraph.graph].nodes[0].inputs[0] == outer


def test_omitted_inputs_and_unread_outputs_are_minus_one() -> None:
    model = parse("g (float[2,4] x) => (float[2,1] v) { v, i = TopK(x, k) }", {"k": np.array([1], I64)})
    node = read_plan(compiled(model).plan).graphs[0].nodes[0]
    assert list(node.outputs)[1:] in ([-1], [])


def test_attributes_of_every_kind() -> None:
    model = parse("g (int64[2] s) => (float[a,b] y) { y = ConstantOfShape<value = float[1] {2.5}>(s) }")
    node = read_plan(compiled(model).plan).graphs[0].nodes[0]
    tensor = node_attributes(node)["value"]
    assert tensor.dtype == 1 and np.frombuffer(bytes(tensor.data), np.float32).tolist() == [2.5]


def test_strings_are_weights_without_bytes() -> None:
    import onnx

    model = parse("g (bool[2] p, string[2] x) => (string[2] y) { y = Where(p, x, c) }")
    model.graph.initializer.append(onnx.helper.make_tensor("c", onnx.TensorProto.STRING, [2], ["ä", "bc"]))
    result = compiled(model)
    (weight,) = read_plan(result.plan).weights
    assert [s.decode() for s in weight.strings] == ["ä", "bc"] and weight.size == 0


def test_origins_name_the_models_nodes() -> None:
    model = parse("g (float[1,3,8,6] x) => (float[a,b,c,d] y) { c = Conv(x, w)  y = Relu(c) }", {"w": _f(4, 3, 3, 3)})
    model.graph.node[0].name, model.graph.node[1].name = "the_conv", "the_relu"
    conv = next(n for n in read_plan(compiled(model).plan).graphs[0].nodes if n.opType == b"Conv")
    assert conv.origin == b"the_conv, the_relu"


def test_the_dump_shows_every_node() -> None:
    result = compiled(MODEL)
    text = dump(result.plan)
    assert all(node.op_type in text for node in result.placement.nodes)
    assert "^@" in text, "host inputs are marked"


def test_the_models_types_are_known_at_the_outputs_even_if_it_left_them_out() -> None:
    model = parse("g (float[2] x) => (float[2] y) { y = Cast<to=7>(x) }")
    model.graph.output[0].ClearField("type")
    assert compiled(model).outputs[0].type == "tensor(int64)"


@pytest.mark.parametrize(("level", "number"), [("disabled", 0), ("all", 99), (2, 2)])
def test_levels(level: str | int, number: int) -> None:
    assert CompileOptions(graph_optimization_level=level).level() == number


@pytest.mark.parametrize(
    "options", [{"graph_optimization_level": "most"}, {"graph_optimization_level": 7}, {"preferred_layout": "NC"}]
)
def test_wrong_options(options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        compiled(MODEL, level=options.pop("graph_optimization_level", "all"), **options)  # type: ignore[arg-type]


def test_free_dimensions() -> None:
    result = compiled(MODEL, free_dimension_overrides={"n": 5, "of another model": 3})
    plan = read_plan(result.plan)
    assert list(plan.values[plan.graphs[0].inputs[0]].dims) == [5, 3]
    with pytest.raises(InvalidArgument, match="must be 0 or more"):
        compiled(MODEL, free_dimension_overrides={"n": -1})


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 1), (-2, 3)], ids=str)
def test_shapes_that_an_input_cannot_have(shape: tuple[int, ...]) -> None:
    name = MODEL.graph.input[0].name
    with pytest.raises(
        InvalidArgument, match=rf"'{name}' cannot have the shape .{', '.join(map(str, shape))}.: .*, 3\]"
    ):
        compiled(MODEL, input_shapes={name: shape})
