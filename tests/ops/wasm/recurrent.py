"""RNN, GRU and LSTM with all their options, compared with onnxruntime."""

import numpy as np
from case import Case, r

STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 6
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTHS = np.array([5, 2, 4], np.int32)


def _case(op: str, direction: str, *more: str, name: str = "", **attributes: object) -> Case:
    ways = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    state = r(ways, BATCH, HIDDEN)
    known = {"lengths": LENGTHS, "h": state, "c": state, "peepholes": r(ways, 3 * HIDDEN)}
    inputs = [r(STEPS, BATCH, INPUT), r(ways, rows, INPUT), r(ways, rows, HIDDEN), r(ways, 2 * rows)]
    inputs += [known[part] if part in more else None for part in known]  # type: ignore[misc]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"hidden_size": HIDDEN, "direction": direction, **attributes}
    return Case(
        op, inputs, attributes, tolerance="loose", outputs=3 if op == "LSTM" else 2, name=name or "+".join(more)
    )


CASES = [
    *(
        _case(op, direction, *more)
        for op in GATES
        for direction in ("forward", "reverse", "bidirectional")
        for more in ((), ("lengths", "h"))
    ),
    *(_case("LSTM", way, "lengths", "h", "c", "peepholes", clip=0.7) for way in ("forward", "bidirectional")),
    _case("LSTM", "forward", input_forget=1),
    _case(
        "LSTM",
        "forward",
        activations=["HardSigmoid", "ScaledTanh", "Softsign"],
        activation_alpha=[0.3, 1.2],
        activation_beta=[0.4, 0.9],
    ),
    _case("GRU", "reverse", "lengths", "h", linear_before_reset=1),
    _case("GRU", "forward", activations=["HardSigmoid", "Relu"]),
    _case("RNN", "forward", activations=["Affine"], activation_alpha=[0.3], activation_beta=[0.4]),
    _case("RNN", "forward", "h", clip=0.5),
]
