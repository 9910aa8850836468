"""Operators that generate text, against onnxruntime."""

import numpy as np
from case import MICROSOFT, Case, r

WRITTEN = np.array([[1, 2, 3, 1, 2, 5, 1, 2], [4, 4, 4, 4, 4, 4, 4, 4], [0, 1, 2, 3, 4, 5, 6, 7]])

CASES = [
    *(
        Case("NGramRepeatBlock", [written, r(3, 9)], {"ngram_size": n}, domain=MICROSOFT, tolerance="exact", name=name)
        for n, written, name in (
            *((n, WRITTEN, "") for n in (1, 2, 3, 8, 9)),
            (3, WRITTEN[:, :0], "nothing"),
        )
    ),
    Case("NGramRepeatBlock", [np.tile([0, 299], 150)[None], r(1, 300)], {"ngram_size": 2}, domain=MICROSOFT),
]
