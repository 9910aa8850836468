"""Who runs what."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import compiled, parse

from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.plan import CompiledModel
from py_ort.providers import Manifest, canonical_provider, onnxruntime_name

I64 = np.int64


def _where(result: CompiledModel) -> dict[str, tuple[str, str]]:
    return {node.op_type: (node.provider, node.reason) for node in result.placement.nodes}


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("webgpu", "webgpu"),
        ("WebGpuExecutionProvider", "webgpu"),
        ("JsExecutionProvider", "webgpu"),
        ("wasm", "wasm"),
        ("cpu", "wasm"),
        ("CPUExecutionProvider", "wasm"),
        ("WebGLExecutionProvider", "webgl"),
        ("WebNNExecutionProvider", "webnn"),
    ],
)
def test_names(name: str, canonical: str) -> None:
    assert canonical_provider(name) == canonical
    assert canonical_provider(onnxruntime_name(canonical)) == canonical


def test_an_unknown_name() -> None:
    with pytest.raises(InvalidArgument, match="no execution provider is called 'cuda'"):
        canonical_provider("cuda")


def test_the_first_that_can() -> None:
    result = compiled(
        parse(
            "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  y = Det(a) }".replace("float[2,3] y", "float y").replace(
                "[2,3]", "[3,3]"
            )
        )
    )
    assert _where(result)["Relu"] == ("webgpu", "")
    assert _where(result)["Det"] == ("wasm", "webgpu: no kernel")
    assert result.placement.counts() == {"webgpu": 1, "wasm": 1}


def test_dtypes_decide_too() -> None:
    result = compiled(parse("g (double[2] x) => (double[2] y) { y = Relu(x) }"))
    provider, reason = _where(result)["Relu"]
    assert provider == "wasm" and "float64" in reason


def test_what_has_no_form_on_the_gpu_is_not_made_there() -> None:
    result = compiled(parse("g (float[2] x) => (double[2] y) { y = Cast<to=11>(x) }"))
    assert _where(result)["Cast"][0] == "wasm"


def test_shape_arithmetic_stays_on_the_cpu() -> None:
    model = parse(
        """g (float[n,m] x, int64[1] k) => (float[a,b] y) {
            s = Shape(x)  t = Slice(s, zero, one)  h = Div(t, k)  u = Concat<axis=0>(h, minus)  r = Relu(x)  y =
            Reshape(r, u) }""",
        {"zero": np.array([0], I64), "one": np.array([1], I64), "minus": np.array([-1], I64)},
    )
    result = compiled(model)
    found = _where(result)
    assert {name for name, (provider, _) in found.items() if provider == "wasm"} >= {"Shape", "Concat", "Slice"}
    assert found["Concat"][1] in ("shape arithmetic", "webgpu: no kernel for int64 (input 0)")
    assert found["Relu"][0] == found["Reshape"][0] == "webgpu"


def test_a_node_may_be_forced() -> None:
    model = parse("g (float[2] x) => (float[2] y) { a = Relu(x)  y = Tanh(a) }")
    model.graph.node[0].name = "mine"
    assert _where(compiled(model, force_cpu_node_names=["mine"]))["Relu"] == ("wasm", "force_cpu_node_names")


def test_fallback_may_be_forbidden() -> None:
    model = parse("g (float[3,3] x) => (float y) { a = Relu(x)  y = Det(a) }")
    with pytest.raises(NotImplemented, match="disable_cpu_fallback") as caught:
        compiled(model, disable_cpu_fallback=True)
    assert caught.value.op_type == "Det"


def test_nobody_can() -> None:
    model = parse("g (float[3,3] x) => (float y) { y = Det(x) }")
    model.graph.node[0].name = "d"
    with pytest.raises(NotImplemented, match="Det") as caught:
        compiled(model, providers=["webgpu"])
    assert (caught.value.node, caught.value.op_type) == ("d", "Det")
    assert "3" in str(caught.value.shapes)


def test_nodes_of_subgraphs_are_placed_too() -> None:
    model = parse(
        """g (float[2] x, bool p) => (float[2] y) {
            y = If (p) <then_branch = yes () => (float[2] o) { o = Relu(x) }, else_branch = no () => (float[2] q) { q
            = Tanh(x) }> }"""
    )
    assert _where(compiled(model)) == {"If": ("wasm", "control flow"), "Relu": ("webgpu", ""), "Tanh": ("webgpu", "")}


def test_a_manifest_adds_up_entries_of_one_operator() -> None:
    entries = [
        {"domain": "", "op_type": "Cast", "types": [["float32"]]},
        {"domain": "", "op_type": "Cast", "types": [["int32"]]},
    ]
    import onnx_ir as ir

    manifest = Manifest.of("webgpu", entries)
    assert manifest.refusal("", "Cast", [ir.DataType.INT32]) is None
    assert manifest.refusal("", "Cast", [ir.DataType.INT8]) == "no kernel for int8 (input 0)"


def test_the_last_entry_stands_for_further_inputs() -> None:
    import onnx_ir as ir

    manifest = Manifest.of("wasm", [{"op_type": "Concat", "types": [["float32"]]}])
    assert manifest.refusal("", "Concat", [ir.DataType.FLOAT] * 3) is None
    assert manifest.refusal("", "Concat", [ir.DataType.FLOAT, ir.DataType.INT64]) == "no kernel for int64 (input 1)"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("g (float[2] x) => (int32[2] y) { y = BitCast<to=6>(x) }", ""),
        ("g (float16[2] x) => (int16[2] y) { y = BitCast<to=5>(x) }", "webgpu: no kernel for float16 (input 0)"),
        (
            'g (uint8[1,1,4,4] x) => (uint8[1,1,2,2] y) { y = Resize<mode="linear", antialias=1>(x, , , size) }',
            "webgpu: no kernel for integers with antialias",
        ),
        ('g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y = Resize<mode="linear", antialias=1>(x, , , size) }', ""),
    ],
)
def test_what_a_kernel_requires_of_a_node_decides_too(model: str, reason: str) -> None:
    result = compiled(parse(model, {"size": np.array([1, 1, 2, 2], I64)}))
    (node,) = result.placement.nodes
    assert (node.provider, node.reason) == ("wasm" if reason else "webgpu", reason)
