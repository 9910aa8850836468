"""Rare forms of common operators: a placement by dtypes alone would have sent them to kernels without these forms."""

from case import Case, r

U8 = {"dtype": "uint8"}

CASES = [
    *(
        Case(
            "BatchNormalization",
            [r(*shape), r(3), r(3), r(3), r(3, low=0.5, high=2)],
            {"training_mode": 1, "momentum": 0.7},
            outputs=3,
            expected="onnx",
            tolerance="normal",
        )
        for shape in ((2, 3, 4, 5), (6, 3), (1, 3, 7))
    ),
    *(
        Case("LayerNormalization", [r(2, 3, 4, 8), r(*scale), r(*bias)], {"axis": axis}, "onnx", tolerance="normal")
        for axis, scale, bias in ((-1, (1,), (8,)), (2, (8,), (4, 1)), (-1, (3, 1, 8), (8,)), (-1, (8,), (2, 1, 1, 1)))
    ),
    Case(
        "QuantizeLinear",
        [r(3, 10), r(3, 3, low=0.02, high=0.05)],
        {"axis": 1, "block_size": 4},
        "onnx",
        name="last block",
    ),
    Case(
        "DequantizeLinear",
        [r(3, 10, **U8), r(3, 3), r(3, 3, **U8)],
        {"axis": 1, "block_size": 4},
        "onnx",
        name="last block",
    ),
    *(
        Case("MatMulInteger", [r(2, 3, 4, **U8), r(*b, **U8), *zeros], {}, "onnx")
        for b, zeros in (
            ((2, 4, 5), (r(2, 3, 1, **U8), r(2, 1, 5, **U8))),
            ((4, 5), (r(3, 1, **U8), r(1, 5, **U8))),
            ((4, 5), (r(2, 1, 1, **U8),)),
        )
    ),
]
