"""Many axes, no elements, many inputs."""

import numpy as np
from case import Case, i64, r

EIGHT = (2, 1, 3, 2, 1, 2, 3, 2)
PERM = [7, 2, 5, 0, 3, 1, 6, 4]
#: A product of twelve matrices.
CHAIN = ",".join("abcdefghijklm"[k : k + 2] for k in range(12)) + "->am"


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a @ b).astype(np.float32)


CASES = [
    # Many axes.
    Case("Add", [r(*EIGHT), r(2, 4, 1, 2, 5, 1, 3, 1)]),
    Case("Where", [r(*EIGHT, dtype="bool"), r(3, 1), r(2, 1, 1, 1, 1, 1, 1, 2)]),
    Case("Transpose", [r(*EIGHT)], {"perm": PERM}, lambda x: x.transpose(PERM)),
    Case("ReduceSum", [r(*EIGHT), i64(0, 2, 5, 7)], tolerance="normal"),
    Case("ReduceMax", [r(*EIGHT), i64(1, 3, 6)], {"keepdims": 0}),
    Case("ArgMax", [r(*EIGHT)], {"axis": 3}),
    Case("Softmax", [r(*EIGHT)], {"axis": 2}),
    Case("CumSum", [r(*EIGHT), np.array(6, np.int64)]),
    Case("Concat", [r(*EIGHT), r(2, 1, 3, 2, 4, 2, 3, 2)], {"axis": 4}),
    Case("Slice", [r(*EIGHT), i64(2, -1), i64(0, -9), i64(2, 5), i64(-1, -1)]),
    Case("Expand", [r(*EIGHT), i64(1, 2, 1, 1, 2, 1, 1, 1)]),
    Case("Pad", [r(*EIGHT), i64(*[0, 1, 0, 0, 2, 0, 1, 0], *[1, 0, 0, 1, 0, 0, 0, 0])], host=(1,)),
    Case("Gather", [r(*EIGHT), i64(2, 0, 1)], {"axis": 6}),
    Case("GatherElements", [r(*EIGHT), r(*EIGHT, dtype="int64", low=-2, high=2)], {"axis": 2}),
    Case("ScatterElements", [r(*EIGHT), np.zeros((1,) * 8, np.int64), r(*(1,) * 8)], {"axis": 3}),
    Case("MatMul", [r(2, 1, 2, 1, 2, 1, 4, 5), r(1, 3, 2, 2, 1, 1, 5, 3)], {}, matmul, tolerance="normal"),
    Case("Tile", [r(*EIGHT), i64(1, 2, 1, 2, 1, 1, 2, 1)]),
    Case("Split", [r(*EIGHT), i64(1, 2)], {"axis": 2}, outputs=2),
    Case("TopK", [r(*EIGHT), i64(2)], {"axis": 6}, outputs=2),
    Case("OneHot", [r(*EIGHT[1:], dtype="int64", low=0, high=4), i64(4), np.array([0, 1], np.float32)], {"axis": 3}),
    Case("GatherND", [r(*EIGHT), np.array([[0, 0, 2], [1, 0, -1]])]),
    Case("ScatterND", [r(*EIGHT), np.array([[0, 0, 2, 1, 0, 1, 2], [1, 0, 0, 0, 0, 0, 1]]), r(2, 2)]),
    Case("LogSoftmax", [r(*EIGHT)], {"axis": 5}, tolerance="normal"),
    Case("LayerNormalization", [r(*EIGHT), r(2, 3, 2), r(2, 3, 2)], {"axis": 5}, tolerance="normal"),
    Case("InstanceNormalization", [r(*EIGHT[::-1]), r(3), r(3)], tolerance="normal"),
    Case("PRelu", [r(*EIGHT), r(3, 1, 1, 2, 1, 1)]),
    Case("Trilu", [r(*EIGHT), np.array(1, np.int64)]),
    Case("GlobalAveragePool", [r(*EIGHT)], {}, "onnx", tolerance="normal"),
    Case("Einsum", [r(*EIGHT), r(2, 3)], {"equation": "abcdefgh,hi->iabcdefg"}, tolerance="normal"),
    Case("DequantizeLinear", [r(*EIGHT, dtype="uint8"), r(3, low=0.1, high=1), r(3, dtype="uint8")], {"axis": 6}),
    # No elements.
    Case("Add", [r(0, 3), r(1, 3)]),
    Case("Relu", [r(2, 0, 4)]),
    Case("Cast", [r(0)], {"to": 7}),
    Case("Transpose", [r(2, 0, 4)], {"perm": [2, 0, 1]}),
    Case("Concat", [r(2, 0), r(2, 3), r(2, 0)], {"axis": 1}),
    Case("Gather", [r(5, 3), np.zeros((0, 2), np.int64)]),
    Case("Slice", [r(5, 3), i64(4), i64(2), i64(0)]),
    Case("ReduceSum", [r(2, 0, 3), i64(1)]),
    Case("ReduceProd", [r(2, 0, 3), i64(1)]),
    Case("ReduceSum", [r(0, 4), i64(1)]),
    Case("MatMul", [r(3, 0), r(0, 4)]),
    Case("MatMul", [r(0, 5), r(5, 4)]),
    Case("Gemm", [r(3, 0), r(0, 4), r(4)]),
    Case("Softmax", [r(0, 4)]),
    Case("LayerNormalization", [r(0, 4), r(4)]),
    Case("Conv", [r(0, 3, 5, 5), r(2, 3, 3, 3)], expected=lambda x, w: np.zeros((0, 2, 3, 3), np.float32)),
    Case("MaxPool", [r(0, 3, 5, 5)], {"kernel_shape": [2, 2]}, lambda x: np.zeros((0, 3, 4, 4), np.float32)),
    Case("Tile", [r(2, 3), i64(0, 2)]),
    Case("Expand", [r(1, 3), i64(0, 3)]),
    Case("Pad", [r(2, 0), i64(0, 1, 0, 2)], host=(1,)),
    Case("TopK", [r(0, 5), i64(2)], outputs=2),
    Case("TopK", [r(3, 5), i64(0)], outputs=2),
    Case("Where", [r(0, 3, dtype="bool"), r(1, 3), r(1, 1)]),
    Case("CumSum", [r(0, 3), np.array(1, np.int64)]),
    Case("Split", [r(3, 4), i64(0, 3)], outputs=2),
    Case("Softmax", [r(3, 0)]),
    Case("ArgMax", [r(0, 3)], {"axis": 1}),
    Case("OneHot", [np.zeros((0, 2), np.int64), i64(4), np.array([0, 1], np.float32)]),
    Case("GatherND", [r(3, 4), np.zeros((0, 1), np.int64)]),
    Case("GatherElements", [r(3, 4), np.zeros((0, 4), np.int64)]),
    Case("ScatterElements", [r(3, 4), np.zeros((0, 4), np.int64), r(0, 4)]),
    Case("ScatterND", [r(3, 4), np.zeros((0, 1), np.int64), r(0, 4)]),
    Case("Einsum", [r(2, 0), r(0, 3)], {"equation": "ab,bc->ac"}, lambda a, b: a @ b),
    Case("Trilu", [r(0, 3, 3)]),
    Case("DepthToSpace", [r(0, 4, 2, 2)], {"blocksize": 2}),
    Case(
        "Resize", [r(0, 3, 4, 4), None, None, i64(0, 3, 8, 8)], expected=lambda x, *_: np.zeros((0, 3, 8, 8), x.dtype)
    ),
    Case("BatchNormalization", [r(0, 3, 4), r(3), r(3), r(3), r(3, low=0.1, high=1)], expected=lambda x, *_: x),
    Case("InstanceNormalization", [r(0, 3, 4), r(3), r(3)], expected=lambda x, *_: x),
    Case("GlobalAveragePool", [r(0, 3, 4, 4)], expected=lambda x: np.zeros((0, 3, 1, 1), x.dtype)),
    Case("ConvTranspose", [r(0, 3, 4, 4), r(3, 2, 2, 2)], expected=lambda x, w: np.zeros((0, 2, 5, 5), x.dtype)),
    Case("MatMulInteger", [r(0, 3, dtype="uint8"), r(3, 2, dtype="uint8")]),
    Case("QuantizeLinear", [r(0, 3), np.array(0.1, np.float32), np.array(3, np.uint8)]),
    # Many inputs.
    Case("Concat", [r(2, 1 + k % 3, 3) for k in range(40)], {"axis": 1}),
    Case("Concat", [r(2, 4 * (1 + k % 3), 4) for k in range(40)], {"axis": 1}),
    Case("Max", [r(3, 4) if k % 2 else r(4) for k in range(40)]),
    Case("Mean", [r(3, 4) for k in range(40)], tolerance="normal"),
    Case("Sum", [r(3, 4) for k in range(40)], tolerance="normal"),
    Case("Min", [r(3, 4, dtype="int32") for k in range(40)]),
    Case(
        "Einsum",
        [r(2, 2) for k in range(12)],
        {"equation": CHAIN},
        lambda *m: np.linalg.multi_dot(m),
        tolerance="loose",
    ),
    # Many outputs.
    Case("Split", [r(2, 120), i64(*[1 + k % 5 for k in range(40)])], {"axis": 1}, outputs=40),
    Case("Einsum", [r(2, 3), r(3, 4), r(4, 2)], {"equation": "ab,bc,ca->"}, tolerance="normal"),
]
