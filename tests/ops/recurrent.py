"""Recurrent layers."""

import numpy as np
from case import Case, r

TIMES, BATCH, SIZE, HIDDEN = 4, 3, 4, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
EXTRAS = {"LSTM": {"input_forget": 1}, "GRU": {"linear_before_reset": 1}, "RNN": {"clip": 0.3}}


def _layer(op: str, direction: str, lengths: bool, extra: bool) -> Case:
    d = 2 if direction == "bidirectional" else 1
    g = GATES[op]
    inputs = [
        r(TIMES, BATCH, SIZE),
        r(d, g * HIDDEN, SIZE),
        r(d, g * HIDDEN, HIDDEN),
        r(d, 2 * g * HIDDEN),
        np.array([4, 2, 3], np.int32) if lengths else None,
        r(d, BATCH, HIDDEN),
    ]
    if op == "LSTM":
        inputs += [r(d, BATCH, HIDDEN), r(d, 3 * HIDDEN)]
    attributes = {"hidden_size": HIDDEN, "direction": direction, **(EXTRAS[op] if extra else {})}
    return Case(op, inputs, attributes, outputs=3 if op == "LSTM" else 2, tolerance="normal")


CASES = [
    *(
        _layer(op, direction, lengths, extra)
        for op in GATES
        for direction in ("forward", "reverse", "bidirectional")
        for lengths, extra in ((False, False), (True, True))
    ),
]
