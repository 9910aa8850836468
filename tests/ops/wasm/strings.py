"""Strings, in every operator of ONNX that accepts them without interpreting them."""

import numpy as np
from case import Case, i64


def s(*texts: object) -> np.ndarray:
    return np.array(texts, object)


WORDS = s("a", "été", "", "d" * 300)
TABLE = s(["a", "b", "c"], ["", "ü", "b"])
CUBE = np.array([f"w{i}" for i in range(24)], object).reshape(2, 3, 4)
IMAGE = np.array([f"p{i}" for i in range(16)], object).reshape(1, 4, 2, 2)
TRUTH = np.array([[True, False, True], [False, True, True]])


def _case(op: str, *inputs: np.ndarray | None, expected: object = None, **attributes: object) -> Case:
    return Case(op, list(inputs), attributes, None if expected is None else lambda *_: expected)


CASES = [
    _case("Identity", TABLE),
    _case("Reshape", CUBE, i64(4, -1)),
    _case("Flatten", CUBE, expected=CUBE.reshape(2, 12), axis=1),
    _case("Squeeze", CUBE[:1], i64(0)),
    _case("Unsqueeze", TABLE, i64(1)),
    _case("Transpose", CUBE, perm=[2, 0, 1]),
    _case("Concat", TABLE, TABLE, axis=1),
    _case("Slice", CUBE, i64(1, -3), i64(3, -1), i64(1, 2)),
    _case("Gather", CUBE, np.array([[2, 0]]), expected=CUBE[:, [[2, 0]]], axis=1),
    _case("GatherElements", TABLE, np.array([[0, 2], [1, 1]]), axis=1),
    _case("GatherND", CUBE, np.array([[1, 2], [0, 0]])),
    _case("ScatterElements", TABLE, np.array([[1], [0]]), s(["X"], ["Y"]), axis=1),
    _case("ScatterND", CUBE, np.array([[1, 2, 3]]), s("X")),
    _case("Expand", s(["a"], ["b"]), i64(2, 3), expected=s(["a"] * 3, ["b"] * 3)),
    _case("Tile", TABLE, i64(2, 1)),
    _case("Where", TRUTH, TABLE, s("x", "y", "z")),
    _case("Compress", TABLE, np.array([True, False, True]), axis=1),
    _case("Equal", TABLE, s("a", "ü", "b"), expected=s("a", "ü", "b") == TABLE),
    _case("NonZero", WORDS, expected=np.array([[0, 1, 3]])),
    _case("Pad", WORDS, i64(1, 1), s("#")[0:1].reshape(()), expected=s("#", *WORDS, "#")),
    _case(
        "DepthToSpace",
        IMAGE,
        blocksize=2,
        expected=s(
            "p0", "p4", "p1", "p5", "p8", "p12", "p9", "p13", "p2", "p6", "p3", "p7", "p10", "p14", "p11", "p15"
        ).reshape(1, 1, 4, 4),
    ),
    _case("ReverseSequence", TABLE, i64(3, 2), batch_axis=0, time_axis=1),
    _case("Trilu", TABLE, expected=s(["a", "", ""], ["", "ü", ""]), upper=0),
    _case(
        "OneHot", np.array([1, 0]), np.array(3), s("off", "on"), expected=s(["off", "on", "off"], ["on", "off", "off"])
    ),
    _case("Unique", s("b", "a", "b"), expected=s("a", "b")),
]
