"""Matrix products."""

import numpy as np
from case import MICROSOFT, Case, r
from epilogues import epilogue

MATMULS = [
    ((3, 4), (4, 5)),
    ((64, 32), (32, 48)),
    ((2, 3, 16, 8), (2, 3, 8, 12)),
    ((2, 1, 16, 8), (3, 8, 12)),
    ((5, 7), (7,)),
    ((7,), (7, 5)),
    ((7,), (7,)),
    ((2, 3, 5, 7), (7, 3)),
    ((1, 64), (64, 100)),
    ((4, 197), (197, 64)),
    ((3, 1, 2, 8), (1, 4, 8, 4)),
    ((0, 4), (4, 3)),
    ((3, 0), (0, 4)),
    ((1, 40, 120), (120, 361)),
    ((40, 256), (256, 36)),
    ((65, 130), (130, 70)),
    ((9, 6500), (6500, 8)),
]
EINSUMS = [
    ("bhid,bhjd->bhij", (2, 3, 4, 8), (2, 3, 5, 8)),
    ("bij,bjk->bki", (2, 3, 4), (2, 4, 5)),
    ("abc,cd->abd", (2, 3, 4), (4, 8)),
    ("ij->", (3, 4)),
    ("ii->i", (4, 4)),
    ("i,j", (3,), (4,)),
    ("bhwc,hkc->bhwk", (2, 3, 4, 8), (3, 5, 8)),
    ("ab,bc,cd->ad", (3, 4), (4, 5), (5, 2)),
    ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
]
CS = [None, (5,), (1, 5), (3, 1), (3, 5), (), (1,)]


def _gemm(trans_a: int, trans_b: int, c: tuple[int, ...] | None) -> Case:
    inputs = [r(4, 3) if trans_a else r(3, 4), r(5, 4) if trans_b else r(4, 5), *([r(*c)] if c is not None else [])]
    return Case("Gemm", inputs, {"transA": trans_a, "transB": trans_b, "alpha": 0.5, "beta": 2.0}, tolerance="normal")


def _leaky(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, x * np.float32(0.01), x)


def _before(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None, z: np.ndarray) -> np.ndarray:
    return _leaky(a @ b + (0 if bias is None else bias) + z)


def _behind(a: np.ndarray, b: np.ndarray, bias: np.ndarray | None, z: np.ndarray) -> np.ndarray:
    return _leaky(a @ b + (0 if bias is None else bias)) + z


def _with_residual(op: str, *shapes: tuple[int, ...] | None, last: int = 0) -> Case:
    """A, B, bias and residual."""
    attributes = epilogue("LeakyRelu", residual="last" if last else "first")
    inputs = [None if shape is None else r(*shape) for shape in shapes]
    return Case(op, inputs, attributes, _behind if last else _before, tolerance="loose")


def _relu_of_linear(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.maximum(a @ b + bias, 0)


CASES = [
    *(Case("MatMul", [r(*a), r(*b)], tolerance="loose" if a[-1] > 64 else "normal") for a, b in MATMULS),
    Case(
        "MatMul",
        [r(2, 9, 16), r(16, 12), r(12)],
        epilogue("Relu"),
        _relu_of_linear,
        tolerance="normal",
        name="bias",
    ),
    *(
        _with_residual(op, a, b, bias, z, last=last)
        for last in (0, 1)
        for op, a, b, bias, z in (
            ("MatMul", (2, 9, 16), (16, 12), (12,), (2, 9, 12)),
            ("MatMul", (1, 50, 130), (130, 70), None, (1, 50, 70)),
            ("MatMul", (2, 3, 5, 8), (2, 3, 8, 7), None, (2, 3, 5, 7)),
            ("MatMul", (7,), (7, 5), None, (5,)),
            ("Gemm", (1, 64), (64, 100), (100,), (1, 100)),
            ("Gemm", (33, 400), (400, 30), None, (33, 30)),
        )
    ),
    Case("MatMul", [r(2, 3, 4, dtype="int32"), r(4, 5, dtype="int32")], tolerance="exact"),
    *(_gemm(0, 0, c) for c in CS),
    *(_gemm(a, b, (5,)) for a, b in ((0, 1), (1, 0), (1, 1))),
    Case("Gemm", [r(70, 64), r(64, 48), r(48)], tolerance="loose"),
    Case("Gemm", [r(33, 20), r(7, 20), r(7)], {"transB": 1}, tolerance="loose"),
    Case("Gemm", [r(70, 132), r(65, 132), r(65)], {"transB": 1}, tolerance="loose"),
    Case(
        "FusedMatMul",
        [r(2, 8, 6), r(2, 5, 8)],
        {"transA": 1, "transB": 1, "alpha": 0.25},
        tolerance="normal",
        domain=MICROSOFT,
    ),
    Case(
        "FusedGemm",
        [r(6, 8), r(8, 12), r(12)],
        {"activation": "LeakyRelu", "activation_alpha": 0.1},
        tolerance="normal",
        domain=MICROSOFT,
    ),
    *(
        Case("Einsum", [r(*shape) for shape in shapes], {"equation": equation}, tolerance="normal")
        for equation, *shapes in EINSUMS
    ),
    *(
        Case(
            "Det",
            [r(*shape)],
            expected=lambda x: np.linalg.det(x.astype(np.float64)).astype(np.float32),
            tolerance="normal",
        )
        for shape in [(1, 1), (3, 3), (2, 5, 4, 4), (0, 3, 3), (70, 2, 2)]
    ),
    Case("Det", [np.array([[1, 2], [2, 4]], np.float32)]),
    Case("Det", [np.array([[0, 2, 1], [3, 0, 0], [0, 1, 0]], np.float32)], name="zeros as pivots"),
    *(
        Case("Inverse", [r(*shape, low=-1, high=1)], tolerance="loose", domain=MICROSOFT)
        for shape in [(2, 2), (3, 5, 5), (0, 2, 2)]
    ),
]
