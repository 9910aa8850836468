"""User kernels in the compiler: checks of the declaration, of models that use them, inference, placement, plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.plan.cache import cache_key
from py_ort.exceptions import InvalidArgument, InvalidGraph, NotImplemented, PyOrtError
from py_ort.schema.gen.Plan import Plan
from py_ort.user_kernels import (
    UserKernel,
    load_kernels,
    register_kernel,
    registered_kernels,
    required,
    unregister_kernel,
)
from py_ort.user_kernels.formula import translate
from py_ort.user_kernels.kernel_files import read_wgsl

FLOAT, HALF, INT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


@pytest.fixture(autouse=True)
def _none_left() -> Iterator[None]:
    before = set(registered_kernels())
    yield
    for name in set(registered_kernels()) - before:
        unregister_kernel(name)


def model(*nodes: onnx.NodeProto, x: Any = ("n", 3, "w"), dtype: int = FLOAT) -> bytes:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", dtype, x)],
        [helper.make_empty_tensor_value_info("y")],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("t", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def node(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=f"the {op}", domain="t", **attributes)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "Swoosh", "expression": "x"}, "domain::Operator"),
        ({"name": "ai.onnx.ml::Swoosh", "expression": "x"}, "domain of your own"),
        ({}, "it needs one of expression, body, wgsl"),
        ({"expression": "x", "body": "y[i] = x[i];"}, "has expression, body"),
        ({"expression": "x + z"}, "there is no 'z'"),
        ({"expression": "x.T"}, "nothing that a formula can have"),
        ({"expression": "frob(x)"}, "no function 'frob'"),
        ({"expression": "x", "inputs": ["x", "z?"]}, "no optional inputs"),
        ({"body": "", "wgsl": "fn main() {}"}, "workgroups"),
        ({"body": "store_y(i, u.gain);"}, "reads u.gain"),
        ({"body": "y[i] = x[i];", "shape": "x.shape + z.shape"}, "shape of y"),
        ({"body": "y[i] = x[i];", "types": ["double"]}, "double"),
        ({"body": "y[i] = x[i];", "dtypes": "float64"}, "an output's dtype"),
        ({"body": "y[i] = x[i];", "inputs": ["u"]}, "'u' cannot be a name"),
        ({"body": "y[i] = x[i];", "attributes": {"a": None}}, "attribute 'a'"),
    ],
)
def test_wrong_declarations(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        UserKernel(**{"name": "t::Swoosh", **fields})
    assert said in str(caught.value)


def test_inference_placement_and_plan() -> None:
    register_kernel("t::Twice", expression="2 * x")
    register_kernel(
        "t::Stretch",
        body="store_y(i, load_x(i / u.k));",
        attributes={"k": 2},
        shape="[x.shape[0], x.shape[-1] * k]",
        dtypes="int32",
    )
    compiled = compile_model(model(node("Twice", ["x"], ["a"]), node("Stretch", ["a"], ["y"], k=3)))
    made = compiled.model.graph.node(1).outputs[0]
    assert [str(d) for d in made.shape] == ["n", "3*w"]
    assert compiled.outputs[0].type == "tensor(int32)"
    assert {n.provider for n in compiled.placement.nodes} == {"webgpu"}
    assert "t::Twice (user kernel)" in str(compiled.placement)
    definitions = Plan.GetRootAs(compiled.plan).UserKernels()
    assert definitions is not None
    assert b'"op": "Twice"' in definitions and b'"op": "Stretch"' in definitions


def test_a_plan_without_them_has_none() -> None:
    register_kernel("t::Twice", expression="2 * x")
    compiled = compile_model(model(helper.make_node("Relu", ["x"], ["y"])))
    assert Plan.GetRootAs(compiled.plan).UserKernels() is None


WRONG_MODELS: dict[str, tuple[onnx.NodeProto, dict[str, Any], type[PyOrtError], str]] = {
    "too many inputs": (node("Scale", ["x", "x", "x"], ["y"], power=2), {}, InvalidGraph, "3 inputs"),
    "attribute missing": (node("Scale", ["x"], ["y"]), {}, InvalidGraph, "lacks its attribute 'power'"),
    "attribute unknown": (node("Scale", ["x"], ["y"], power=2, gain=1), {}, InvalidGraph, "'gain'"),
    "attribute of another type": (node("Scale", ["x"], ["y"], power=2.5), {}, InvalidGraph, "FLOAT"),
    "dtype not taken": (node("Scale", ["x"], ["y"], power=2), {"dtype": INT}, InvalidGraph, "tensor(int64)"),
    "no such axis": (node("Scale", ["x"], ["y"], power=2), {"x": (4,)}, InvalidGraph, "index 1 is outside"),
}


@pytest.mark.parametrize("case", WRONG_MODELS)
def test_wrong_models(case: str) -> None:
    register_kernel(
        "t::Scale", inputs=["x", "z?"], body="y[i] = x[i];", attributes={"power": required(int)}, shape="[x.shape[1]]"
    )
    wrong, options, error, said = WRONG_MODELS[case]
    with pytest.raises(error) as caught:
        compile_model(model(wrong, **options))
    assert said in str(caught.value)
    assert caught.value.node == "the Scale"


def test_without_webgpu_it_says_so() -> None:
    register_kernel("t::Twice", expression="2 * x")
    with pytest.raises(NotImplemented, match="a user kernel runs on webgpu only"):
        compile_model(model(node("Twice", ["x"], ["y"])), providers=["wasm"])


def test_registered_anew_and_forgotten() -> None:
    first = register_kernel("t::Twice", expression="2 * x")
    second = register_kernel("t::Twice", expression="x + x", attributes={"a": 1})
    assert registered_kernels()["t::Twice"] is second is not first
    compile_model(model(node("Twice", ["x"], ["y"], a=2)))
    unregister_kernel("t::Twice")
    with pytest.raises(NotImplemented, match=r"goes to py_ort\.register_kernel first"):
        compile_model(model(node("Twice", ["x"], ["y"])))


def test_plans_in_the_cache_know_them() -> None:
    def key() -> str:
        return cache_key("the model", ["webgpu"], CompileOptions())

    without = key()
    register_kernel("t::Twice", expression="2 * x")
    first = key()
    register_kernel("t::Twice", expression="x + x")
    second = key()
    register_kernel("t::Twice", expression="2 * x")
    assert len({without, first, second}) == 3 and key() == first
    unregister_kernel("t::Twice")
    assert key() == without


FORMULAS = {
    "x * 2": "(x * C(S(2)))",
    "x ** 2": "square(x)",
    "x ** a": "power(x, C(S(u.a)))",
    "x // 2 % 3": "floor_mod(floor_div(x, C(S(2))), C(S(3)))",
    "1 if x > 0 else -x": "select((-x), C(S(1)), (x > C(S(0))))",
    "where(0 < x < 1, x, 0)": "select(C(S(0)), x, ((C(S(0)) < x) & (x < C(S(1)))))",
    "(x > 1) + 1": "(select(C(S(0)), C(S(1)), (x > C(S(1)))) + C(S(1)))",
    "max(x, a, 1)": "max(max(x, C(S(u.a))), C(S(1)))",
    "not isnan(x) and x": "((!is_nan(x)) & (x != C(S(0))))",
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formula(text: str) -> None:
    assert translate(text, ["x"], ["a"]).text == FORMULAS[text]


def test_wgsl_file(tmp_path: Any) -> None:
    text = """// kernel: t::Blend
// inputs: x, z, weight?
// type z: x
// attribute gain: 1.5
// attribute mode: required str
// shape: broadcast(x.shape, z.shape)
// uniform n: x.shape[-1]
// constant linear: mode == 'linear'
// workgroups: ceil_div(y.size, 64), 1
// example x: 4, 8

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = x[id.x] * u.gain + f32(u.n); }
"""
    kernel = read_wgsl(text)
    assert (kernel.name, kernel.inputs, kernel.form) == ("t::Blend", ["x", "z", "weight?"], "wgsl")
    assert kernel.attributes["gain"] == 1.5 and kernel.attribute_kinds["mode"] == "s"
    assert kernel.workgroups == ["ceil_div(y.size, 64)", "1"] and kernel.example == {"x": (4, 8)}
    assert [u["name"] for u in kernel.definition["uniforms"]] == ["gain", "n"]
    file = tmp_path / "blend.wgsl"
    file.write_text(text)
    assert [kernel.name for kernel in load_kernels(file)] == ["t::Blend"]
    file.write_text(text.replace("attribute gain: 1.5", "attribute gain: 1.5.0"))
    with pytest.raises(InvalidArgument, match="line 4"):
        load_kernels(file)
