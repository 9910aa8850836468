"""The WebGPU kernels on devices with fewer workgroups and fewer bindings. The device pretends.

Largest cases of the tables for each operator. `test_large_tensors.py` covers tensors larger than a binding.
"""

from __future__ import annotations

from typing import Any

import pytest
from case import Case
from test_webgpu_kernels import CASES, largest, run_case

WORKGROUPS = {"maxWorkgroupsPerDimension": 3, "maxStorageBuffersPerStage": 8}

FEW = {name: case for name, (size, case) in largest().items() if size >= 400}
#: All optional inputs are present.
FEW |= {name: case for name, case in CASES.items() if case.op in ("LSTM", "QLinearConv")}


@pytest.mark.browser
@pytest.mark.parametrize("case", FEW.values(), ids=FEW.keys())
def test_few_workgroups_and_bindings(kernel_page: Any, case: Case) -> None:
    run_case(kernel_page, case, traits=WORKGROUPS, hardware=True)


@pytest.mark.browser
@pytest.mark.parametrize("op", ["MatMul", "Conv", "ConvTranspose", "Softmax", "ReduceSum"])
def test_few_workgroups_of_a_software_adapter(kernel_page: Any, op: str) -> None:
    case = next(case for case in FEW.values() if case.op == op)
    run_case(kernel_page, case, traits=WORKGROUPS, hardware=False)
