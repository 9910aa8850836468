"""Odd models that native onnxruntime loads: the page returns the same results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from array_models import assert_as_native, model_of
from onnx import helper
from same_values import assert_same
from session_settings import settings
from standard_form import run_native
from text_form import parse

from py_ort.exceptions import RuntimeException

F = np.float32
RNG = np.random.default_rng(5)
IMAGE = RNG.standard_normal((1, 4, 4, 5)).astype(F)
ROWS = np.arange(6, dtype=F).reshape(2, 3)
NONE = np.zeros(0, F)
BEYOND = np.array([np.nan, np.inf, -np.inf, 1e30, -3e9, 2147483520, -2147483648, 300.7, -300.7], F)


@dataclass(frozen=True)
class Case:
    """A graph, its opset, its feeds, and constants of the model."""

    text: str
    feeds: Mapping[str, np.ndarray]
    opset: int = 17
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)


def image_case(call: str, opset: int = 9, shape: str = "1,4,4,5", **constants: np.ndarray) -> Case:
    return Case(f"g (float[{shape}] x) => (float[a,b,c,d] y) {{ y = {call} }}", {"x": IMAGE}, opset, constants)


def loop_case(body: str, row: str = "float[a,b]", cond: str = "") -> Case:
    rows = row.replace("[", "[k,")
    text = f"""g (float[2,3] x, int64 n, bool{cond} k) => (float[2,3] y, {rows} ys) {{
        y, ys = Loop(n, k, x) <
            body = b (int64[1] i, bool{cond} c, float[2,3] v) => (bool{cond} d, float[2,3] w, {row} s) {{
                {body} w = Neg(v) d = Identity(c)
            }}
        >
    }}"""
    truth = np.ones([1] if cond else [], np.bool_)
    return Case(text, {"x": ROWS, "n": np.array(2), "k": truth}, 17)


def group_case(shape: str) -> Case:
    return image_case(
        "GroupNormalization<num_groups=2>(x, s, b)", 18, shape, s=np.array([1, 2], F), b=np.array([0.5, 0.1], F)
    )


def resize_case(roi: str, opset: int = 11) -> Case:
    text = f"""g (float[1,4,4,5] x, float{roi} r, float{roi} s, int64[4] z) => (float[a,b,c,d] y) {{
        y = Resize<mode="linear">(x, r, s, z)
    }}"""
    return Case(text, {"x": IMAGE, "r": NONE, "s": NONE, "z": np.array([1, 4, 6, 8])}, opset)


def labels_case(kind: str, values: list[object], attributes: str, to: str, classes: str = '"a","b","c"') -> Case:
    text = f"""<ir_version: 8, opset_import: ["" : 12, "ai.onnx.ml" : 1]>
    g ({kind}[n] x) => ({to}[n] y) {{ y = ai.onnx.ml.LabelEncoder<classes_strings=[{classes}]{attributes}>(x) }}"""
    return Case(text, {"x": np.array(values, object if kind == "string" else None)})


DOTS = "g (float[8] v, float[1,4,4,5] x) => (float d, float[a,b,c,d] y) { d = MatMul(v, v)  y = %s }"
DOT_FEEDS = {"v": np.arange(8, dtype=F), "x": IMAGE}
CASES = {
    "LabelEncoder 1": labels_case("string", ["a", "q", "c"], "", "int64"),
    "LabelEncoder 1, a class twice": labels_case("string", ["a", "b"], "", "int64", classes='"a","b","a"'),
    "LabelEncoder 1, a default": labels_case("string", ["a", "q", "c"], ", default_int64=9", "int64"),
    "LabelEncoder 1, back": labels_case("int64", [0, 2, -1, 7], "", "string"),
    "LabelEncoder 1, back, a default": labels_case("int64", [0, 2, 7], ', default_string="none"', "string"),
    "a function of an operator's name": Case(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[2,3] x) => (float[2,3] y) { a = com.microsoft.Gelu(x) y = Relu(a) }
        <domain: "com.microsoft", opset_import: ["" : 17]> Gelu (a) => (b) { b = Neg(a) }
        <domain: "", opset_import: ["" : 17]> Relu (a) => (b) { b = Neg(a) }""",
        {"x": ROWS - 2},
    ),
    "any order": Case("g (float[2,3] x) => (float[2,3] y) { y = Exp(b)  b = Neg(a)  a = Abs(x) }", {"x": ROWS}),
    "LayerNormalization 11": image_case("LayerNormalization(x, s, b)", 11, s=np.ones(5, F), b=np.ones(5, F)),
    "LayerNormalization 17, an unknown attribute": image_case(
        "LayerNormalization<axis=-1, epsion=0.5>(x, s)", 17, s=np.ones(5, F)
    ),
    "LayerNormalization 1": image_case("LayerNormalization<axis=2>(x, s)", 1, s=np.ones((4, 5), F)),
    "Affine": image_case("Affine<alpha=2.0, beta=3.0>(x)", 1),
    "Affine, defaults": image_case("Affine(x)"),
    "Scale": image_case("Scale<scale=2.0>(x)"),
    "ImageScaler": image_case("ImageScaler<scale=2.0, bias=[1.0,2.0,3.0,4.0]>(x)"),
    "ImageScaler, any shape": image_case("ImageScaler<bias=[1.0,2.0,3.0,4.0]>(x)", 9, "n,c,h,w"),
    "ScaledTanh": image_case("ScaledTanh<alpha=2.0, beta=0.5>(x)"),
    "ParametricSoftplus": image_case("ParametricSoftplus<alpha=2.0, beta=80.0>(x)"),
    "ThresholdedRelu": image_case("ThresholdedRelu<alpha=0.5>(x)"),
    "ThresholdedRelu, defaults": image_case("ThresholdedRelu(x)", 1),
    "Crop": image_case("Crop<border=[1,0,2,1]>(x)"),
    "Crop to a size": image_case("Crop<border=[1,1,9,9], scale=[3,2]>(x)", 9, "n,c,h,w"),
    "DynamicSlice": image_case("DynamicSlice(x, s, e)", s=np.array([0, 1]), e=np.array([1, 3])),
    "DynamicSlice, axes": image_case(
        "DynamicSlice(x, s, e, a)", s=np.array([1], np.int32), e=np.array([-1], np.int32), a=np.array([3], np.int32)
    ),
    **{
        f"MeanVarianceNormalization, rank {x.ndim}": Case(
            f"g (float{list(x.shape)} x) => (float{list(x.shape)} y) {{ y = MeanVarianceNormalization(x) }}", {"x": x}
        )
        for x in (ROWS[0], ROWS * ROWS, IMAGE[0])
    },
    "CenterCropPad to one size": Case(
        "g (float[2,3] x, int64[1] s) => (float[a,b] y) { y = CenterCropPad(x, s) }",
        {"x": ROWS, "s": np.array([2])},
        18,
    ),
    "MeanVarianceNormalization 1": image_case("MeanVarianceNormalization(x)", 8),
    "MeanVarianceNormalization 1, all": image_case("MeanVarianceNormalization<across_channels=1>(x)", 1),
    "MeanVarianceNormalization 1, mean": image_case("MeanVarianceNormalization<normalize_variance=0>(x)", 8),
    "turn of [1], Squeeze": loop_case(
        "z = Constant<value_ints=[0]>() q = Squeeze(i, z) s = Gather(x, q)", "float[k,a]"
    ),
    "turn of [1], Slice": loop_case(
        "o = Constant<value_ints=[1]>() z = Constant<value_ints=[0]>() e = Add(i, o) s = Slice(x, i, e, z)"
    ),
    "turn of [1], Shape": loop_case("s = Shape(i)", "int64[a]"),
    "turn of [1], given out": loop_case("s = Identity(i)", "int64[a]"),
    "condition of [1]": loop_case("p = Shape(c) s = Add(p, i)", "int64[a]", "[1]"),
    "Resize, nothing fed": resize_case("[0]"),
    "Resize, something fed": resize_case("[r]"),
    "groups of any image": group_case("n,c,h,w"),
    "groups of known channels": group_case("n,4,h,w"),
    "Squeeze of no axes": Case(
        "g (float[a,b,c,d] x, int64[n] k) => (float[e,f] y) { y = Squeeze(x, k) }",
        {"x": IMAGE[:, :, :1], "k": np.zeros(0, np.int64)},
        13,
    ),
    "vectors and a Transpose": Case(DOTS % "Transpose<perm=[0,2,3,1]>(x)", DOT_FEEDS),
    "vectors and a Conv": Case(DOTS % "Conv(x, w)", DOT_FEEDS, 17, {"w": np.ones((2, 4, 1, 1), F)}),
    "sum of nothing": Case(
        "g (float[1] x) => (float[a] y, float[b] z) { y = Sum(n, s)  z = Add(x, n) }",
        {"x": np.ones(1, F)},
        17,
        {"n": NONE, "s": np.array(2, F)},
    ),
    "shape of a scalar": Case(
        "g (float x) => (int64[a] y) { s = Shape(x) k = Constant<value_int=3>() y = Add(s, k) }", {"x": np.array(2, F)}
    ),
    "Slice without axes": Case(
        "g (float[2,3] x, int64[n] s, int64[n] e) => (float[a,b] y) { y = Slice(x, s, e) }",
        {"x": ROWS, "s": np.array([1]), "e": np.array([2])},
    ),
    "Cast of what no integer is": Case(
        f"g (float[{len(BEYOND)}] x, float16[{len(BEYOND)}] h) => (int32[n] a, uint8[n] b, int8[n] c, int32[n] d)"
        " { y = Neg(x)  a = Cast<to=6>(y)  b = Cast<to=2>(x)  c = Cast<to=3>(x)  d = Cast<to=6>(h) }",
        {"x": BEYOND, "h": BEYOND[:3].repeat(3)[: len(BEYOND)].astype(np.float16)},
    ),
    "Reshape of nothing by its own size": Case(
        """g (float[a,3] x) => (float[b,c] y) {
            s = Shape(x)  z = Constant<value_ints=[0]>()  m = Constant<value_ints=[-1]>()
            f = Gather(s, z)  t = Concat<axis=0>(m, f)  y = Reshape(x, t)
        }""",
        {"x": np.zeros((0, 3), F)},
    ),
    **{
        f"BatchNormalization of an empty image{where}": Case(
            f"""g (float[1,2,{size},4] x) => (float[a,b,c,d] y) {{
                p = MaxPool<kernel_shape=[2,2]>(x)  q = Slice(p, o, e, l)
                r = BatchNormalization(q, s, t, m, v)  y = Relu(r)
            }}""",
            {"x": np.ones((1, 2, 5, 4), F)},
            15,
            {
                **{name: np.array([1, 2], F) for name in "stmv"},
                **{name: np.array([number]) for name, number in zip("oel", (1, 1, 2), strict=True)},
            },
        )
        for where, size in (("", "5"), (", open size", "h"))
    },
    **{
        f"EmbedLayerNormalization of no words, {ids}": Case(
            """g (int32[b,n] x, int32[b,n] m) => (float[b,n,3] y, int32[b] c) {
                y, c = com.microsoft.EmbedLayerNormalization(x, m, w, w, w, s, s, m)
            }""",
            {name: np.zeros(ids, np.int32) for name in "xm"},
            17,
            {"w": ROWS, "s": ROWS[0]},
        )
        for ids in ((0, 2), (2, 0))
    },
    "MaxPool of no image": Case(
        "g (float[n,2,4,4] x) => (float[n,2,3,3] y, int64[n,2,3,3] i) { y, i = MaxPool<kernel_shape=[2,2]>(x) }",
        {"x": np.zeros((0, 2, 4, 4), F)},
    ),
}


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("level", [0, 99])
def test_as_native(new_session, case, provider, level):
    model = parse(case.text, case.constants, case.opset)
    providers = ["webgpu", "wasm"] if provider == "webgpu" else ["wasm"]
    session = new_session(model, settings(graph_optimization_level=level), providers=providers)
    assert_same(session.run(None, dict(case.feeds)), run_native(model, dict(case.feeds)), rtol=1e-4, atol=1e-4)


def test_scales_of_no_axes_fail_in_the_run(new_session, provider):
    model = parse("g (float[1,4] x, float[0] s) => (float[a,b] y) { y = Resize(x, , s) }", {}, 18)
    session = new_session(model, providers=[provider])
    with pytest.raises(RuntimeException, match="needs scales or sizes"):
        session.run(None, {"x": ROWS[:1, :1].repeat(4, 1), "s": NONE})


@pytest.mark.parametrize("opset", [2, 3, 4])
@pytest.mark.parametrize("values", [{"values_int64s": [10, 20, 30]}, {"values_strings": ["a", "b", "c"]}], ids=str)
def test_a_label_that_is_no_number(new_session, values, opset):
    """Before opset 4 a NaN among the keys had no meaning."""
    keys = [float("nan"), 1.0, 2.0]
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=keys, **values)
    feeds = {"x": np.array([np.nan, 1, 2, 3], F)}
    made = model_of([node], feeds, ["y"], opset=18, domains={"ai.onnx.ml": opset})
    assert_as_native(new_session(made, providers=["wasm"]), made, feeds, rtol=0, atol=0)
