"""ONNX's attention and rotary embedding, and their common part with com.microsoft's."""

import numpy as np
from case import MICROSOFT, Case, r

CASES = [
    *(
        Case("Attention", inputs, attributes, "onnx", tolerance="normal")
        for inputs, attributes in (
            ([r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 10)], {}),
            ([r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8), r(4, 6)], {"scale": 0.3}),
            ([r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8), r(2, 1, 4, 6, dtype="bool")], {"softcap": 2.0}),
            ([r(2, 9, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8)], {"is_causal": 1}),
            ([r(2, 5, 24), r(2, 7, 24), r(2, 7, 24)], {"q_num_heads": 3, "kv_num_heads": 3}),
            # Enough rows for a GPU's blocks of 32.
            ([r(5, 28, 61, 8), r(5, 28, 45, 8), r(5, 28, 45, 12), r(61, 45)], {}),
            ([r(6, 44, 61, 8), r(6, 22, 61, 8), r(6, 22, 61, 8)], {"is_causal": 1}),
        )
    ),
    Case(
        "Attention",
        [r(2, 3, 4, 8), r(2, 3, 6, 8), r(2, 3, 6, 8), r(4, 9), r(2, 3, 3, 8), r(2, 3, 3, 8)],
        {},
        "onnx",
        outputs=3,
        tolerance="normal",
    ),
    Case(
        "RotaryEmbedding",
        [r(2, 4, 3, 8), r(50, 4), r(50, 4), r(2, 3, dtype="int64", low=0, high=50)],
        {},
        "onnx",
        tolerance="normal",
    ),
    Case(
        "RotaryEmbedding",
        [r(2, 3, 32), r(2, 3, 4), r(2, 3, 4)],
        {"num_heads": 4, "interleaved": 1},
        "onnx",
        tolerance="normal",
    ),
    *(
        Case(
            "MultiHeadAttention",
            inputs,
            {"num_heads": 3, **attributes},
            tolerance="normal",
            domain=MICROSOFT,
            outputs=outputs,
        )
        for inputs, attributes, outputs in (
            ([r(2, 5, 24), r(2, 7, 24), r(2, 7, 24)], {}, 1),
            ([r(2, 5, 24), r(2, 7, 24), r(2, 7, 24), r(72)], {"scale": 0.2}, 1),
            ([r(2, 5, 24), r(2, 7, 24), r(2, 7, 24), None, np.array([3, 7], np.int32)], {}, 1),
            ([r(2, 5, 24), r(2, 7, 24), r(2, 7, 24), None, None, r(1, 3, 5, 7)], {}, 1),
            ([r(2, 5, 24), r(2, 3, 7, 8), r(2, 3, 7, 8)], {}, 1),
            ([r(1, 25, 192), r(1, 3001, 192), r(1, 3001, 192), None, None, r(1, 1, 25, 3001)], {}, 1),
            ([r(2, 5, 24), r(2, 5, 24), r(2, 5, 24)], {"unidirectional": 1}, 1),
            ([r(2, 5, 24), r(2, 5, 24), r(2, 5, 24), None, None, None, r(2, 3, 4, 8), r(2, 3, 4, 8)], {}, 3),
        )
    ),
    Case("Attention", [r(2, 5, 12), r(12, 72), r(72)], {"num_heads": 3}, tolerance="normal", domain=MICROSOFT),
]
