"""Plans below the extended level: the source's opset and operators, and less of them."""

from __future__ import annotations

from collections import Counter

import bert
import numpy as np
import onnx
import pytest
from graphs import parse, random_feeds
from onnx import numpy_helper
from standard_form import run_native

from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.saved.target import DISABLED_ENTRY, SavedModel

_RANDOM = np.random.default_rng(0)
_HEADS = """g (float[N,S,8] x) => (float[N,2,S,4] y, float[K,T] m) {
    shape = Shape(x)
    n = Gather(shape, zero)
    s = Gather(shape, one)
    none = Sub(s, s)
    first = Unsqueeze(n, zeros)
    second = Unsqueeze(s, zeros)
    start = Unsqueeze(none, zeros)
    sizes = Concat<axis=0>(first, second, heads)
    split = Reshape(x, sizes)
    mask = Slice(square, start, second, zeros)
    m = Relu(mask)
    y = Transpose<perm=[0,2,1,3]>(split)
}"""
_INDICES = {
    "zero": np.int64(0),
    "one": np.int64(1),
    "zeros": np.zeros(1, np.int64),
    "heads": np.array([2, 4], np.int64),
    "square": np.tri(9, dtype=np.float32),
}


def _written(model, tmp_path, **options):
    path = tmp_path / "written.onnx"
    level = {"basic": 1, "disabled": 0}.get(options.setdefault("graph_optimization_level", "basic"), 99)
    saved = SavedModel.of(str(path), {}, level)
    compile_model(model.SerializeToString(), providers=["wasm"], options=CompileOptions(**options), optimized=saved)
    return onnx.load(path)


def _operators(model):
    return Counter(node.op_type for node in model.graph.node)


