"""Reports of passes, the effect of each level, and the time that many nodes take."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import small_models
from bert import bert
from click.testing import CliRunner
from graphs import check_equal, compiled, operators, parse, random_feeds
from onnx import helper, numpy_helper

from py_ort.cli import cli
from py_ort.compiler import CompileOptions, compile_model

_W = np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype(np.float32)
NETWORK = """g (float[1,4,H,W] x) => (float[N,8,P,Q] y) {
    a = Conv<pads=[1,1,1,1]>(x, w)
    b = BatchNormalization(a, s, s, s, s)
    i = Identity(b)
    y = Relu(i)
}"""


def network():
    return parse(NETWORK, {"w": _W, "s": np.linspace(0.5, 2, 8, dtype=np.float32)})


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("disabled", {}),
        ("basic", {"Conv": 1, "Relu": 1}),
        ("extended", {"Conv": 1}),
        ("layout", {"Transpose": 2, "nhwc.Conv": 1}),
        ("all", {"Transpose": 2, "nhwc.Conv": 1}),
    ],
)
def test_levels(level, expected):
    result = compiled(network(), level=level)
    found = operators(result)
    if level == "disabled":  # BatchNormalization may be a kernel, or in parts
        assert found["Conv"] == found["Identity"] == found["Relu"] == 1
    else:
        assert found == expected
    fused = any(node.attributes.get("epilogue") for node in result.model.graph)
    assert fused == (level in ("extended", "layout", "all"))
    check_equal(network(), result, feeds=random_feeds(network(), {"H": 6, "W": 5}), tolerance=1e-3)


def test_a_pass_that_changes_nothing_says_so():
    result = compiled(parse("g (float[2] x) => (float[2] y) { y = Relu(x) }"))
    assert all(report.changes == 0 and report.before == report.after == 1 for report in result.passes)


def test_passes_account_for_the_nodes_they_remove():
    for report in compiled(bert()).passes:
        assert report.before == report.after or report.changes > 0, f"{report.name} says that nothing changed"


@pytest.mark.parametrize("as_json", [False, True], ids=["table", "json"])
def test_command_line(tmp_path, as_json):
    (tmp_path / "model.onnx").write_bytes(network().SerializeToString())
    arguments = ["passes", str(tmp_path / "model.onnx"), "--provider", "wasm", "--level", "extended", "--dim", "H=6"]
    arguments += ["--save", str(tmp_path / "optimized.onnx"), *(["--json", "-"] if as_json else [])]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0 and (tmp_path / "optimized.onnx").stat().st_size > 0
    if as_json:
        told = json.loads(done.stdout)
        assert told["launches"] == {"wasm": 1} and told["shape_arithmetic"] == 0
        named = {report["name"]: report for report in told["passes"]}
        assert named["activation"]["changes"] == 1 and named["activation"]["before"] == named["activation"]["after"] + 1
        assert named["batch_normalization"]["operators"] == {"BatchNormalization": -1, "Mul": 1, "Add": 1}
        assert named["dead_code"]["constants"] == 0 < named["batch_normalization"]["constants"]
    else:
        assert "no change" in done.stdout and "kernels to launch: 1 on wasm" in done.stdout
        assert "-1 BatchNormalization +1 Add +1 Mul +2 constants" in done.stdout and "nodes: 4 → 1;" in done.stdout


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("make", [lambda: bert().SerializeToString(), lambda: asks_for_sizes()], ids=["bert", "sizes"])
def test_known_shapes_leave_no_arithmetic(make, provider):
    shapes = {"input_ids": (2, 9), "attention_mask": (2, 9), "x": (5, 64)}
    options = CompileOptions(input_shapes=shapes)
    result = compile_model(make(), providers=[provider, "wasm"], options=options)
    assert result.placement.arithmetic() == 0
    kinds = {node.op_type for node in result.placement.nodes}
    assert not kinds & {"Shape", "Size", "Range", "Concat", "Unsqueeze", "ConstantOfShape", "Expand"}
    assert all(d > 0 for value in result.model.graph.outputs for d in value.shape)


def asks_for_sizes() -> bytes:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["places"]),
        helper.make_node("Gather", ["x", "places"], ["rows"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["rows", "target"], ["y"]),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "axis": np.array([0]), "rest": np.array([8, 8])}
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    ends = [small_models.floats("x", ["N", 64]), small_models.floats("y", ["N", 8, 8])]
    return small_models.model(nodes, ends[:1], ends[1:], tensors)


def _long(nodes: int) -> bytes:
    made, value = [], "x"
    for i in range(0, nodes, 4):
        made.append(helper.make_node("MatMul", [value, f"w{i % 64}"], [f"a{i}"]))
        made.append(helper.make_node("Shape", [f"a{i}"], [f"s{i}"]))
        made.append(helper.make_node("Reshape", [f"a{i}", f"s{i}"], [f"b{i}"]))
        made.append(helper.make_node("Tanh", [f"b{i}"], [f"c{i}"]))
        value = f"c{i}"
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32), f"w{i}") for i in range(0, 64, 4)
    ]
    ends = [small_models.floats("x", ["N", 8]), small_models.floats(value, ["N", 8])]
    return small_models.model(made, ends[:1], ends[1:], weights)


def test_time_grows_as_the_nodes_do():
    def seconds(nodes: int) -> float:
        model, began = _long(nodes), time.process_time()
        compile_model(model, providers=["wasm"])
        return time.process_time() - began

    seconds(100)
    few, many = seconds(1000), seconds(4000)
    assert many < 10 * few, f"{few:.2f} s for 1,000 nodes, and {many:.2f} s for 4,000"
    assert many * 40_000 / 4_000 < 60
