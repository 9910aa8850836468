"""Operators that reduce an axis, or work along one."""

from __future__ import annotations

import numpy as np

from drawn_operators.draft import Draft, Draws, Values, drawn_axis, some_axes

DRAWS = Draws()
_REDUCTIONS = tuple(
    f"Reduce{name}" for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


@DRAWS.weighted(3)
def _reduced(g: Values) -> Draft:
    x = g.value("ffi", least=1)
    axes = some_axes(g, x)
    given = [] if g.decide.random() < 0.2 else [g.fixed(np.array(axes, np.int64))]
    flags = {"keepdims": g.decide.randint(0, 1), "noop_with_empty_axes": g.decide.choice([0, 0, 0, 1])}
    # For integers onnxruntime computes logarithms of exponentials in integers, truncating each.
    fitting = [name for name in _REDUCTIONS if g.array(x).dtype.kind == "f" or "Log" not in name]
    return Draft(g.decide.choice(fitting), [x, *given], flags)


@DRAWS.weighted()
def _where_most(g: Values) -> Draft:
    x = g.value("f", least=1)
    flags = {"axis": drawn_axis(g, x), "keepdims": g.decide.randint(0, 1), "select_last_index": g.decide.randint(0, 1)}
    return Draft(g.decide.choice(["ArgMax", "ArgMin"]), [x], flags)


@DRAWS.weighted()
def _along_axis(g: Values) -> Draft:
    x = g.value("f", least=1)
    op_type = g.decide.choice(["Softmax", "LogSoftmax", "Hardmax", "LpNormalization"])
    return Draft(
        op_type, [x], {"axis": drawn_axis(g, x)} | ({"p": g.decide.choice([1, 2])} if op_type[0:2] == "Lp" else {})
    )


@DRAWS.weighted()
def _summed_up(g: Values) -> Draft:
    x = g.value("fi", least=1)
    flags = {"exclusive": g.decide.randint(0, 1), "reverse": g.decide.randint(0, 1)}
    return Draft("CumSum", [x, g.fixed(np.array(drawn_axis(g, x), np.int64))], flags)