def _same(written, model, sizes):
    feeds = random_feeds(model, sizes)
    for got, wanted in zip(run_native(written, feeds), run_native(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_arithmetic_with_unknown_sizes_stays(tmp_path):
    """Tools look for it, and native onnxruntime keeps it, too: only passes know that a difference is 0."""
    model = parse(_HEADS, _INDICES, opset=14)
    written = _written(model, tmp_path)
    assert _operators(written) == _operators(model)
    assert [o.version for o in written.opset_import if o.domain == ""] == [14]
    assert written.ir_version == model.ir_version
    _same(written, model, {"N": 2, "S": 5})


def test_known_sizes_are_folded(tmp_path):
    """As in native onnxruntime: the rest depends on the input's values."""
    model = parse(_HEADS, _INDICES, opset=14)
    written = _written(model, tmp_path, input_shapes={"x": [2, 5, 8]})
    assert _operators(written) == {"Reshape": 1, "Transpose": 1, "Relu": 1}
    _same(written, model, {"N": 2, "S": 5})


@pytest.mark.parametrize("opset", [9, 11, 14, 17])
def test_batch_normalization_behind_a_convolution_only(opset, tmp_path):
    text = """g (float[N,3,H,W] x) => (float[N,4,H,W] y, float[N,3,H,W] z) {
        a = Conv<pads=[1,1,1,1]>(x, w)
        b = BatchNormalization(a, s4, s4, s4, s4)
        c = Add(b, shift)
        y = Relu(c)
        z = BatchNormalization(x, s3, s3, s3, s3)
    }"""
    weights = {f"s{n}": np.linspace(0.5, 2, n, dtype=np.float32) for n in (3, 4)}
    weights |= {"w": _RANDOM.standard_normal((4, 3, 3, 3), np.float32), "shift": np.ones((1, 4, 1, 1), np.float32)}
    model = parse(text, weights, opset=opset)
    written = _written(model, tmp_path)
    assert _operators(written) == {"Conv": 1, "Relu": 1, "BatchNormalization": 1}
    _same(written, model, {"N": 2, "H": 5, "W": 6})


def test_what_does_nothing_goes(tmp_path):
    text = """g (float[N,4] x) => (float[N,4] y) {
        a = Identity(x)
        b = Dropout(a)
        c = Cast<to=1>(b)
        d = Add(c, nothing)
        e = Exp(d)
        f = Exp(d)
        unread = Tanh(f)
        w = Transpose<perm=[1,0]>(v)
        g = MatMul(e, w)
        h = MatMul(f, w)
        y = Add(g, h)
    }"""
    constants = {"nothing": np.zeros(1, np.float32), "v": _RANDOM.standard_normal((4, 4), np.float32)}
    model = parse(text, constants, opset=13)
    written = _written(model, tmp_path)
    assert _operators(written) == {"Exp": 1, "MatMul": 1, "Add": 1}
    _same(written, model, {"N": 3})


def test_old_forms_stay_old(tmp_path):
    text = """g (float[N,6] x) => (float[N,4] y) {
        a = Slice<axes=[1], starts=[0], ends=[4]>(x)
        b = Pad<pads=[0,0,0,0]>(a)
        c = Unsqueeze<axes=[0]>(b)
        d = ReduceSum<axes=[0], keepdims=0>(c)
        y = Clip<min=-0.5, max=0.5>(d)
    }"""
    model = parse(text, {}, opset=9)
    written = _written(model, tmp_path)
    assert _operators(written) == _operators(model)
    _same(written, model, {"N": 3})


def test_weights_stay_quantized(tmp_path):
    text = """g (float[N,6] x) => (float[N,4] y) {
        w = DequantizeLinear(q, scale)
        y = MatMul(x, w)
    }"""
    q = _RANDOM.integers(-9, 9, (6, 4)).astype(np.int8)
    model = parse(text, {"q": q, "scale": np.float32(0.1)}, opset=13)
    written = _written(model, tmp_path)
    assert _operators(written) == {"DequantizeLinear": 1, "MatMul": 1}
    assert numpy_helper.to_array(written.graph.initializer[0]).dtype == np.int8
    _same(written, model, {"N": 3})


def test_nothing_is_done_where_nothing_may_be(tmp_path):
    model = parse(
        "g (float[4] x) => (float[4] y) { a = Identity(x) b = Add(c, c) y = Add(a, b) }", {"c": np.ones(4, np.float32)}
    )
    assert _operators(_written(model, tmp_path, graph_optimization_level="disabled")) == _operators(model)


def test_functions_become_their_nodes(tmp_path):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        g (float[N,4] x) => (float[N,4] y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 17]>
        twice (a) => (b) { two = Constant<value_float=2.0>()  b = Mul(a, two) }""")
    written = _written(model, tmp_path)
    assert _operators(written) == {"Mul": 1} and not written.functions
    _same(written, model, {"N": 3})


def test_branches_are_written(tmp_path):
    text = """g (bool c, float[4] x) => (float[4] y) {
        k = Add(one, one)
        y = If(c) <then_branch = t () => (float[4] a) { a = Mul(x, k) },
            else_branch = e () => (float[4] b) { b = Sub(x, k) }>
    }"""
    model = parse(text, {"one": np.ones(1, np.float32)}, opset=15)
    written = _written(model, tmp_path)
    assert _operators(written) == {"If": 1}
    for taken in (True, False):
        feeds = {"c": np.array(taken), "x": np.arange(4, dtype=np.float32)}
        np.testing.assert_array_equal(run_native(written, feeds)[0], run_native(model, feeds)[0])


@pytest.mark.parametrize(
    ("level", "disabled", "expected"),
    [(1, "", True), (2, "", False), (99, "", False), (2, "ConstantSharing", False), (99, "A; MatMulAddFusion", True)],
)
def test_which_form(level, disabled, expected):
    found = SavedModel.of("m.onnx", {DISABLED_ENTRY: disabled}, level)
    assert found is not None and found.as_source == expected


@pytest.mark.parametrize("level", [1, 2, 99])
def test_onnxruntimes_fusions_find_what_they_find_behind_native(level, tmp_path):
    """In the output of `onnxruntime.transformers.optimizer` before it fuses."""
    import onnxruntime
    from onnxruntime.transformers.optimizer import optimize_by_fusion

    def fused(path):
        found = optimize_by_fusion(onnx.load(path), "bert", num_heads=4, hidden_size=32)
        return {name: n for name, n in found.get_fused_operator_statistics().items() if n}

    model = bert.bert()
    disabled = ["ConstantSharing", "MatMulAddFusion", "GemmActivationFusion"][: None if level > 1 else 1]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(tmp_path / "native.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, disabled_optimizers=disabled[:1])
    saved = SavedModel.of(str(tmp_path / "ours.onnx"), {DISABLED_ENTRY: ";".join(disabled)}, level)
    compile_model(model.SerializeToString(), providers=["wasm"], optimized=saved)
    assert fused(tmp_path / "ours.onnx") == fused(tmp_path / "native.onnx") != {}


@pytest.mark.parametrize("level", ["disabled", "basic"])
def test_attributes_with_defaults_are_stated(level, tmp_path):
    """As in onnxruntime's files: its tools read these attributes."""
    made = parse("g (float[N, 4] x) => (float[N, 1] y) { m = ReduceMean<axes=[-1]>(x) y = LeakyRelu(m) }", opset=17)
    written = _written(made, tmp_path, graph_optimization_level=level)
    told = {
        node.op_type: {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        for node in written.graph.node
    }
    assert told == {"ReduceMean": {"axes": [-1], "keepdims": 1}, "LeakyRelu": {"alpha": pytest.approx(0.01)}}


@pytest.mark.parametrize("level", ["disabled", "basic"])
def test_outputs_keep_their_shapes(level, tmp_path):
    """Even one that another node reads; and nodes have no empty `overload`, which their texts would show."""
    made = parse("g (float[2,N] a) => (float[2,N] x, float[2,N] y) { s = Neg(a) x = Abs(s) y = Mul(x, a) }", opset=18)
    written = _written(made, tmp_path, graph_optimization_level=level)
    assert [output.type.tensor_type.shape for output in written.graph.output] == [
        output.type.tensor_type.shape for output in made.graph.output
    ]
    assert not any(node.HasField("overload") for node in written.graph.node)


@pytest.mark.parametrize(
    ("opset", "axis", "fused"), [(16, 2, False), (17, 2, True), (17, 1, False), (18, 2, True), (21, -1, True)]
)
def test_layer_normalization_is_fused_where_the_opset_has_it(opset, axis, fused, tmp_path):
    """As in native onnxruntime at its basic level."""
    axes, reads = (f"<axes=[{axis}]>", "") if opset < 18 else ("", ", last")
    text = f"""g (float[N,3,4] x) => (float[N,3,4] y) {{ m = ReduceMean{axes}(x{reads})  d = Sub(x, m)  s = Pow(d, two)
        v = ReduceMean{axes}(s{reads})  e = Add(v, eps)  r = Sqrt(e)  q = Div(d, r)  g = Mul(q, k)  y = Add(g, b) }}"""
    weights = {"two": np.float32(2), "eps": np.float32(1e-5), "last": np.array([axis])}
    weights |= {"k": np.linspace(1, 2, 4, dtype=np.float32), "b": np.linspace(0, 1, 4, dtype=np.float32)}
    model = parse(text, weights, opset=opset)
    written = _written(model, tmp_path)
    assert ("LayerNormalization" in _operators(written)) == fused
    assert len(written.graph.node) == (1 if fused else 9)
    _same(written, model, {"N": 2})
