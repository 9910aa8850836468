"""Functions of one number: operators alone, ends of products, gates of recurrent layers, instructions of chains.

A row here and a row of tests is all that a new one takes. `write_scalar_functions` makes WGSL and C++ of the formulas;
everything else in Python that asks about activations reads the rows.

A formula is an expression of `x` and the parameters, in Python's syntax: + - * /, comparisons, `a if c else b`, and
functions. Those of the formulas that are not C's: sigmoid, softplus; relu and clamp (x, low, high); plain_zero, which
has 0 for -0. All of them have a NaN for a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MICROSOFT, INTERNAL = "com.microsoft", "com.ms.internal"


@dataclass(frozen=True)
class ScalarFunction:
    """One function.

    Attributes:
        name: Its name in programs and attributes: the operator's, except for variants of one operator.
        formula: An expression of x and the parameters.
        parameters: Two at most, with ONNX's defaults. They are float attributes of the operator, in this order
            numbers of an instruction.
        domains: The domains that have it as an operator.
        types: The elements that the operator takes; on a GPU only floats where `integer` is empty.
        variant_of: The operator that it is with an attribute of a certain value: (operator, attribute, value).
        ends: True if it may end a Conv, ConvTranspose, Gemm or MatMul.
        gate: True if recurrent layers may use it.
        cheap: True if computing it again costs less than keeping the result.
        never_negative: True if no result is below zero.
        piecewise: The parts (scale, shift, low, high, 1 or 0) if it is clip(scale * x + shift, low, high), times x
            if 1; each a number or a parameter's name. WebGPU's kernels have one shader for all of these.
        simd: C++ in place of the formula's: of four floats at a time.
        wgsl: WGSL in place of the formula's.
        integer: WGSL of such an operator's integers, where it differs.
        unsigned: WGSL of its unsigned ones, where that differs again.
    """

    name: str
    formula: str
    parameters: Mapping[str, float] = field(default_factory=dict)
    domains: tuple[str, ...] = ("",)
    types: Literal["floats", "signed", "numbers"] = "floats"
    variant_of: tuple[str, str, str] | None = None
    ends: bool = False
    gate: bool = False
    cheap: bool = False
    never_negative: bool = False
    piecewise: tuple[float | str, ...] = ()
    simd: str = ""
    wgsl: str = ""
    integer: str = ""
    unsigned: str = ""


_F = ScalarFunction
_ALPHA = {"alpha": 1.0}
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}

FUNCTIONS: dict[str, ScalarFunction] = {
    row.name: row
    for row in (
        # Activations.
        _F(
            "Relu",
            "relu(x)",
            types="signed",
            integer="max(x, T(0))",
            piecewise=(1.0, -0.0, 0.0, math.inf, 0.0),
            ends=True,
            gate=True,
            cheap=True,
            never_negative=True,
        ),
        _F(
            "Clip",
            "clamp(x, low, high)",
            {"low": -math.inf, "high": math.inf},
            domains=(),  # whose bounds are inputs
            piecewise=(1.0, -0.0, "low", "high", 0.0),
            ends=True,
        ),
        _F("LeakyRelu", "alpha * x if x < 0 else x", {"alpha": 0.01}, ends=True, gate=True, cheap=True),
        _F("ThresholdedRelu", "x if x > alpha else 0", _ALPHA, ends=True, gate=True),
        _F(
            "Shrink",
            "x + bias if x < -lambd else (x - bias if x > lambd else 0)",
            {"bias": 0.0, "lambd": 0.5},
            types="numbers",
            ends=True,
        ),
        _F("Sigmoid", "sigmoid(x)", ends=True, gate=True, never_negative=True),
        _F(
            "HardSigmoid",
            "clamp(alpha * x + beta, 0, 1)",
            {"alpha": 0.2, "beta": 0.5},
            piecewise=("alpha", "beta", 0.0, 1.0, 0.0),
            ends=True,
            gate=True,
            cheap=True,
            never_negative=True,
        ),
        _F(
            "HardSwish",
            "x * clamp(x * 0.16666666666666666 + 0.5, 0, 1)",
            piecewise=(1 / 6, 0.5, 0.0, 1.0, 1.0),
            ends=True,
            cheap=True,
        ),
        _F("Tanh", "tanh(x)", ends=True, gate=True),
        _F("ScaledTanh", "alpha * tanh(beta * x)", {"alpha": 1.0, "beta": 1.0}, domains=(), gate=True),
        _F("Affine", "alpha * x + beta", {"alpha": 1.0, "beta": 0.0}, domains=(), gate=True),
        _F("Elu", "alpha * expm1(x) if x < 0 else x", _ALPHA, ends=True, gate=True),
        # These two are defined by a sum, which is 0 for -0.
        _F("Selu", "plain_zero(gamma * (alpha * expm1(x) if x < 0 else x))", _SELU, ends=True),
        _F("Celu", "plain_zero(alpha * expm1(x / alpha) if x < 0 else x)", _ALPHA, ends=True),
        _F("Softplus", "softplus(x)", ends=True, gate=True, never_negative=True),
        _F("Softsign", "x / (1 + abs(x))", ends=True, gate=True),
        _F("Mish", "x * tanh(softplus(x))", ends=True, simd="mish(x)"),
        _F("Swish", "x * sigmoid(alpha * x)", _ALPHA, ends=True),
        _F("QuickGelu", "x * sigmoid(alpha * x)", {"alpha": 1.702}, domains=(MICROSOFT,)),
        _F(
            "Gelu",
            "0.5 * x * (1 + erf(x * 0.7071067811865476))",
            domains=("", MICROSOFT),
            ends=True,
            simd="gelu(x)",
        ),
        # 0.5 x (1 + tanh(y)) = x sigmoid(2 y)
        _F(
            "GeluTanh",
            "x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))",
            domains=(),
            variant_of=("Gelu", "approximate", "tanh"),
            ends=True,
        ),
        # Arithmetic.
        _F("Abs", "abs(x)", types="numbers", integer="abs(x)", ends=True, cheap=True, never_negative=True),
        _F("Neg", "-x", types="signed", integer="-x", cheap=True),
        _F("Sign", "sign(x)", types="numbers", cheap=True, integer="sign(x)", unsigned="min(x, T(1))"),
        _F("Ceil", "ceil(x)"),
        _F("Floor", "floor(x)"),
        _F("Round", "round(x)", cheap=True),
        _F("Sqrt", "sqrt(x)", never_negative=True),
        # To integers of 8 or 16 bits and back: QuantizeLinear, DequantizeLinear. `zero` counts from the least integer.
        # Integers have no -0: what divides by it would have the other sign.
        *(
            _F(
                name,
                f"plain_zero(clamp(round(x / scale), -zero, {most} - zero) * scale)",
                {"scale": 1.0, "zero": 0.0},
                domains=(INTERNAL,),
                cheap=True,
            )
            for name, most in (("FakeQuantize", 255), ("FakeQuantize16", 65535))
        ),
        _F("Reciprocal", "1 / x"),
        # Elementary functions.
        _F("Exp", "exp(x)", ends=True, never_negative=True),
        _F("Log", "log(x)"),
        _F("Erf", "erf(x)"),
        _F("Sin", "sin(x)"),
        _F("Cos", "cos(x)"),
        _F("Tan", "tan(x)"),
        _F("Asin", "asin(x)"),
        _F("Acos", "acos(x)"),
        _F("Atan", "atan(x)"),
        _F("Sinh", "sinh(x)"),
        _F("Cosh", "cosh(x)"),
        _F("Asinh", "asinh(x)"),
        _F("Acosh", "acosh(x)"),
        _F("Atanh", "atanh(x)"),
    )
}


#: Rows that are an operator with a value of an attribute: attribute, value and row, by the operator.
_VARIANTS: dict[str, list[tuple[str, Any, ScalarFunction]]] = {}
for _row in FUNCTIONS.values():
    if _row.variant_of is not None:
        _VARIANTS.setdefault(_row.variant_of[0], []).append((*_row.variant_of[1:], _row))


def scalar_function(op_type: str, given: Mapping[str, Any]) -> ScalarFunction | None:
    """Return the function that an operator of ai.onnx is with these attributes, or None."""
    for attribute, value, row in _VARIANTS.get(op_type, ()):
        if given.get(attribute) == value:
            return row
    plain = FUNCTIONS.get(op_type)
    return plain if plain is not None and "" in plain.domains else None
