"""Functions of elements, and of pairs of them that broadcast."""

from __future__ import annotations

import numpy as np

from drawn_operators.draft import Draft, Draws, Values, other_sizes

DRAWS = Draws()
_CURVES = (
    *(
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Cos",
        "Cosh",
        "Erf",
        "Exp",
        "Floor",
        "Identity",
    ),
    *("HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus"),
    *("Softsign", "Sqrt", "Tan", "Tanh"),
)
_SHAPED_CURVES = {
    "Celu": ("alpha",),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "Shrink": ("lambd", "bias"),
    "ThresholdedRelu": ("alpha",),
}


@DRAWS.weighted(3)
def _curve(g: Values) -> Draft:
    return Draft(g.decide.choice(_CURVES), [g.value()])


@DRAWS.weighted()
def _shaped_curve(g: Values) -> Draft:
    op_type = g.decide.choice(list(_SHAPED_CURVES))
    numbers = {
        name: round(g.decide.uniform(0.1, 1.5), 2) for name in _SHAPED_CURVES[op_type] if g.decide.random() < 0.7
    }
    return Draft(op_type, [g.value()], numbers)


@DRAWS.weighted()
def _gelu(g: Values) -> Draft:
    return Draft("Gelu", [g.value()], {"approximate": g.decide.choice(["none", "tanh"])})


@DRAWS.weighted(3)
def _binary(g: Values) -> Draft:
    a = g.value("fi")
    fitting = [g.value("fi") for _ in range(4)]
    same = [b for b in fitting if g.array(b).dtype == g.array(a).dtype and b != a]
    op_type = g.decide.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mod", "Mean", "Sum", "PRelu"])
    if same and op_type != "PRelu" and g.decide.random() < 0.5:  # a slope must not be wider
        b = same[0]
    else:
        shape = other_sizes(g, a)
        kind = g.array(a).dtype
        b = g.floats(*shape) if kind.kind == "f" else g.leaf(np.full(shape, g.decide.randint(1, 3), kind))
    pair = [a, b] if op_type == "PRelu" or g.decide.random() < 0.6 else [b, a]
    return Draft(op_type, pair, {"fmod": 1} if op_type == "Mod" and g.array(a).dtype.kind == "f" else {})


@DRAWS.weighted()
def _compared(g: Values) -> Draft:
    a = g.value("fi")
    b = g.leaf(np.array(g.decide.choice([0, 1]), g.array(a).dtype))
    return Draft(g.decide.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"]), [a, b])


@DRAWS.weighted()
def _logic(g: Values) -> Draft:
    a = g.value("b")
    if g.decide.random() < 0.3:
        return Draft("Not", [a])
    b = g.leaf(np.array([g.decide.random() < 0.5]))
    return Draft(g.decide.choice(["And", "Or", "Xor"]), [a, b])


@DRAWS.weighted()
def _chosen(g: Values) -> Draft:
    condition, a = g.value("b"), g.value("fi")
    b = g.leaf(np.zeros(other_sizes(g, a), g.array(a).dtype))
    return Draft("Where", [condition, *g.decide.sample([a, b], 2)])


@DRAWS.weighted(2)
def _cast(g: Values) -> Draft:
    return Draft("Cast", [g.value("fib")], {"to": g.decide.choice([1, 1, 1, 6, 7, 9, 2, 3, 10, 11])})


@DRAWS.weighted()
def _clip(g: Values) -> Draft:
    x = g.value("fi")
    low, high = (g.leaf(np.array(n, g.array(x).dtype)) for n in (g.decide.choice([-1, 0]), g.decide.choice([1, 2])))
    return Draft("Clip", [x, *g.decide.choice([[low, high], [low], ["", high]])])


#: More operators that change types, for graphs of float16 and float32.
CONVERSIONS = Draws()


@CONVERSIONS.weighted(4)
def _float_cast(g: Values) -> Draft:
    return Draft("Cast", [g.value("fib")], {"to": g.decide.choice([1, 10])})


CONVERSIONS.extend([*[_compared] * 3, *[_logic] * 2])


@CONVERSIONS.weighted(2)
def _chosen_floats(g: Values) -> Draft:
    a = g.value("f")
    return Draft("Where", [g.value("b"), a, g.floats(*other_sizes(g, a))])
