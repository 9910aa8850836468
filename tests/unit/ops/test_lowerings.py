"""Old forms of operators become the newest, with the same meaning."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, operators, parse
from standard_form import run_native, standard_form

from py_ort.ir.operators import LOWERINGS
from py_ort.ir.operators import operators as declared
from py_ort.providers.manifest import load_manifests

F = np.float32
# id: (opset, graph, constants, operators expected afterwards)
CASES = {
    "add-6:axis": (
        6,
        "g (float[2,3,4] x, float[3] b) => (float[2,3,4] y) { y = Add<axis=1, broadcast=1>(x, b) }",
        {},
        {"Unsqueeze", "Add"},
    ),
    "clip-6": (6, "g (float[3,4] x) => (float[3,4] y) { y = Clip<min=-0.5, max=0.5>(x) }", {}, {"Clip"}),
    "squeeze-1": (11, "g (float[2,1,3] x) => (float[2,3] y) { y = Squeeze<axes=[1]>(x) }", {}, {"Squeeze"}),
    "unsqueeze-1": (11, "g (float[2,3] x) => (float[2,1,3,1] y) { y = Unsqueeze<axes=[1,3]>(x) }", {}, {"Unsqueeze"}),
    "slice-1": (
        9,
        "g (float[4,5] x) => (float[2,3] y) { y = Slice<axes=[0,1], starts=[1,-4], ends=[3,4]>(x) }",
        {},
        {"Slice"},
    ),
    "slice-1:no axes": (9, "g (float[4,5] x) => (float[2,5] y) { y = Slice<starts=[1], ends=[3]>(x) }", {}, {"Slice"}),
    "pad-2": (9, "g (float[2,3] x) => (float[4,4] y) { y = Pad<pads=[1,0,1,1], value=2.0>(x) }", {}, {"Pad"}),
    "split-2": (
        12,
        "g (float[2,6] x) => (float[2,2] a, float[2,4] b) { a, b = Split<axis=1, split=[2,4]>(x) }",
        {},
        {"Split"},
    ),
    "split-2:equal": (
        12,
        "g (float[2,6] x) => (float[2,3] a, float[2,3] b) { a, b = Split<axis=1>(x) }",
        {},
        {"Split"},
    ),
    "softmax-1:axis 1": (
        11,
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }",
        {},
        {"Reshape", "Softmax"},
    ),
    "softmax-1:default": (11, "g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", {}, {"Softmax"}),
    "reduce-mean-1": (
        11,
        "g (float[2,3,4] x) => (float[2,4] y) { y = ReduceMean<axes=[1], keepdims=0>(x) }",
        {},
        {"ReduceMean"},
    ),
    "reduce-sum-1:all": (11, "g (float[2,3] x) => (float[1,1] y) { y = ReduceSum(x) }", {}, {"ReduceSum"}),
    "topk-1": (9, "g (float[2,5] x) => (float[2,3] y, int64[2,3] i) { y, i = TopK<axis=1, k=3>(x) }", {}, {"TopK"}),
    "upsample-7": (
        8,
        'g (float[1,2,3,3] x) => (float[1,2,6,6] y) { y = Upsample<mode="nearest", scales=[1.0,1.0,2.0,2.0]>(x) }',
        {},
        {"Resize"},
    ),
    "upsample-9": (
        9,
        'g (float[1,2,3,3] x) => (float[1,2,6,6] y) { y = Upsample<mode="linear">(x, s) }',
        {"s": np.array([1, 1, 2, 2], F)},
        {"Resize"},
    ),
    "resize-10": (
        10,
        "g (float[1,2,3,3] x) => (float[1,2,6,6] y) { y = Resize(x, s) }",
        {"s": np.array([1, 1, 2, 2], F)},
        {"Resize"},
    ),
    "dropout-7": (9, "g (float[2,3] x) => (float[2,3] y) { d = Dropout<ratio=0.3>(x)  y = Relu(d) }", {}, {"Relu"}),
    "sum-8": (8, "g (float[2,3] a, float[2,3] b, float[3] c) => (float[2,3] y) { y = Sum(a, b, c) }", {}, {"Add"}),
    "scatter-9": (
        9,
        "g (float[3,3] x, float[1,2] u) => (float[3,3] y) { y = Scatter<axis=1>(x, i, u) }",
        {"i": np.array([[0, 2]], np.int64)},
        {"ScatterElements"},
    ),
    "flatten": (13, "g (float[2,3,4] x) => (float[2,12] y) { y = Flatten(x) }", {}, {"Reshape"}),
    "transpose:no perm": (13, "g (float[2,3,4] x) => (float[4,3,2] y) { y = Transpose(x) }", {}, {"Transpose"}),
    "prelu-6:channels": (
        6,
        "g (float[1,3,2,2] x, float[3] s) => (float[1,3,2,2] y) { y = PRelu(x, s) }",
        {},
        {"Unsqueeze", "PRelu"},
    ),
    "batch-normalization-7:elements": (
        7,
        "g (float[2,3,4] x) => (float[2,3,4] y) { y = BatchNormalization<spatial=0, epsilon=0.01>(x, s, b, m, v) }",
        {
            name: np.linspace(low, 2, 12, dtype=F).reshape(3, 4)
            for name, low in zip("sbmv", (1, -1, 0, 0.1), strict=True)
        },
        {"Add", "Mul"},
    ),
    "batch-normalization-8:fed, open": (
        8,
        "g (float[n,c,h,w] x, float[c,h,w] s, float[c,h,w] b, float[c,h,w] m, float[c,h,w] v) => (float[n,c,h,w] y) "
        "{ q = Mul(v, v)  y = BatchNormalization<spatial=0>(x, s, b, m, q) }",
        {},
        {"Add", "Mul", "Sqrt", "Div", "Sub"},
    ),
    "castlike": (19, "g (float[2] x, int64[1] like) => (int64[2] y) { y = CastLike(x, like) }", {}, {"Cast"}),
    "gemm-6": (
        6,
        "g (float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm<broadcast=1>(a, b, c) }",
        {},
        {"Gemm"},
    ),
    "dft-17": (17, "g (float[1,8,1] x) => (float[1,8,2] y) { y = DFT<axis=1>(x) }", {}, {"DFT"}),
    "compress:axis": (
        17,
        "g (float[2,5] x) => (float[2,n] y) { y = Compress<axis=1>(x, c) }",
        {"c": np.array([True, False, False, True])},
        {"Gather"},
    ),
    "compress": (
        17,
        "g (float[2,5] x) => (float[n] y) { y = Compress(x, c) }",
        {"c": np.array([True, False, False, True, False, False, True])},
        {"Reshape", "Gather"},
    ),
    "group-norm-18": (
        18,
        "g (float[1,4,2] x) => (float[1,4,2] y) { y = GroupNormalization<num_groups=2>(x, s, b) }",
        {"s": np.array([1, 2], F), "b": np.array([0, 1], F)},
        None,
    ),
}

# Native onnxruntime begins with opset 7: the meaning of older models, in newer operators.
MODERN = {
    "add-6:axis": "g (float[2,3,4] x, float[3] b) => (float[2,3,4] y) { c = Unsqueeze(b, last)  y = Add(x, c) }",
    "prelu-6:channels": "g (float[1,3,2,2] x, float[3] s) => (float[1,3,2,2] y) { c = Unsqueeze(s, lasts)  y = "
    "PRelu(x, c) }",
    "gemm-6": "g (float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm(a, b, c) }",
}


@pytest.mark.parametrize("case", CASES)
def test_old_forms(case: str) -> None:
    opset, text, constants, expected = CASES[case]
    model = parse(text, constants, opset)
    result = compiled(model)
    modern = MODERN.get(case)
    if modern is not None:
        model = parse(modern, {"last": np.array([1]), "lasts": np.array([1, 2])})
    check_equal(model, result, tolerance=1e-5)
    if expected is not None:
        assert set(operators(result)) == expected


@pytest.mark.parametrize(
    ("auto_pad", "pads"),
    [("SAME_UPPER", [0, 0, 1, 1]), ("SAME_LOWER", [1, 1, 0, 0]), ("VALID", [0, 0, 0, 0]), ("NOTSET", [0, 0, 0, 0])],
)
def test_auto_pad_becomes_numbers(auto_pad: str, pads: list[int]) -> None:
    text = f'g (float[1,2,6,6] x) => (float[N,C,H,W] y) {{ y = Conv<auto_pad="{auto_pad}", strides=[2,2]>(x, w) }}'
    model = parse(text, {"w": np.ones((3, 2, 3, 3), F)})
    result = check_equal(model)
    (node,) = [n for n in result.model.graph if n.op_type == "Conv"]
    assert list(node.attributes["pads"].value) == pads
    assert "auto_pad" not in node.attributes
    assert list(node.attributes["kernel_shape"].value) == [3, 3]


def test_auto_pad_stays_where_the_size_is_unknown() -> None:
    model = parse(
        'g (float[1,2,h,w] x) => (float[N,C,H,W] y) { y = Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, k) }',
        {"k": np.ones((3, 2, 3, 3), F)},
    )
    (node,) = [n for n in compiled(model).model.graph if n.op_type == "Conv"]
    assert node.attributes["auto_pad"].value == "SAME_UPPER" and "pads" not in node.attributes


def test_with_stride_one_the_pads_are_known_anyway() -> None:
    model = parse(
        'g (float[1,2,h,w] x) => (float[N,C,H,W] y) { y = Conv<auto_pad="SAME_UPPER">(x, k) }',
        {"k": np.ones((3, 2, 3, 3), F)},
    )
    (node,) = [n for n in compiled(model).model.graph if n.op_type == "Conv"]
    assert list(node.attributes["pads"].value) == [1, 1, 1, 1]


def test_defaults_are_those_of_the_models_own_opset() -> None:
    model = parse("g (float[2,3] x) => (float[2,3] y) { y = Selu(x) }", opset=1)
    (node,) = compiled(model).model.graph
    assert node.attributes["alpha"].value == pytest.approx(1.6732)
    assert node.attributes["gamma"].value == pytest.approx(1.0507)
    assert node.attributes["alpha"].value != pytest.approx(1.67326319, abs=1e-6), "opset 1 had a rounder number"


def test_a_function_of_the_model_is_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[2,3] x) => (float[2,3] y) { y = local.twice<by=3.0>(x) }
    <domain: "local", opset_import: ["" : 11]>
    twice<by>(a) => (b) { c = Constant<value_float: float = @by>()  d = Mul(a, c)  b = Clip(d) }"""
    model = onnx.parser.parse_model(text.replace('opset_import: ["" : 11]', 'opset_import: ["" : 12]'))
    result = compiled(model)
    assert "twice" not in operators(result)
    check_equal(model, result)


