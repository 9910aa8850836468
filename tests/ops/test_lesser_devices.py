"""The WebGPU kernels on devices that allow less: fewer workgroups, fewer and smaller bindings. The device pretends.

Largest cases of the tables for each operator, and what is too large to be bound at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case import TOLERANCES, Case, i64, r
from test_webgpu_kernels import CASES

WORKGROUPS = {"maxWorkgroupsPerDimension": 3, "maxStorageBuffersPerStage": 8}
BINDINGS = {"maxStorageBindingSize": 16384}


def _largest() -> dict[str, Case]:
    """For each operator the case with the most elements."""
    size = {name: sum(int(np.prod(x.shape)) for x in case.inputs if x is not None) for name, case in CASES.items()}
    best: dict[tuple[str, str], str] = {}
    for name, case in CASES.items():
        known = best.get((case.domain, case.op))
        if known is None or size[known] < size[name]:
            best[case.domain, case.op] = name
    return {name: CASES[name] for name in best.values() if size[name] >= 400}


FEW = _largest()
#: As many optional inputs as there are.
FEW |= {name: case for name, case in CASES.items() if case.op in ("LSTM", "QLinearConv")}
LARGE = [
    Case("Add", [r(130, 100), r(130, 100)]),
    Case("Add", [r(130, 100), r(100)]),
    Case("Mul", [r(190, 1, 64), r(190, 2, 64)]),
    Case("Where", [r(320, 16, dtype="bool"), r(320, 1), r(16)]),
    Case("Sigmoid", [r(9001)]),
    Case("Cast", [r(9001)], {"to": 7}),
    Case("Transpose", [r(64, 96)], {"perm": [1, 0]}),
    Case("Transpose", [r(37, 3, 41)], {"perm": [2, 0, 1]}),
    Case("Slice", [r(5000), i64(4990), i64(-5000), i64(0), i64(-3)]),
    Case("Concat", [r(3, 1700), r(3, 1801)], {"axis": 1}),
    Case("Split", [r(2, 2500), i64(700, 1800)], {"axis": 1}, outputs=2),
    Case("Expand", [r(1, 50), i64(100, 50)]),
    Case("Tile", [r(20, 30), i64(3, 4)]),
    Case("Gather", [r(900, 20), i64(0, 899, 5, 450, -1, 77)]),
    Case("Gather", [r(900, 7), np.arange(900)[::-1].copy().reshape(10, 90)]),
    Case("MatMul", [r(5, 600), r(600, 24)], tolerance="normal"),
    Case("MatMul", [r(900, 16), r(16, 24)], tolerance="normal"),
    Case("Gemm", [r(4, 560), r(560, 24), r(24)], tolerance="normal"),
    Case("Gemm", [r(4, 560), r(24, 560)], {"transB": 1}, tolerance="normal"),
    Case("Softmax", [r(130, 64)]),
]


@pytest.fixture(scope="module")
def kernel_page() -> Iterator[Any]:
    from run import KernelPage

    with KernelPage() as page:
        yield page


@pytest.mark.browser
@pytest.mark.parametrize("case", FEW.values(), ids=FEW.keys())
def test_few_workgroups_and_bindings(kernel_page: Any, case: Case) -> None:
    _check(kernel_page, case, WORKGROUPS, hardware=True)


@pytest.mark.browser
@pytest.mark.parametrize("op", ["MatMul", "Conv", "ConvTranspose", "Softmax", "ReduceSum"])
def test_few_workgroups_of_a_software_adapter(kernel_page: Any, op: str) -> None:
    _check(kernel_page, next(case for case in FEW.values() if case.op == op), WORKGROUPS, hardware=False)


@pytest.mark.browser
@pytest.mark.parametrize("hardware", [False, True], ids=["software", "hardware"])
@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.id)
def test_large_tensors(kernel_page: Any, case: Case, hardware: bool) -> None:
    _check(kernel_page, case, BINDINGS, hardware)


@pytest.mark.browser
def test_what_cannot_be_cut_is_said(kernel_page: Any) -> None:
    with pytest.raises(Exception, match=r"float32\[1,3,50,50\] is beyond the 16384 bytes that this device can bind"):
        kernel_page.run("GlobalAveragePool", [np.zeros((1, 3, 50, 50), np.float32)], traits=BINDINGS)


def _check(page: Any, case: Case, traits: dict[str, int], hardware: bool) -> None:
    arrays = case.arrays()
    expected = case.expectation(arrays)
    options = {"domain": case.domain, "host": case.host, "outputs": case.outputs, "hardware": hardware}
    result = page.run(case.op, arrays, case.attributes, traits=traits, **options)
    absolute, relative = TOLERANCES[case.tolerance]
    for actual, wanted in zip(result.outputs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute, strict=True)
