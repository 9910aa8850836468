"""The least work of a model (`py_ort.bench.work`), counted by hand."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from py_ort.bench.floor import Device, Floor
from py_ort.bench.work import Work, work_of


def model(nodes, inputs, weights, functions=(), result=TensorProto.FLOAT):
    """A model whose inputs are (name, type, shape); weights are arrays by name."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in inputs],
        [helper.make_tensor_value_info(nodes[-1].output[0], result, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=8, functions=list(functions))
    return made.SerializeToString()


FLOAT = TensorProto.FLOAT


def operations(op, shape, weight, dtype=FLOAT, result=FLOAT, **attributes):
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    return work_of(model([node], [("x", dtype, shape)], {"w": weight}, result=result), {}).operations


def test_products():
    assert operations("MatMul", [2, 5, 7], np.ones((7, 3), np.float32)) == 2 * (2 * 5 * 3) * 7
    assert operations("Gemm", [7, 5], np.ones((3, 7), np.float32), transA=1, transB=1) == 2 * (5 * 3) * 7
    halves = operations("MatMul", [5, 8], np.ones((8, 3), np.float16), TensorProto.FLOAT16, TensorProto.FLOAT16)
    assert halves == 2 * (5 * 3) * 8 / 2
    bytes_ = operations("MatMulInteger", [5, 8], np.ones((8, 3), np.int8), TensorProto.UINT8, TensorProto.INT32)
    assert bytes_ == 2 * (5 * 3) * 8 / 4


@pytest.mark.parametrize(
    ("kernel", "attributes", "pixels", "fewer"),
    [
        ((4, 3, 1, 1), {}, 8 * 8, 1),
        ((4, 3, 3, 3), {"pads": [1, 1, 1, 1]}, 8 * 8, 4),  # by Winograd's transforms
        ((4, 3, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, 4 * 4, 1),
        ((3, 1, 3, 3), {"group": 3}, 6 * 6, 1),
    ],
)
def test_convolutions(kernel, attributes, pixels, fewer):
    found = operations("Conv", [1, 3, 8, 8], np.ones(kernel, np.float32), **attributes)
    assert found == 2 * pixels * np.prod(kernel) / fewer


def test_transposed_convolutions_count_their_inputs():
    found = operations("ConvTranspose", [1, 3, 4, 4], np.ones((3, 5, 2, 2), np.float32), strides=[2, 2])
    assert found == 2 * (3 * 4 * 4) * (5 * 2 * 2)


def test_sizes_come_from_what_is_fed_and_weights_count_their_bytes():
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    data = model([node], [("x", FLOAT, ["n", 7])], {"w": np.ones((7, 3), np.float32)})
    assert work_of(data, {"x": (11, 7)}) == Work(2 * 11 * 3 * 7, 7 * 3 * 4)
    assert work_of(data, {}).operations == 0


def test_functions_of_the_model_count():
    body = [helper.make_node("MatMul", ["a", "b"], ["c"])]
    twice = helper.make_function("own", "Twice", ["a", "b"], ["c"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("Twice", ["x", "w"], ["y"], domain="own")
    data = model([node], [("x", FLOAT, [5, 7])], {"w": np.ones((7, 3), np.float32)}, [twice])
    assert work_of(data, {}).operations == 2 * 5 * 3 * 7


def test_a_floor_is_the_sum_of_what_cannot_overlap():
    device = Device(round_trip_ms=0.5, launch_ms=0.01, operations=1e9, bytes=1e9, uploaded=1e9, downloaded=5e8)
    floor = Floor.of(device, Work(3e6, 1_000_000), launches=10, fed=1_000_000, given=1_000_000)
    assert floor.as_dict() == pytest.approx(
        {
            "round_trip_ms": 0.5,
            "launches_ms": 0.1,
            "arithmetic_ms": 3,
            "memory_ms": 1,
            "transfers_ms": 1 + 2,
            "ms": 0.5 + 0.1 + 3 + 3,
        }
    )
