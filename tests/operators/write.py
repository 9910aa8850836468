"""Writes the operator cases of this folder, in the format of onnxruntime-web's: `python tests/operators/write.py`.

What comes out is what native onnxruntime gives. Each entry of TESTS is a model of one node, run on each of its cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

from py_ort.testing.sources import ort_web

FOLDER = Path(__file__).parent
OPSET = 21
RNG = np.random.default_rng(20)
_KINDS = {int: "int", float: "float", str: "string"}


class Test(NamedTuple):
    """One node.

    Attributes:
        operator: "Relu", or "com.microsoft.Gelu".
        cases: The inputs of each; None: left out.
        attributes: By name.
        outputs: How many.
    """

    operator: str
    cases: Sequence[Sequence[np.ndarray | None]]
    attributes: Mapping[str, Any] = {}
    outputs: int = 1


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32).round(2)


def above(least: float, *shape: int) -> np.ndarray:
    return (np.abs(floats(*shape)) + np.float32(least)).round(2)


def integers(*shape: int, low: int = -9, high: int = 9, dtype: type = np.int32) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def bools(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2, shape).astype(bool)


def each(names: str, *shapes: tuple[int, ...], least: float | None = None) -> list[Test]:
    """Tests of operators with one input, of these shapes."""
    make = floats if least is None else lambda *shape: above(least, *shape)
    return [Test(name, [[make(*shape)] for shape in shapes]) for name in names.split()]


def pairs(names: str, *shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> list[Test]:
    """Tests of operators with two inputs, of these shapes."""
    return [Test(name, [[floats(*a), floats(*b)] for a, b in shapes]) for name in names.split()]


BROADCAST = (((2, 3), (2, 3)), ((2, 1, 4), (3, 1)), ((5,), ()))
IMAGE = (1, 3, 7, 6)
TESTS: dict[str, list[Test]] = {
    "elementwise": [
        *each("Abs Neg Relu Sigmoid Tanh Exp Erf Floor Ceil Sign Softplus Sin Cos", (2, 5), (1, 3, 2, 2)),
        *each("Sqrt Log Reciprocal", (2, 5), (7,), least=0.1),
        *pairs("Add Sub Mul", *BROADCAST),
        Test("Div", [[floats(2, 3), above(0.5, 2, 3)], [floats(2, 1, 4), above(0.5, 3, 1)]]),
        Test("Pow", [[above(0.2, 2, 3), floats(3)]]),
        Test("Mod", [[integers(2, 3), integers(3, low=1)]]),
        Test("Clip", [[floats(2, 5), np.float32(-0.5), np.float32(0.5)]]),
        Test("Clip", [[floats(2, 5), None, np.float32(0.5)]]),
        Test("LeakyRelu", [[floats(2, 5)]], {"alpha": 0.2}),
        Test("Elu", [[floats(2, 5)]], {"alpha": 1.5}),
        Test("HardSigmoid", [[floats(2, 5)]], {"alpha": 0.25, "beta": 0.4}),
        Test("PRelu", [[floats(2, 3, 4), floats(3, 1)]]),
        Test("Cast", [[floats(2, 5)]], {"to": 6}),
    ],
    "comparing": [
        *pairs("Greater Less GreaterOrEqual", ((2, 3), (3,)), ((1, 4), (4, 1))),
        Test("Equal", [[integers(2, 3, high=-6), integers(3, high=-6)]]),
        Test("Not", [[bools(2, 3)]]),
        *[Test(name, [[bools(2, 3), bools(3)]]) for name in ("And", "Or", "Xor")],
        Test("Where", [[bools(2, 3), floats(2, 3), floats(3)], [bools(4, 1), floats(1, 5), floats(4, 5)]]),
        *[Test(name, [[floats(2, 3), floats(3), floats(2, 1)]]) for name in ("Max", "Min", "Sum", "Mean")],
    ],
    "reducing": [
        *[
            Test(name, [[floats(2, 3, 4), longs(1)], [floats(3, 5, 2), longs(0, 2)]], {"keepdims": 0})
            for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd")
        ],
        *[Test(name, [[floats(2, 3, 4)]], {"axis": 1, "keepdims": 0}) for name in ("ArgMax", "ArgMin")],
        *[Test(name, [[floats(2, 5)], [floats(1, 3, 4)]], {"axis": -1}) for name in ("Softmax", "LogSoftmax")],
        Test("CumSum", [[floats(2, 5), np.array(1, np.int32)]], {"reverse": 1}),
        Test("TopK", [[floats(2, 7), longs(3)]], {"axis": 1}, 2),
    ],
    "matrices": [
        *pairs("MatMul", ((2, 3), (3, 4)), ((2, 5, 3), (3, 4)), ((2, 1, 4, 3), (5, 3, 2))),
        Test("Gemm", [[floats(3, 2), floats(4, 3), floats(4)]], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}),
        Test("com.microsoft.FusedMatMul", [[floats(3, 2), floats(3, 4)]], {"transA": 1, "alpha": 0.25}),
        Test("Einsum", [[floats(2, 3, 4), floats(2, 4, 5)]], {"equation": "bij,bjk->bik"}),
        Test(
            "MatMulInteger",
            [[integers(2, 4, low=0, high=255, dtype=np.uint8), integers(4, 3, dtype=np.int8), np.uint8(128)]],
        ),
    ],
    "images": [
        Test("Conv", [[floats(*IMAGE), floats(4, 3, 3, 3), floats(4)]], {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
        Test("Conv", [[floats(1, 4, 6, 6), floats(4, 1, 3, 3)]], {"group": 4, "dilations": [2, 2]}),
        Test("ConvTranspose", [[floats(1, 2, 4, 4), floats(2, 3, 3, 3)]], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        Test("MaxPool", [[floats(*IMAGE)]], {"kernel_shape": [3, 2], "strides": [2, 2]}),
        Test("AveragePool", [[floats(*IMAGE)]], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        *each("GlobalAveragePool GlobalMaxPool", IMAGE),
        Test("BatchNormalization", [[floats(*IMAGE), floats(3), floats(3), floats(3), above(0.1, 3)]]),
        Test("InstanceNormalization", [[floats(*IMAGE), floats(3), floats(3)]]),
        Test("LRN", [[floats(1, 5, 3, 3)]], {"size": 3}),
        Test("DepthToSpace", [[floats(1, 8, 2, 3)]], {"blocksize": 2}),
        Test(
            "Resize",
            [[floats(1, 2, 3, 4), None, np.array([1, 1, 2, 1.5], np.float32)]],
            {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        ),
        Test("GridSample", [[floats(1, 2, 4, 4), floats(1, 3, 3, 2)]], {"align_corners": 1}),
    ],
    "normalizing": [
        Test("LayerNormalization", [[floats(2, 3, 8), floats(8), floats(8)]], {"axis": -1}),
        Test("com.microsoft.SkipLayerNormalization", [[floats(1, 3, 8), floats(1, 3, 8), floats(8), floats(8)]]),
        Test("com.microsoft.Gelu", [[floats(2, 5)]]),
        Test("com.microsoft.FastGelu", [[floats(2, 6), floats(6)]]),
        Test("com.microsoft.QuickGelu", [[floats(2, 5)]], {"alpha": 1.702}),
        Test("com.microsoft.BiasGelu", [[floats(2, 6), floats(6)]]),
    ],
    "moving": [
        Test("Transpose", [[floats(2, 3, 4)]], {"perm": [2, 0, 1]}),
        Test("Concat", [[floats(2, 3), floats(2, 1), floats(2, 2)]], {"axis": 1}),
        Test("Split", [[floats(2, 7), longs(2, 5)]], {"axis": 1}, 2),
        Test("Slice", [[floats(4, 5), longs(3, 1), longs(-5, 5), longs(0, 1), longs(-1, 2)]]),
        Test("Reshape", [[floats(2, 6, 2), longs(2, 0, -1)]], {"allowzero": 0}),
        Test("Squeeze", [[floats(2, 1, 3), longs(1)]]),
        Test("Unsqueeze", [[floats(2, 3), longs(0, 3)]]),
        Test("Flatten", [[floats(2, 3, 4)]], {"axis": 2}),
        Test("Expand", [[floats(3, 1), longs(2, 1, 4)]]),
        Test("Tile", [[floats(2, 3), longs(2, 2)]]),
        Test("Pad", [[floats(2, 3), longs(1, 0, 0, 2), np.float32(1.5)]], {"mode": "constant"}),
        Test("Pad", [[floats(3, 4), longs(1, 2, 0, 1)]], {"mode": "reflect"}),
        Test("Gather", [[floats(4, 3), longs(2, -1, 0)]], {"axis": 0}),
        Test("GatherElements", [[floats(2, 3), integers(2, 2, low=0, high=3, dtype=np.int64)]], {"axis": 1}),
        Test("GatherND", [[floats(3, 4, 2), np.array([[0, 1], [2, -1]], np.int64)]]),
        Test("ScatterND", [[floats(4, 2), np.array([[3], [0]], np.int64), floats(2, 2)]]),
        Test("ScatterElements", [[floats(3, 3), np.array([[1, 0, 2]], np.int64), floats(1, 3)]], {"axis": 0}),
        Test("Trilu", [[floats(3, 4)]], {"upper": 0}),
        Test("Range", [[np.array(1, np.int64), np.array(9, np.int64), np.array(3, np.int64)]]),
        Test("OneHot", [[longs(0, 2, 1), longs(3), np.array([0, 5], np.float32)]], {"axis": -1}),
        Test("ReverseSequence", [[floats(4, 3), longs(2, 4, 1)]], {"batch_axis": 1, "time_axis": 0}),
    ],
    "quantizing": [
        Test("QuantizeLinear", [[floats(2, 4), np.float32(0.05), np.uint8(128)]]),
        Test(
            "DequantizeLinear",
            [[integers(2, 4, dtype=np.int8), above(0.1, 2), integers(2, dtype=np.int8)]],
            {"axis": 0},
        ),
        Test("DynamicQuantizeLinear", [[floats(3, 4)]], {}, 3),
    ],
}


def written(test: Test) -> dict[str, Any]:
    """Return a test as the format has it, with the outputs of native onnxruntime."""
    domain, _, operator = test.operator.rpartition(".")
    attributes = [{"name": name, "data": value, "type": _kind(value)} for name, value in test.attributes.items()]
    made: dict[str, Any] = {
        "name": test.operator,
        "operator": operator,
        "opset": {"domain": domain, "version": 1 if domain else OPSET},
        "attributes": attributes,
        # Cases of other ranks, too, run in one session.
        "inputShapeDefinitions": "rankOnly" if len(test.cases) == 1 else "none",
        "cases": [],
    }
    for inputs in test.cases:
        arrays = [None if value is None else np.asarray(value) for value in inputs]
        case = {"inputs": [_tensor(array) for array in arrays], "outputs": []}
        outputs = native(made, case, arrays, test.outputs)
        shapes = " ".join("-" if array is None else str(list(array.shape)) for array in arrays)
        made["cases"].append({"name": shapes.replace(" ", ""), **case, "outputs": [_tensor(y) for y in outputs]})
    return made


def native(test: Mapping[str, Any], case: Mapping[str, Any], inputs: Sequence[Any], outputs: int) -> list[np.ndarray]:
    """Return what native onnxruntime gives for a case."""
    unknown = [{"data": [], "dims": [], "type": "float32"}] * outputs
    model = ort_web._model({**test, "cases": [{**case, "outputs": unknown}]})
    for opset in model.opset_import:  # it may not know the newest
        opset.version = 1 if opset.domain else OPSET
    for value in model.graph.output:  # it knows their types
        value.ClearField("type")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {f"input_{i}": array for i, array in enumerate(inputs) if array is not None})


def _kind(value: Any) -> str:
    return f"{_KINDS[type(value[0])]}s" if isinstance(value, list) else _KINDS[type(value)]


def _tensor(array: np.ndarray | None) -> dict[str, Any]:
    if array is None:
        return {"data": None, "type": "float32"}
    data = [float(f"{x:.7g}") for x in array.reshape(-1)] if array.dtype == np.float32 else array.reshape(-1).tolist()
    return {"data": data, "dims": list(array.shape), "type": array.dtype.name}


def main() -> None:
    for family, tests in TESTS.items():
        lines = ",\n".join(f"  {json.dumps(written(test))}" for test in tests)
        head = f"// {family.capitalize()}: written by write.py, with the outputs of native onnxruntime.\n"
        (FOLDER / f"{family}.jsonc").write_text(f"{head}[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
