"""The placement of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from graphs import compiled, parse

from py_ort.compiler import CompiledModel, CompileOptions, compile_model
from py_ort.compiler.placement.devices import Devices
from py_ort.compiler.placement.integer_range import IntegerRanges
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.providers import canonical_provider, onnxruntime_name
from py_ort.providers.manifest import Manifest
from py_ort.providers.provider import Crossing
from py_ort.schema.gen.Call import CallT
from py_ort.wire import Layout

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
    with pytest.raises(InvalidArgument, match="Unknown Provider Type: cuda"):
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
    ("attributes", "dtype", "inputs", "reason"),
    [
        ({}, "INT32", 1, None),
        ({"antialias": 0}, "INT32", 1, None),
        ({"antialias": 1}, "FLOAT", 1, None),
        ({"antialias": 1}, "INT32", 1, "no kernel for integers with antialias"),
        ({"axes": [1, 1]}, "FLOAT", 1, None),
        ({"axes": [1, 2]}, "FLOAT", 1, "no kernel for other axes"),
        ({}, "FLOAT", 2, "no kernel for a past"),
    ],
)
def test_what_a_kernel_requires_of_a_node_decides_too(
    attributes: dict[str, int | list[int]], dtype: str, inputs: int, reason: str | None
) -> None:
    import onnx_ir as ir

    requires = [
        {"attribute": "antialias", "values": [0], "of": ["int32"], "otherwise": "integers with antialias"},
        {"attribute": "axes", "values": [0, 1], "otherwise": "other axes"},
        {"noInput": 1, "otherwise": "a past"},
    ]
    manifest = Manifest.of("webgpu", [{"op_type": "Resize", "types": [], "requires": requires}])
    values = [ir.val(f"x{i}", ir.DataType[dtype]) for i in range(inputs)]
    node = ir.node("Resize", values, attributes)
    assert manifest.refusal("", "Resize", [ir.DataType[dtype]] * inputs, node) == reason


WIDE = "int64 {} is not known to fit the 32 bits that it has on webgpu"


@pytest.mark.parametrize(
    ("text", "place"),
    {
        "moves": ("(int64[3,700] x) => (int64[700,3] y) { y = Transpose(x) }", ""),
        "adds what is fed": ("(int64[3,700] x) => (int64[3,700] y) { y = Add(x, small) }", "output 0"),
        "takes itself away": ("(int64[3,700] x) => (int64[3,700] y) { y = Sub(x, x) }", ""),
        "takes something away": ("(int64[3,700] x) => (int64[3,700] y) { y = Sub(x, small) }", "output 0"),
        "adds what is narrow": (
            "(uint8[3,700] x) => (int64[3,700] y) { a = Cast<to=7>(x)  y = Add(a, small) }",
            "",
        ),
        "adds a constant of many bits": (
            "(uint8[3,700] x) => (int64[3,700] y) { a = Cast<to=7>(x)  y = Add(a, large) }",
            "input 1",
        ),
        "multiplies what is narrow": (
            "(int32[3,700] x) => (int64[3,700] y) { a = Cast<to=7>(x)  y = Mul(a, a) }",
            "output 0",
        ),
        "casts floats": ("(float[3,700] x) => (int64[3,700] y) { y = Cast<to=7>(x) }", "output 0"),
        "casts halves": ("(float16[3,700] x) => (int64[3,700] y) { y = Cast<to=7>(x) }", ""),
        "sums a few": (
            "(uint8[3,700] x) => (int64[3,1] y) { a = Cast<to=7>(x)  y = ReduceSum(a, one) }",
            "",
        ),
        "sums too many": (
            "(uint16[300,70000] x) => (int64[300,1] y) { a = Cast<to=7>(x)  y = ReduceSum(a, one) }",
            "output 0",
        ),
        "sums unknown numbers": (
            "(uint8[3,n] x) => (int64[3,1] y) { a = Cast<to=7>(x)  y = ReduceSum(a, one) }",
            "output 0",
        ),
        "positions": ("(float[3,700] x) => (int64[3,1] y) { y = ArgMax<axis=1>(x) }", ""),
        "reads a table": ("(int64[3,700] x, float[9,5] t) => (float[3,700,5] y) { y = Gather(t, x) }", ""),
        "clips": ("(float[3,700] x) => (int64[3,700] y) { a = Cast<to=7>(x)  y = Clip(a, one0, seven) }", "input 0"),
    }.values(),
    ids=str,
)
def test_integers_of_64_bits_go_to_the_gpu_only_where_they_fit(text: str, place: str) -> None:
    constants = {
        "small": np.full((3, 700), 5, I64),
        "large": np.full((3, 700), 1 << 40, I64),
        "one": np.array([1], I64),
        "one0": np.array(1, I64),
        "seven": np.array(7, I64),
    }
    model = parse("g " + text, {name: value for name, value in constants.items() if f"{name}" in text})
    last = compile_model(model.SerializeToString()).placement.nodes[-1]
    wanted = ("wasm", "webgpu: " + WIDE.format(place)) if place else ("webgpu", "")
    assert (last.provider, last.reason) == wanted


WIDE_TABLE = "(float[3,700] x, uint8[9,16] t, float[9,1] s) => (float[3,700,32] y) { i = Cast<to=7>(x) "
UNKNOWN_INDICES = {
    "of com.microsoft": WIDE_TABLE
    + " y = com.microsoft.GatherBlockQuantized<block_size=32, bits=4, quantize_axis=1>(t, i, s) }",
    "of ai.onnx by its name": """(float[3,700] x, float[9,5] t) => (float[3,700,5] y) {
        i = Cast<to=7>(x)  y = ai.onnx.Gather(t, i) }""",
}


@pytest.mark.parametrize("text", UNKNOWN_INDICES.values(), ids=UNKNOWN_INDICES)
def test_indices_need_not_be_known_to_fit(text: str) -> None:
    """For any operator: an index refers to an existing tensor."""
    last = compile_model(parse("g " + text).SerializeToString()).placement.nodes[-1]
    assert (last.provider, last.op_type[:6]) == ("webgpu", "Gather")


def test_a_name_in_a_domain_of_the_users_means_what_the_user_says() -> None:
    """A user's operator called Gather need not have indices, nor one called ArgMax make any."""
    i64 = ir.TensorType(ir.DataType.INT64)
    for domain, (found, lookup) in {"": (None, None), "my.ops": ("output 0", "input 1")}.items():
        x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([3]))
        position = ir.Node(domain, "ArgMax", [x])
        position.outputs[0].type = i64
        unknown = ir.Node("", "Cast", [x], [ir.AttrInt64("to", 7)])
        unknown.outputs[0].type = i64
        gather = ir.Node(domain, "Gather", [x, unknown.outputs[0]])
        graph = ir.Graph([x], [position.outputs[0], gather.outputs[0]], nodes=[position, unknown, gather])
        ranges = IntegerRanges(graph)
        for node, place in ((position, found), (gather, lookup)):
            refusal = ranges.refusal(node, "webgpu")
            assert refusal == (None if place is None else WIDE.format(place))


