"""The WebGPU kernels on devices that allow fewer workgroups and fewer bindings. The device pretends.

Largest cases of the tables for each operator. What is too large to be bound at once: `test_large_tensors.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case import TOLERANCES, Case
from test_webgpu_kernels import CASES

WORKGROUPS = {"maxWorkgroupsPerDimension": 3, "maxStorageBuffersPerStage": 8}


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


def _check(page: Any, case: Case, traits: dict[str, int], hardware: bool) -> None:
    arrays = case.arrays()
    expected = case.expectation(arrays)
    options = {"domain": case.domain, "host": case.host, "outputs": case.outputs, "hardware": hardware}
    result = page.run(case.op, arrays, case.attributes, traits=traits, **options)
    absolute, relative = TOLERANCES[case.tolerance]
    for actual, wanted in zip(result.outputs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute, strict=True)
