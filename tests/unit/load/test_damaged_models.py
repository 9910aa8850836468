"""Models whose parts do not fit together: each is refused by an error that says what is wrong, and where."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest
from onnx import TensorProto, helper

from py_ort.compiler import CompileOptions, compile_model
from py_ort.exceptions import InternalError, PyOrtError

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
ML = "ai.onnx.ml"


def _model(
    node: onnx.NodeProto, x: onnx.ValueInfoProto = X, constants: Sequence[onnx.TensorProto] = ()
) -> onnx.ModelProto:
    graph = helper.make_graph([node], "g", [x], [Y], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)])


def _map(key: int = TensorProto.INT64, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    x = onnx.ValueInfoProto(name="x")
    x.type.map_type.key_type = key
    x.type.map_type.value_type.tensor_type.elem_type = element
    return x


def _cast_map(**attributes: object) -> onnx.NodeProto:
    return helper.make_node("CastMap", ["x"], ["y"], name="n", domain=ML, **attributes)


def _zip_map(**attributes: object) -> onnx.NodeProto:
    return helper.make_node("ZipMap", ["x"], ["y"], name="n", domain=ML, **attributes)


def _constant(dtype: int, **fields: object) -> onnx.ModelProto:
    tensor = onnx.TensorProto(name="w", data_type=dtype, dims=[3], **fields)  # type: ignore[arg-type]
    return _model(helper.make_node("Identity", ["w"], ["y"]), constants=[tensor])


def _tensor_attribute(**fields: object) -> onnx.ModelProto:
    tensor = onnx.TensorProto(data_type=TensorProto.FLOAT, **fields)  # type: ignore[arg-type]
    return _model(helper.make_node("Constant", [], ["y"], name="n", value=tensor))


def _other_type() -> onnx.ModelProto:
    return _model(
        helper.make_node("Relu", ["x"], ["y"]), constants=[helper.make_tensor("x", TensorProto.INT64, [1], [1])]
    )


def _referring() -> onnx.ModelProto:
    node = helper.make_node("Elu", ["x"], ["y"], alpha=1.0)
    node.attribute[0].ref_attr_name = "outer"
    return _model(node)


def _referring_body() -> onnx.ModelProto:
    node = onnx.parser.parse_node(
        "y = Loop (x, , x) <body = b (int64 i, bool c) => (bool c, float z) { z = Constant <value_float = 1.0> () }>"
    )
    node.attribute[0].CopyFrom(onnx.AttributeProto(name="body", type=onnx.AttributeProto.GRAPH, ref_attr_name="outer"))
    return _model(node)


def _branches(count: int) -> onnx.ModelProto:
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", 1, None)] * count
    )
    return _model(
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        constants=[helper.make_tensor("c", TensorProto.BOOL, [], [1])],
    )


def _in_function(inner: onnx.NodeProto, *opsets: onnx.OperatorSetIdProto) -> onnx.ModelProto:
    model = _model(helper.make_node("F", ["x"], ["y"], domain="own"))
    model.opset_import.append(helper.make_opsetid("own", 1))
    model.functions.append(helper.make_function("own", "F", ["a"], ["b"], [inner], opsets))
    return model


DAMAGED = {
    "a body that only a function has": (_referring_body(), "'body' is one of a function, 'outer'"),
    "a branch with more values than outputs": (_branches(2), "gives 2 values, and it has 1 outputs"),
    "a function without opsets": (
        _in_function(helper.make_node("Relu", ["a"], ["b"])),
        "the function imports no opset",
    ),
    "too few inputs in a function": (
        _in_function(helper.make_node("Relu", [], ["b"]), helper.make_opsetid("", 21)),
        "has 0 inputs, not 1",
    ),
    "an attribute with too few strings": (
        _model(
            helper.make_node(
                "ConstantOfShape", ["x"], ["y"], value=onnx.TensorProto(data_type=TensorProto.STRING, dims=[1])
            )
        ),
        "has 0 strings for the shape",
    ),
    "a mode that Attention has not": (
        _in_function(
            helper.make_node("Attention", ["a", "a", "a"], ["b"], qk_matmul_output_mode=7), helper.make_opsetid("", 23)
        ),
        "'qk_matmul_output_mode' is 7",
    ),
    "CastMap: cast_to unknown": (_model(_cast_map(cast_to="TO_BOGUS"), _map()), "cast_to is b'TO_BOGUS'"),
    "CastMap: cast_to no text": (_model(_cast_map(cast_to=b"\xff\xfe"), _map()), "cast_to is"),
    "CastMap: cast_to a number": (_model(_cast_map(cast_to=3), _map()), "'cast_to' is of another type"),
    "CastMap: too many keys": (_model(_cast_map(map_form="SPARSE", max_map=1 << 50), _map()), "max_map"),
    "CastMap: keys of no type": (_model(_cast_map(), _map(key=99)), "map from type 99"),
    "CastMap: elements of no type": (_model(_cast_map(), _map(element=99)), "tensors of type 99"),
    "CastMap: no input": (_model(helper.make_node("CastMap", [], ["y"], domain=ML)), "0 inputs"),
    "ZipMap: no output": (_model(helper.make_node("ZipMap", ["x"], [], domain=ML)), "0 outputs"),
    "ZipMap: labels are a number": (_model(_zip_map(classlabels_strings=3)), "'classlabels_strings' is of another"),
    "bfloat16 in int64_data": (_constant(TensorProto.BFLOAT16, int64_data=[1, 2, 3]), "'w'.*int64_data"),
    "floats in int64_data": (_constant(TensorProto.FLOAT, int64_data=[1, 2, 3]), "'w'.*int64_data"),
    "too few floats": (_constant(TensorProto.FLOAT, float_data=[1]), "'w'"),
    "no floats": (_constant(TensorProto.FLOAT), "initializer 'w' of shape .3. has no contents"),
    "no half floats": (_constant(TensorProto.FLOAT16), "has no contents"),
    "no 4-bit integers": (_constant(TensorProto.INT4), "has no contents"),
    "no bytes": (_constant(TensorProto.INT8, raw_data=b""), "'w'"),
    "no contents of an attribute": (_tensor_attribute(dims=[3]), "attribute 'value' of node n of shape .3. has no"),
    "too few bytes": (_constant(TensorProto.FLOAT, raw_data=b"1234567"), "'w'"),
    "a type that there is not": (_constant(-1, raw_data=b"0123"), "-1 is not a valid"),
    "a size below 0": (_tensor_attribute(dims=[-1], float_data=[1]), "attribute 'value' of node n"),
    "an attribute's contents too short": (_tensor_attribute(dims=[3], float_data=[1]), "attribute 'value' of node n"),
    "an attribute of floats in int32_data": (_tensor_attribute(dims=[1], int32_data=[1]), "attribute 'value' of"),
    "an initializer of another type": (_other_type(), "initializer 'x' is of type INT64, and declared as FLOAT"),
    "a Constant of none": (_model(helper.make_node("Constant", [], ["y"], name="n")), "one value, not none"),
    "a Constant of two": (
        _model(helper.make_node("Constant", [], ["y"], name="n", value_int=1, value_ints=[1])),
        "one value, not value_int, value_ints",
    ),
    "a Constant of another type than the output": (
        _model(helper.make_node("Constant", [], ["y"], name="n", value_int=1)),
        "'y' is declared as FLOAT, and is INT64",
    ),
    "a function's attribute outside of functions": (_referring(), "'alpha' is one of a function, 'outer'"),
    "an operator of our own": (
        _model(helper.make_node("Relu", ["x"], ["y"], domain="com.ms.internal.nhwc")),
        "com.ms.internal.nhwc, which is py_ort's own",
    ),
    "a Cast to no type": (_model(helper.make_node("Cast", ["x"], ["y"], to=1 << 40)), "'to' is 1099511627776"),
    "an axis out of all bounds": (
        _model(helper.make_node("LayerNormalization", ["x", "x"], ["y"], axis=1 << 31)),
        "'axis' is 2147483648",
    ),
    "a negative number of batch axes": (
        _model(helper.make_node("GatherND", ["x", "x"], ["y"], batch_dims=-(1 << 31))),
        "'batch_dims' is -2147483648",
    ),
    "a Split into more parts than outputs": (
        _model(helper.make_node("Split", ["x"], ["y"], num_outputs=2)),
        "'num_outputs' is 2, and it has 1 outputs",
    ),
    "a required input is left out": (_model(helper.make_node("LeakyRelu", [""], ["y"])), "lacks its input 'X'"),
}


@pytest.mark.parametrize("level", [0, 99])
@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_wrong_is_said(name: str, level: int) -> None:
    model, text = DAMAGED[name]
    with pytest.raises(PyOrtError, match=text) as caught:
        compile_model(model.SerializeToString(), options=CompileOptions(graph_optimization_level=level))
    assert not isinstance(caught.value, InternalError)
