"""Cast between numbers and text on the core, which converts decimals itself: compared with the C library."""

from __future__ import annotations

import ctypes
import random
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper
from plans_in_node import run_plans

from py_ort.compiler import compile_model

EDGES = [
    *("0", "-0", "5.", ".5", "-1.5", "1e5", "1E+05", "16777217", "9007199254740993", "1e400", "-1e400", "1e-400"),
    *("4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1.401298464324817e-45"),
    *("1.7976931348623157e308", "1.7976931348623159e308", "3.4028235677973366e38", "3.4028235677973365e38"),
    *("16777217.0000000000000000000000000000000000001", "9007199254740992.99999999999999999999", "1e99999999999"),
    *("0x1p3", "0x1.8p-2", "-0X.8P1", "0x1.0000010000000000000000000001p0", "inf", "-Infinity", "NaN", "nan(5)"),
    *("00012.500", "7.0064923216240854e-46", "7.0064923216240853e-46"),
]
LIBC = ctypes.CDLL(None)
LIBC.strtod.restype, LIBC.strtof.restype = ctypes.c_double, ctypes.c_float


def texts() -> list[str]:
    """Return edges, random numbers of all sizes, and middles between two neighbours, where rounding is hardest."""
    draw = random.Random(5)
    found = list(EDGES)
    for _ in range(300):
        found.append(f"{draw.getrandbits(draw.randint(1, 64))}.{draw.getrandbits(60)}e{draw.randint(-345, 310)}")
        value = struct.unpack("<f", struct.pack("<I", draw.getrandbits(31) % 0x7F000000))[0]
        found += [repr(value), f"{(value + float(np.nextafter(np.float32(value), np.float32(np.inf)))) / 2:.200g}"]
    return found


def cast(array: np.ndarray, to: int) -> np.ndarray:
    kind = TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype)
    x = helper.make_tensor_value_info("x", kind, ["n"])
    y = helper.make_tensor_value_info("y", to, ["n"])
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=to)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(model)
    (outputs,) = run_plans([(compile_model(model.SerializeToString(), providers=("wasm",)), {"x": array})])
    assert isinstance(outputs, list), outputs
    return outputs[0]


def test_numbers_from_text() -> None:
    given = texts()
    array = np.array(given, object)
    for to, read, kind in (
        (TensorProto.DOUBLE, LIBC.strtod, np.float64),
        (TensorProto.FLOAT, LIBC.strtof, np.float32),
    ):
        expected = np.array([read(text.encode(), None) for text in given], kind)
        np.testing.assert_array_equal(cast(array, to), expected)


def test_text_of_numbers() -> None:
    draw = random.Random(6)
    values = [draw.uniform(-1, 1) * 10.0 ** draw.randint(-320, 308) for _ in range(500)]
    values += [draw.randint(-2000, 2000) / 8 for _ in range(200)] + [0.0, -0.0, 99999999.5, 1e-5, 123456785.0, 5e-324]
    found = cast(np.array(values), TensorProto.STRING)
    assert list(found) == [f"{value:.8g}" for value in values]