def test_a_function_body_stands_in_for_a_missing_kernel() -> None:
    model = parse("g (float[2,6] x) => (float[2,6] y) { y = Softplus(x) }", opset=21)
    result = compiled(model, providers=["webgpu"])  # the result has Exp, Add and Log
    assert "Softplus" not in operators(result)
    check_equal(model, result)


@pytest.mark.parametrize("directions", [[], [0, 1], [1, 0]], ids=str)
@pytest.mark.parametrize("lengths", [None, [3, 1], [4, 4]], ids=str)
def test_a_scan_over_a_batch_of_sequences(lengths: list[int] | None, directions: list[int]) -> None:
    model = parse(
        """g (int64[2] n, float[2,3] s, float[2,4,3] x, float[2,4,3] y) => (float[a,b] last, float[c,d,e] all) {
            last, all = Scan<num_scan_inputs=2, body =
                turn (float[3] s, float[3] x, float[3] y) => (float[3] t, float[3] z) {
                    t = Add(s, x) z = Mul(t, y)
                }>(n, s, x, y)
        }""",
        opset=8,
    )
    scan = model.graph.node[0]
    if directions:
        scan.attribute.append(onnx.helper.make_attribute("directions", directions))
    if lengths is None:
        scan.input[0] = ""
        del model.graph.input[0]
    rng = np.random.default_rng(0)
    feeds = {"s": rng.random((2, 3), F), "x": rng.random((2, 4, 3), F), "y": rng.random((2, 4, 3), F)}
    check_equal(model, feeds=feeds if lengths is None else {"n": np.array(lengths), **feeds})


