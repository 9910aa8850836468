"""int32 where ONNX only has int64, and outputs declared with another type."""

from __future__ import annotations

import graphs
import numpy as np
import onnx
import pytest
import standard_form

from py_ort.exceptions import InvalidGraph

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_an_int32_shape_is_cast():
    model = graphs.parse("g (float[2,3] x, int32[2] shape) => (float[a,b] y) { y = Reshape(x, shape) }")
    result = graphs.compiled(model)
    assert graphs.operators(result) == {"Cast": 1, "Reshape": 1}
    (y,) = standard_form.run_native(standard_form.standard_form(result), {"x": X, "shape": np.array([-1, 2], np.int32)})
    np.testing.assert_array_equal(y, X.reshape(3, 2))


def test_an_int64_declared_int32_is_cast():
    model = graphs.parse("g (float[a,3] x) => (int32[2] y) { y = Shape(x) }")
    result = graphs.compiled(model)
    (y,) = standard_form.run_native(standard_form.standard_form(result), {"x": X})
    assert y.dtype == np.int32 and y.tolist() == [2, 3] and result.outputs[0].type == "tensor(int32)"


@pytest.mark.parametrize("declared", ["float", "int8", "bool"])
def test_an_output_of_another_type_is_an_error(declared):
    model = graphs.parse(f"g (float[a,3] x) => ({declared}[2] y) {{ y = Shape(x) }}")
    with pytest.raises(InvalidGraph, match=rf"'y' is declared as tensor\({declared}\).*Shape.*tensor\(int64\)"):
        graphs.compiled(model)


@pytest.mark.skipif(not onnx.defs.has("FlexAttention", "ai.onnx.preview"), reason="onnx has it from 1.23 on")
def test_an_operator_with_a_body_has_its_own_type():
    scores = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list("bhls")) for name in ("s", "t")]
    body = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["s"], ["t"])], "body", scores[:1], scores[1:])
    domain = "ai.onnx.preview"
    node = onnx.helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=domain, score_mod=body)
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2, 3, 4]) for name in "qkv"]
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT16, [1, 2, 3, 4])
    graph = onnx.helper.make_graph([node], "g", inputs, [output])
    opsets = [onnx.helper.make_opsetid("", 26), onnx.helper.make_opsetid(domain, 1)]
    with pytest.raises(InvalidGraph, match=r"'y' is declared as tensor\(float16\).*FlexAttention.*tensor\(float\)"):
        graphs.compiled(onnx.helper.make_model(graph, opset_imports=opsets))
