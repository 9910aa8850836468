"""Calls of ONNX's C++ avoid the arguments that crash it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import drawn_nodes
import numpy as np
import onnx_ir as ir
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

from py_ort.compiler import compile_model
from py_ort.exceptions import InvalidGraph
from py_ort.ir.infer import infer_node
from py_ort.ir.onnx_calls import infer_outputs
from py_ort.ir.onnx_process import Refused, onnx_process
from py_ort.ir.schemas import schema

F = np.float32
#: Graphs with a node whose inference crashes the process in onnx 1.23, and py_ort's error.
DEADLY: dict[str, tuple[str, dict[str, np.ndarray], str]] = {
    "an image smaller than a window, then Slice": (
        "g (float[1,1,2,2] x) => (float[a,b,c,d] y) { c = MaxPool<kernel_shape=[5,5]>(x)  y = Slice(c, s, e, s2) }",
        {"s": np.array([0]), "e": np.array([2**31 - 1]), "s2": np.array([2])},
        r"MaxPool\): its output would have the shape \[1, 1, -2, -2\]",
    ),
    "a negative pad, then GatherND": (
        """g (int64[2,2] i, float[2,2] x) => (float[n,m] y) { p = Pad(i, pads, k)  y = GatherND(x, p) }""",
        {"pads": np.array([0, 0, 0, -5]), "k": np.array(0)},
        r"Pad\): its output would have the shape \[2, -3\]",
    ),
    "more elements than 64 bits count, then ReduceSum": (
        "g (float[1] x) => (float[a] y) { r = Range(zero, most, one)  s = ReduceSum<keepdims=0>(r)  y = Add(x, s) }",
        {"zero": F(0), "most": F(1e30), "one": F(1)},
        r"Range\): its output would have the shape",
    ),
    "an axis of 64 bits": (
        f"g (float[2,3] x, float[3] w) => (float[2,3] y) {{ y = LayerNormalization<axis={2**63 - 1}>(x, w) }}",
        {},
        "which is no axis",
    ),
    "outputs that its attribute does not count": (
        "g (float[4] x) => (float[a] y, float[b] z) { y, z = Split<num_outputs=1>(x) }",
        {},
        "'num_outputs' is 1, and it has 2 outputs",
    ),
    "the same in a function, whose caller says it": (
        """<ir_version: 9, opset_import: ["" : 21, "l" : 1]> g (float[4] x) => (float[a] y, float[b] z) {
            y, z = l.F<n=1>(x) } <domain: "l", opset_import: ["" : 21]> F<n>(x) => (y, z) {
            y, z = Split<num_outputs: int = @n>(x) }""",
        {},
        "'num_outputs' is 1, and it has 2 outputs",
    ),
}


@pytest.mark.parametrize(("text", "constants", "says"), DEADLY.values(), ids=DEADLY)
def test_deadly_nodes_are_refused(text: str, constants: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(InvalidGraph, match=says):
        compile_model(parse(text, constants).SerializeToString(), providers=["wasm"])


def test_drawn_nodes_are_survived() -> None:
    count = "500"
    program = Path(drawn_nodes.__file__)
    result = subprocess.run([sys.executable, program, "0", count], capture_output=True, text=True, timeout=250)
    assert (result.returncode, result.stdout) == (0, f"{count}\n"), result.stderr.rpartition("\r")[2][-2000:]


def node_of(op_type: str, *shapes: list[int], **attributes: int) -> ir.Node:
    values = [ir.Value(type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape(shape)) for shape in shapes]
    return ir.Node("", op_type, values, [ir.AttrInt64(*item) for item in attributes.items()])


def test_another_process_answers_what_this_one_would_and_may_die() -> None:
    for _ in range(2):
        with pytest.raises(InvalidGraph, match=r"GatherND\): ONNX's inference of it ends the process"):
            infer_node(node_of("GatherND", [2, 2, 2], [2, 1], batch_dims=-2), strict=True)
        node = node_of("EyeLike", [2, 3], k=2**40)  # not an ordinary number either, and harmless
        infer_node(node)
        assert node.outputs[0].shape == ir.Shape([2, 3])


def test_a_rank_that_no_tensor_has_takes_no_memory_of_this_process() -> None:
    node = node_of("Expand", [], [2**62])
    with pytest.raises(InvalidGraph, match=r"Expand\): ONNX's inference of it ends the process"):
        infer_outputs(node, schema("", "Expand", 8), 8, strict=True)


def test_it_says_what_onnx_says() -> None:
    with pytest.raises(Refused):
        onnx_process.ask("infer_node", ("Nope", 1, ""), b"", {}, {}, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_process_of_its_own() -> None:
    good = parse("g (float[2] x) => (float[n] y) { y = Relu(x) }").SerializeToString()
    wanted = onnx_process.ask("infer_model", good)
    child = os.fork()
    if child == 0:
        os._exit(0 if onnx_process.ask("infer_model", good) == wanted else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert onnx_process.ask("infer_model", good) == wanted


_BODY = "<body = t (float[2] e) => (float[2] f) { f = Neg(e) }>"
_STATES = "float[2] x, bool c"
#: Sequences for a SequenceMap from sources for which ONNX's function body has no type.
MAPS = {
    "SequenceMap": f"m = SequenceMap{_BODY}(s)",
    "SequenceInsert": f"k = SequenceMap{_BODY}(s)  m = SequenceInsert(k, x)",
    "If": f"""k = SequenceMap{_BODY}(s)  m = If(c) <then_branch = t () => (seq(float[2]) p) {{
        p = SequenceInsert(k, x) }}, else_branch = e () => (seq(float[2]) q) {{ q = Identity(k) }}>""",
    "Loop": f"""k = SequenceMap{_BODY}(s)  m = Loop(two, yes, k) <body = b (int64 i, bool go, si) => (bool on, so) {{
        on = Identity(go)  so = SequenceInsert(si, x) }}>""",
}


@pytest.mark.parametrize("text", MAPS.values(), ids=MAPS)
def test_maps_of_sequences_of_any_origin(text: str) -> None:
    model = parse(
        f"""g ({_STATES}) => (float[n] y) {{ s = SequenceConstruct(x, x)  {text}
        r = SequenceMap{_BODY}(m)  y = ConcatFromSequence<axis=0>(r) }}""",
        {"two": np.array(2), "yes": np.array(True)},
    )
    result = check_equal(
        model, compiled(model, providers=["wasm"]), feeds={"x": np.array([1, 2], F), "c": np.array(True)}
    )
    assert "SequenceMap" not in operators(result)


def test_a_body_that_declares_no_types() -> None:
    """Native onnxruntime then has no type for the sequence."""
    model = parse(
        """g (float[2] x) => (float[n] y) { s = SequenceConstruct(x, x)
        m = SequenceMap<body = t (e) => (f) { f = Mul(e, x) }>(s)  y = ConcatFromSequence<axis=0>(m) }"""
    )
    result = compiled(model, providers=["wasm"])
    found = run_native(standard_form(result), {"x": np.array([1, 2], F)})[0]
    np.testing.assert_array_equal(found, [1, 4, 1, 4])


def test_two_results_of_a_map_and_a_tensor_for_all_elements() -> None:
    model = parse(
        """g (float[2] x) => (float[n] y, float[m] z) { s = SequenceConstruct(x, x, x)
        p, q = SequenceMap<body = t (float[2] e, float[2] w) => (float[2] f, float[4] h) {
        f = Add(e, w)  h = Concat<axis=0>(e, w) }>(s, x)
        y = ConcatFromSequence<axis=0>(p)  z = ConcatFromSequence<axis=0>(q) }"""
    )
    check_equal(model, compiled(model, providers=["wasm"]), feeds={"x": np.array([1, 2], F)})
