"""Every table of this folder on the WebGPU kernels alone: no session, no core, so a failure is the kernel's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from case import TOLERANCES, Case, check_signs
from tables import SHARED

CASES = {f"{table}/{case.id}": case for table, cases in SHARED.items() for case in cases}
#: Tables of kernels with separate shaders for hardware and for software adapters: here both run on a software one.
TWOFOLD = (
    "matmul/MatMul",
    "matmul/Gemm",
    "pooling/Global",
    "normalization",
    "softmax",
    "attention/standard/Attention",
    "reduction",
    "joining/Concat",
    "quantization/blocks/MatMulNBits",
    "experts",
    "attention/microsoft/GroupQueryAttention",
    "fused/Attention",
    "fused/Conv",
    "fused_blocks",
    "elementwise_chain",
    "gpu_ends",
    "columns/Conv",
    "special_numbers",
)
#: Their shaders are slow to compile on a software adapter: one case of three, all with `make kernels`.
HARDWARE = {
    f"{name}@hardware": CASES[name]
    for name in [
        name
        for name in CASES
        if name.startswith(TWOFOLD) or name.endswith((":packed", "-long", ":prompt-rotated", ":smooth"))
    ][:: 1 if os.environ.get("PY_ORT_ALL_CASES") == "1" else 3]
}
#: Families with shorter shaders for adapters whose compiler is slow.
COMPACT = {
    f"{name}@compact": case
    for name, case in CASES.items()
    if name.startswith(("matmul/", "convolution/", "columns/Conv"))
}
#: The end of a product is one text in all its shaders: two cases of three have it in a short one, which compiles in a
#: third of the time; none with `make kernels`.
SHORT = {
    name
    for position, name in enumerate(name for name in CASES if name.startswith(("activations/", "ends/")))
    if position % 3 and os.environ.get("PY_ORT_ALL_CASES") != "1"
}


def test_ids_are_unique() -> None:
    """A table with two cases of one id would lose one of them."""
    assert len(CASES) == sum(map(len, SHARED.values()))


@pytest.mark.browser
@pytest.mark.parametrize("name", CASES, ids=CASES.keys())
def test_kernel(kernel_page: Any, name: str) -> None:
    run_case(kernel_page, CASES[name], traits={"slowCompiler": True} if name in SHORT else None)


@pytest.mark.browser
@pytest.mark.parametrize("case", HARDWARE.values(), ids=HARDWARE.keys())
def test_hardware_variant(kernel_page: Any, case: Case) -> None:
    run_case(kernel_page, case, hardware=True)


@pytest.mark.browser
@pytest.mark.parametrize("case", COMPACT.values(), ids=COMPACT.keys())
def test_compact_variant(kernel_page: Any, case: Case) -> None:
    run_case(kernel_page, case, traits={"slowCompiler": True})


#: The first case of each table.
OF_EACH = {name.split("/")[0]: case for name, case in reversed(CASES.items())}


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    from shared_browser import BROWSER

    from py_ort.runtime.jsep import JsepBackend

    with JsepBackend(browser=BROWSER) as made:
        yield made


@pytest.mark.browser
@pytest.mark.parametrize("case", OF_EACH.values(), ids=OF_EACH.keys())
def test_by_messages_from_python(backend: Any, case: Case) -> None:
    """One operator after the other through the JSEP contract's messages, in the sessions' page."""
    arrays = case.arrays()
    kernel = backend.create_kernel(case.op, case.attributes, case.domain)
    results = backend.run(kernel, arrays, case.outputs, case.host)
    check(case, [value.numpy() for value in results], case.expectation(arrays))
    backend.release_kernel(kernel)


def largest() -> dict[str, tuple[int, Case]]:
    """For each operator the case with the most elements in its inputs, and their number."""
    best: dict[tuple[str, str], tuple[int, str]] = {}
    for name, case in CASES.items():
        size = sum(int(np.prod(x.shape)) for x in case.inputs if x is not None)
        best[case.domain, case.op] = max(best.get((case.domain, case.op), (0, "")), (size, name))
    return {name: (size, CASES[name]) for size, name in best.values() if name}


def run_case(kernel_page: Any, case: Case, **variant: Any) -> Any:
    """Run a case and compare; return the page's result."""
    arrays = case.arrays()
    expected = case.expectation(arrays)
    result = kernel_page.run(
        case.op,
        arrays,
        case.attributes,
        domain=case.domain,
        host=case.host,
        outputs=case.outputs,
        **variant,
    )
    check(case, result.outputs, expected)
    return result


def check(case: Case, outputs: Sequence[np.ndarray | None], expected: Sequence[np.ndarray]) -> None:
    """Compare, within the case's tolerance."""
    absolute, relative = TOLERANCES[case.tolerance]
    for k, (actual, wanted) in enumerate(zip(outputs, expected, strict=True)):
        assert actual is not None, f"output {k} was not made"
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape), f"output {k}"
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute, err_msg=f"output {k}")
        check_signs(case, actual, wanted)
