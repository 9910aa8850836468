"""The bodies of a node are converted to the newest form once, however the nodes around it are rewritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from graphs import operators, parse
from standard_form import run_native, standard_form

from py_ort.compiler import compile_model
from py_ort.compiler.canonical.canonicalize import canonicalize
from py_ort.ir.operators import LOWERINGS, Lowering

UPSAMPLE = 'Upsample<mode="nearest">(x, scales)'


def _scales(graph: ir.Graph) -> list[Any]:
    return [
        node.inputs[2] and node.inputs[2].const_value.numpy().tolist()
        for node in ir.traversal.RecursiveGraphIterator(graph)
        if node.op_type == "Resize"
    ]


def _passed_on(node: ir.Node, build: Any) -> Any:
    return node.inputs[0]


def _passed_on_beside(node: ir.Node, build: Any) -> Any:
    return node.inputs[0], build.op("Neg", node.inputs[0])


@pytest.mark.parametrize(("rewrite", "outputs"), [(_passed_on, "y"), (_passed_on_beside, "y, z")])
def test_a_rewrite_that_gives_an_input_back(monkeypatch, rewrite: Any, outputs: str) -> None:
    """Upsample-9 becomes Resize; a second conversion, as Resize-9, would read its scales elsewhere."""
    declared = outputs.replace("z", "float[a,b,d,e] z")
    proto = onnx.parser.parse_model(f"""<ir_version: 4, opset_import: ["" : 9, "test" : 1]>
        g (bool c, float[1,1,2,2] x, float[4] scales) => (float[a,b,d,e] {declared}) {{
        u = If(c) <then_branch = t () => (float[a,b,d,e] p) {{ p = {UPSAMPLE} }},
                   else_branch = f () => (float[a,b,d,e] q) {{ q = {UPSAMPLE} }}>
        {outputs} = test.PassOn(u) }}""")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"))
    monkeypatch.setitem(LOWERINGS, ("test", "PassOn"), [Lowering("PassOn", 10_000, 1, rewrite, "test")])
    model = ir.from_proto(proto)
    canonicalize(model)
    assert _scales(model.graph) == [[1, 1, 2, 2]] * 2


def test_a_body_given_to_two_nodes_of_a_function() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 9, "local" : 1]>
        g (bool c, float[1,1,2,2] x) => (float[a,b,d,e] y) { y = local.Either
        <body = t () => (float[a,b,d,e] p) { scales = Constant<value = float[4] {1,1,2,2}>()
        z = Constant<value = float[1,1,2,2] {1,2,3,4}>()  p = Upsample<mode="nearest">(z, scales) }>(c) }
        <domain: "local", opset_import: ["" : 9]>
        Either <body>(c) => (y) {
        a = If<then_branch: graph = @body, else_branch: graph = @body>(c)
        b = If<then_branch: graph = @body, else_branch: graph = @body>(c)  y = Add(a, b) }""")
    found = ir.from_proto(model)
    canonicalize(found)
    assert _scales(found.graph) == [[1, 1, 2, 2]] * 4


def test_a_body_in_an_operator_that_is_made_of_others() -> None:
    """SequenceMap becomes a Loop, by a function of opset 17: its body is newer."""
    model = parse(
        """g (float[2,4,3] x) => (float[n,a,b] y) { s = SplitToSequence<axis=0>(x)
        m = SequenceMap<body = t (float[a,b,c] p) => (float[a,b,c] q) {
        k = Constant<value = float[4] {1,2,3,4}>()  o = Constant<value = float[4] {0,1,0,1}>()
        q = GroupNormalization<num_groups=2>(p, k, o) }>(s)
        y = ConcatFromSequence<axis=0>(m) }"""
    )
    result = compile_model(model.SerializeToString(), providers=["wasm"])
    assert operators(result).get("SequenceMap", 0) == 0
    x = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
    groups = x.reshape(2, 2, 6)
    wanted = (groups - groups.mean(-1, keepdims=True)) / np.sqrt(groups.var(-1, keepdims=True) + 1e-5)
    wanted = wanted.reshape(2, 4, 3) * np.array([[1], [2], [3], [4]]) + np.array([[0], [1], [0], [1]])
    np.testing.assert_allclose(run_native(standard_form(result), {"x": x})[0], wanted, rtol=1e-4, atol=1e-4)