def test_every_declaration_is_sound() -> None:
    for (domain, name), operator in declared().items():
        assert operator.domain == domain and operator.op_type == name
        assert not set(operator.host) & set(operator.shape_only), f"{name}: an input is either a host or a shape input"


@pytest.mark.parametrize(("given", "taken"), [(0, 0), (1, 1), (2, 0), (-1, 0)])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("g (float[2,3,4] x) => (float y) {{ y = ReduceSum<keepdims={}>(x, a) }}", "keepdims"),
        ("g (float[2,3,4] x) => (int64 y) {{ y = ArgMax<axis=1, keepdims={}>(x) }}", "keepdims"),
        ("g (float[1,2,4,8] x) => (float y) {{ y = Attention<is_causal={}>(x, x, x) }}", "is_causal"),
    ],
)
def test_only_one_is_on(text: str, name: str, given: int, taken: int) -> None:
    """As in onnxruntime. Kernels read 0 and 1."""
    constants = {"a": np.array([1])} if "a)" in text else {}
    (node,) = compiled(parse(text.format(given), constants, 23)).model.graph
    assert node.attributes[name].value == taken


def test_no_kernel_of_the_core_is_for_what_is_always_replaced() -> None:
    """Only sessions use the core; the page's kernels are also used individually."""
    replaced = {key for key, entries in LOWERINGS.items() if any(entry.replaces for entry in entries)}
    assert ("com.microsoft", "FusedConv") in replaced
    assert replaced & load_manifests()["wasm"].kernels.keys() == set()
    text = """g (float[1,2,4,4] x, float[2,2,1,1] w) => (float[1,2,4,4] y) {
        y = com.microsoft.FusedConv<activation = "Relu">(x, w)
    }"""
    assert operators(compiled(parse(text), providers=["wasm"])) == {"nhwc.Conv": 1, "Transpose": 2}