def test_wide_integers_may_be_expected_of_feeds() -> None:
    model = parse("g (int64[3,700] x) => (int64[700,3] y) { y = Transpose(x) }")
    result = compile_model(model.SerializeToString(), options=CompileOptions(wide_integers=True))
    assert _where(result)["Transpose"] == ("wasm", "webgpu: " + WIDE.format("input 0"))


@pytest.mark.parametrize(
    ("graph", "relu"),
    [
        pytest.param("d = Det(x)  e = Relu(d)  f = Unsqueeze(e, two)  y = Det(f)", "wasm", id="between two"),
        pytest.param(
            "d = Det(x)  e = Sigmoid(d)  r = Relu(e)  f = Unsqueeze(r, two)  y = Det(f)", "wasm", id="a chain"
        ),
        pytest.param("d = Det(x)  y = Relu(d)", "webgpu", id="not back"),
        pytest.param("d = Relu(x)  y = Det(d)", "webgpu", id="from a feed"),
        pytest.param(
            "c = Sigmoid(x)  d = Det(c)  e = Add(c, d)  r = Relu(e)  y = Det(r)", "webgpu", id="from the GPU too"
        ),
    ],
)
def test_a_node_between_nodes_on_the_cpu(graph: str, relu: str) -> None:
    model = parse(f"g (float[3,3] x) => (float y) {{ {graph} }}", {"two": np.array([0, 1], np.int64)})
    result = compiled(model)
    assert _where(result)["Relu"][0] == relu
    assert {node.op_type for node in result.placement.fallbacks()} <= {"Det"}


@pytest.mark.parametrize("op_type", ["QuickGelu", "FastGelu", "FusedMatMul"])
def test_one_of_com_microsoft_between_nodes_on_the_cpu(op_type: str) -> None:
    """Light ones are placed like those of ai.onnx, heavy ones are not."""
    second = ", d" if op_type == "FusedMatMul" else ""
    model = parse(
        f"g (float[4,4] x) => (float[4,4] y) {{ d = Sin(x)  q = com.microsoft.{op_type}(d{second})  y = Cos(q) }}"
    )
    model.graph.node[0].name, model.graph.node[2].name = "first", "last"
    options = CompileOptions(graph_optimization_level="basic", force_cpu_node_names=["first", "last"])
    result = compile_model(model.SerializeToString(), options=options)
    assert _where(result)[op_type][0] == ("webgpu" if second else "wasm")


