"""A scalar function is the same alone, at the end of a product, in a recurrent layer's gate and in a chain.

Within 4 units in the last place: if optimization fuses an operator, its results must not change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case import MICROSOFT, Case
from epilogues import epilogue

from py_ort.schema.scalar_functions import FUNCTIONS, ScalarFunction

ASSETS = Path(__file__).parents[2] / "py_ort/assets"
NHWC, INTERNAL = "com.ms.internal.nhwc", "com.ms.internal"
F = np.float32
_SIZES = [m * 10.0**e for e in range(-8, 1) for m in (1, 2, 3.3, 7)]
_SIZES += [0.015, 0.035, 0.3499, 0.35, 0.45, 0.6, 0.9, 1.27, 1.5, 2.5, 2.9, 3, 3.5, 4.5, 5, 5.7, 6, 8.5, 10, 15, 17, 20]
X = np.array([*_SIZES, *(-x for x in _SIZES), 0, -0.0, np.inf, -np.inf, np.nan], F)
COLUMNS = 12
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Place:
    """A place of a function of X: a node whose columns all equal that of X."""

    op: str
    inputs: Sequence[Array]
    attributes: Callable[[ScalarFunction, list[float]], Mapping[str, Any]]
    takes: Callable[[ScalarFunction], object]
    domain: str = ""
    plain: Mapping[str, Any] = field(default_factory=dict)

    def node(self, row: ScalarFunction, numbers: list[float]) -> Case:
        """The node with the function in it."""
        return Case(self.op, self.inputs, {**self.plain, **self.attributes(row, numbers)}, domain=self.domain)


def _ended(row: ScalarFunction, numbers: list[float]) -> dict[str, Any]:
    return epilogue(row.name, numbers)


def _gate(row: ScalarFunction, numbers: list[float]) -> dict[str, Any]:
    named = zip(("activation_alpha", "activation_beta"), ([number] for number in numbers), strict=False)
    return {"activations": [row.name], **dict(named)}


def _program(row: ScalarFunction, numbers: list[float]) -> dict[str, Any]:
    words = [row.name, "0", *(f"#{number!r}" for number in numbers)]
    return {"program": " ".join(words).replace("inf", "Infinity")}


_ROWS, _ONES = X.reshape(-1, 1), np.ones((1, COLUMNS), F)
_POINTS = {"kernel_shape": [1, 1], "dilations": [1, 1], "strides": [1, 1], "pads": [0] * 4, "group": 1}
PLACES = {
    "MatMul": Place("MatMul", [_ROWS, _ONES], _ended, lambda row: row.ends),
    # -0 added to the sum, as long as the product's own is -0.
    "Gemm": Place("Gemm", [_ROWS, _ONES.T.copy(), -0.0 * _ONES[0]], _ended, lambda row: row.ends, plain={"transB": 1}),
    "Conv": Place(
        "Conv",
        [X.reshape(1, 1, -1, 1), _ONES.reshape(1, 1, 1, COLUMNS), -0.0 * _ONES[0]],
        _ended,
        lambda row: row.ends,
        NHWC,
        {**_POINTS, "weight_layout": "HWIO"},
    ),
    "depthwise": Place(
        "Conv",
        [np.repeat(X, 4).reshape(1, 1, -1, 4), np.ones((1, 1, 1, 4), F), np.full(4, -0.0, F)],
        _ended,
        lambda row: row.ends,
        NHWC,
        {**_POINTS, "group": 4, "weight_layout": "HWIO"},
    ),
    "RNN": Place(
        "RNN",
        [X.reshape(1, -1, 1), np.ones((1, 4, 1), F), np.zeros((1, 4, 4), F)],
        _gate,
        lambda row: row.gate,
        plain={"hidden_size": 4},
    ),
    "chain": Place(
        "ElementwiseChain", [X], _program, lambda row: {"", INTERNAL} & {*row.domains} or row.ends, INTERNAL
    ),
}
#: Parameters other than the defaults.
NUMBERS = {"Clip": [-0.5, 0.7], "LeakyRelu": [0.2], "HardSigmoid": [0.3, 0.4], "Elu": [1.5], "Celu": [0.6]}
# Steps that divide exactly: halves must not depend on a compiler's division.
NUMBERS |= {"FakeQuantize": [0.0625, 110.0], "FakeQuantize16": [0.0009765625, 30000.0]}
NUMBERS |= {"Swish": [1.3], "ThresholdedRelu": [0.4], "Shrink": [0.2, 0.3]}
Run = Callable[[Case], Array]


def _numbers(row: ScalarFunction) -> list[float]:
    return [float(F(number)) for number in NUMBERS.get(row.name, row.parameters.values())]


def _alone(row: ScalarFunction) -> Case:
    """The operator; for functions that are none, the operators of their formula."""
    numbers = _numbers(row)
    if row.name == "Clip":
        return Case("Clip", [X, *(np.array(number, F) for number in numbers)])
    if row.variant_of is not None:
        op, attribute, value = row.variant_of
        return Case(op, [X], {attribute: value})
    return Case(row.name, [X], dict(zip(row.parameters, numbers, strict=True)), domain=row.domains[0])


def _of_x(made: Array, place: str) -> Array:
    """The first column, as all are alike."""
    flat = made.reshape(len(X), -1)
    np.testing.assert_array_equal(flat, np.repeat(flat[:, :1], flat.shape[1], 1), err_msg=place)
    return flat[:, 0]


def _steps(x: Array) -> Array:
    """Floats as whole numbers, with neighbors one apart."""
    bits = x.astype(F).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(2**31) - bits, bits)


def check(name: str, run: Run) -> None:
    """Compare all places with the function alone."""
    row = FUNCTIONS[name]
    alone = run(_alone(row))
    for place, where in PLACES.items():
        if not where.takes(row):
            continue
        found = _of_x(run(where.node(row, _numbers(row))), place)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(alone), err_msg=place)
        numbers = ~np.isnan(alone)
        apart = np.where(numbers, np.abs(_steps(found) - _steps(alone)), 0)
        # An infinity, or a difference of numbers so small that shaders may round them to 0, is not counted in steps.
        apart[(found == alone) | (np.abs(found.astype(float) - alone) < 2e-38)] = 0
        worst = int(apart.argmax())
        assert apart[worst] <= 4, f"{place}: {name}({X[worst]!r}) is {found[worst]!r}, and alone {alone[worst]!r}"


def check_zeros(name: str, run: Run) -> None:
    """A zero that reaches the function as -0 has the same sign as alone."""
    row = FUNCTIONS[name]
    zeros = X == 0
    alone = run(_alone(row))[zeros]
    for place, where in PLACES.items():
        if not where.takes(row):
            continue
        sums = (
            _of_x(run(Case(where.op, where.inputs, where.plain, domain=where.domain)), place)[zeros]
            if (row.ends and place not in ("RNN", "chain"))
            else X[zeros]
        )
        if place == "RNN" or not np.signbit(sums).any():
            continue
        found = _of_x(run(where.node(row, _numbers(row))), place)[zeros]
        wanted = np.where(np.signbit(sums), alone[np.signbit(X[zeros])][0], alone[~np.signbit(X[zeros])][0])
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted), err_msg=f"{place}: {found} of {sums}")


#: Functions that are operators, directly or by their parts.
NAMES = [row.name for row in FUNCTIONS.values() if row.domains or row.ends]
#: Two of three end products in short shaders, which compile in half the time; none with `make kernels`.
SHORT = {name for i, name in enumerate(NAMES) if i % 3 and os.environ.get("PY_ORT_ALL_CASES") != "1"}
KEEPING = ("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSwish", "Softsign", "Abs", "Swish", "Gelu", "Mish", "Tanh")


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_on_webgpu(kernel_page: Any, name: str) -> None:
    traits = {"slowCompiler": True} if name in SHORT else None
    check(name, lambda case: _on_page(kernel_page, case, traits=traits))


@pytest.mark.browser
@pytest.mark.parametrize("variant", [{}, {"hardware": True}, {"traits": {"slowCompiler": True}}], ids=str)
@pytest.mark.parametrize("name", KEEPING)
def test_zeros_on_webgpu(kernel_page: Any, name: str, variant: dict[str, Any]) -> None:
    check_zeros(name, lambda case: _on_page(kernel_page, case, **variant))


def _on_page(page: Any, case: Case, **variant: Any) -> Array:
    arrays = case.arrays()
    made = page.run(case.op, arrays, case.attributes, domain=case.domain, host=case.host, **variant).outputs[0]
    assert made is not None
    return made


@pytest.fixture(scope="module")
def of_core() -> dict[str, Run]:
    """Return functions that run a case on the core alone, by the kind of micro-kernels; all cases run at once."""
    from test_wasm_kernels import _has_relaxed, _model

    os.environ.setdefault("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    cases: dict[str, Case] = {}

    def wanted(case: Case) -> Array:
        cases[_key(case)] = case
        return np.zeros((len(X), 1), F) if case.inputs[0] is not X else np.zeros(len(X), F)

    for name in NAMES:
        check(name, wanted)
        check_zeros(name, wanted)
    runs = {}
    for simd in ("fixed", "relaxed") if _has_relaxed() else ("fixed",):
        results = run_many([_model(case, case.arrays(), constants=True) for case in cases.values()], simd=simd)
        found = dict(zip(cases, results, strict=True))

        def run(case: Case, found: dict[str, Any] = found) -> Array:
            result = found[_key(case)]
            if isinstance(result, Exception):
                raise result
            return result.outputs[0]

        runs[simd] = run
    return runs


def _key(case: Case) -> str:
    return f"{case.id} {case.domain}"


@pytest.mark.parametrize("simd", ["fixed", "relaxed"])
@pytest.mark.parametrize("name", NAMES)
def test_on_wasm(of_core: dict[str, Run], name: str, simd: str) -> None:
    if simd not in of_core:
        pytest.skip("built without relaxed SIMD: clang and lld 19 are needed for that")
    check(name, of_core[simd])
    if name in KEEPING:
        check_zeros(name, of_core[simd])


def test_domains_are_known() -> None:
    """Rows use their full names."""
    assert {domain for row in FUNCTIONS.values() for domain in row.domains} == {"", MICROSOFT, INTERNAL}