def test_a_fused_convolution_where_kernels_fuse_nothing() -> None:
    text = """g (float[1,2,4,4] x, float[2,2,1,1] w, float[1,2,4,4] z) => (float[1,2,4,4] y) {
        y = com.microsoft.FusedConv<activation = "Relu">(x, w, , z)
    }"""
    result = compiled(parse(text), providers=["webnn"], disable_cpu_fallback=True)
    found = operators(result)
    assert (found["nhwc.Conv"], found["Add"], found["Relu"]) == (1, 1, 1)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.int16])
def test_a_range_without_steps(kind: type[np.number]) -> None:
    """Of com.microsoft, whose third input is optional."""
    name = {np.float32: "float", np.int64: "int64", np.int16: "int16"}[kind]
    model = parse(f"g ({name} a, {name} b) => ({name}[n] y) {{ y = com.microsoft.Range(a, b) }}")
    feeds = {"a": np.array(2, kind), "b": np.array(6, kind)}
    (found,) = run_native(standard_form(compiled(model)), feeds)
    np.testing.assert_array_equal(found, np.arange(2, 6, dtype=kind))


@pytest.mark.parametrize("opset", [1, 3])
def test_the_axis_of_the_first_concat(opset: int) -> None:
    """It is 1, which the schema omits; native onnxruntime has opset 4 and later."""
    model = parse("g (float[2,3] x) => (float[2,6] y) { y = Concat(x, x) }", opset=opset)
    x = np.arange(6, dtype=F).reshape(2, 3)
    (found,) = run_native(standard_form(compiled(model)), {"x": x})
    np.testing.assert_array_equal(found, np.concatenate([x, x], 1))