def test_images_are_decoded_on_the_cpu() -> None:
    model = parse('g (uint8[n] x) => (uint8[h,w,c] y) { y = ImageDecoder<pixel_format="RGB">(x) }')
    assert _where(compile_model(model.SerializeToString()))["ImageDecoder"][0] == "wasm"


def test_what_passes_gave_a_node_stays_where_its_kernel_knows_it() -> None:
    """Once the average is part of a chain, all nodes between those of sequences are light, and might go to the CPU."""
    model = parse(
        """g (seq(float[2,3,4,4]) s) => (seq(float) y) {
        e = SequenceAt(s, i)  u = Reshape(e, shape)  a = LayerNormalization(u, k)  q = QuantizeLinear(a, sc, z)
        d = DequantizeLinear(q, sc, z)  p = AveragePool<kernel_shape=[4,4]>(d)  o = QuantizeLinear(p, sd, z)
        r = DequantizeLinear(o, sd, z)  y = SequenceConstruct(r, r) }""",
        {
            **{"i": np.int64(0), "shape": np.array([2, 3, 4, 4]), "k": np.arange(1, 5, dtype=np.float32)},
            **{"sc": np.float32(1), "sd": np.float32(0.01), "z": np.uint8(128)},
        },
        opset=17,
    )
    where = _where(compile_model(model.SerializeToString(), providers=["webgpu", "wasm"]))
    assert where["LayerNormalization"][0] == "webgpu" and where["ElementwiseChain"][0] == "webgpu"


def test_devices_are_asked_and_answer_once() -> None:
    asked: list[tuple[str, list[str]]] = []

    def ask(provider: str, calls: Sequence[CallT], layout: Layout) -> list[str]:
        asked.append((provider, [call.opType for call in calls]))
        return ["not with two axes" if call.opType == "Relu" else "" for call in calls]

    devices = Devices("one", ask)
    text = """g (float[2,3] x, float[n,3] u) => (float[2,3] y, float[n,3] v) {
        a = Relu(x) b = Tanh(a) y = Relu(b) v = Relu(u)
    }"""
    for _ in range(2):
        result = compile_model(parse(text).SerializeToString(), providers=["webnn", "webgpu", "wasm"], devices=devices)
        found = {node.op_type + str(i): (node.provider, node.reason) for i, node in enumerate(result.placement.nodes)}
        assert found["Relu0"] == found["Relu2"] == ("webgpu", "webnn: not with two axes")
        assert found["Tanh1"] == found["Relu3"] == ("webnn", "")  # the run reports unknown sizes
    assert asked == [("webnn", ["Relu", "Tanh"])]


def test_what_a_run_refused_goes_to_the_next() -> None:
    options = CompileOptions(refused={"first": ("webnn", "the browser says no")})
    model = parse("g (float[2,3] x) => (float[2,3] y) { [first] a = Relu(x) [second] y = Tanh(a) }")
    result = compile_model(model.SerializeToString(), providers=["webnn", "wasm"], options=options)
    assert _where(result)["Relu"] == ("wasm", "webnn: the browser says no")


@pytest.mark.parametrize(
    ("size", "channels", "options", "provider"),
    [
        (8, 8, {}, "wasm"),
        (8, 8, {"disable_cpu_fallback": False, "crossings": {"webnn": Crossing(0.0, 0.0, 0.8)}}, "webnn"),
        (96, 256, {}, "webnn"),
    ],
)
def test_a_piece_between_nodes_on_the_cpu_must_be_worth_the_way(
    size: int, channels: int, options: dict[str, Any], provider: str
) -> None:
    shape = f"float[1,{channels},{size},{size}]"
    text = f"""g ({shape} x) => ({shape} y) {{
        a = Atan(x)
        b = Conv<pads=[1,1,1,1]>(a, w)
        c = Relu(b)
        d = Atan(c)
        y = Add(d, x)
    }}"""
    w = np.zeros((channels, channels, 3, 3), np.float32)
    model = parse(text, {"w": w}).SerializeToString()
    result = compile_model(model, providers=["webnn", "wasm"], options=CompileOptions(**options))
    assert {node.provider for node in result.placement.nodes if node.op_type == "Conv"} == {provider}
    assert not result.placement.fallbacks() or {node.op_type for node in result.placement.fallbacks()} == {"Atan"}


def test_a_model_that_is_wholly_on_a_device_stays_there() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Tanh(a) }"
    result = compile_model(parse(text).SerializeToString(), providers=["webnn", "wasm"])
    assert result.placement.counts() == {"webnn": 2, "wasm": 0}
