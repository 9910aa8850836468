"""The WebGPU kernels on float16: as f16 if the adapter has it, otherwise packed and computed in f32 (SwiftShader).

For each operator the first case of the tables whose tensors are all float32, in float16: the expectation is that of the
rounded inputs in float32. The adapter with shader-f16 is lavapipe: the library of PY_ORT_LAVAPIPE, or that of
`tests/helpers/lavapipe`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lavapipe
import numpy as np
import pytest
from case import Case, Random
from test_webgpu_kernels import CASES

LAVAPIPE = "PY_ORT_LAVAPIPE"
ASSETS = Path(__file__).parents[2] / "py_ort/assets"


def _takes_halves() -> set[tuple[str, str]]:
    entries = json.loads((ASSETS / "kernels.webgpu.json").read_text())
    return {(e["domain"], e["op_type"]) for e in entries if e["types"] and "float16" in e["types"][0]}


#: Operators that magnify the rounding of their inputs, or have a second answer near the first.
UNSTABLE = ("TopK", "ArgMax", "ArgMin", "Hardmax", "QuantizeLinear", "Tan", "Cast", "BitCast", "Mod", "IsInf", "Pow")


def _cases() -> dict[str, Case]:
    taken, found, kernels = set(), {}, _takes_halves()
    for name, case in CASES.items():
        key = (case.domain, case.op)
        floats = [x for x in case.inputs if isinstance(x, Random) and x.dtype == "float32"]
        small = all(np.prod(x.shape) <= 20_000 for x in floats)
        whole = all(x is None or x.dtype.kind != "f" for x in case.inputs if isinstance(x, np.ndarray))
        if key in kernels and key not in taken and floats and small and whole and case.op not in UNSTABLE:
            taken.add(key)
            found[name] = case
    return found


HALVES = _cases()


@pytest.fixture(scope="module", params=["swiftshader", "lavapipe"])
def kernel_page(request: pytest.FixtureRequest) -> Iterator[Any]:
    from run import KernelPage

    with pytest.MonkeyPatch.context() as patched:
        if request.param == "lavapipe" and LAVAPIPE not in os.environ:
            try:
                patched.setenv(LAVAPIPE, lavapipe.environment()["LD_PRELOAD"])
            except lavapipe.Missing as e:
                pytest.skip(f"no adapter has shader-f16: {e}")
        with KernelPage(adapter=request.param) as page:
            assert ("shader-f16" in page.device()["features"]) == (request.param == "lavapipe")
            yield page


def test_most_operators_are_here() -> None:
    assert len(HALVES) >= 90


@pytest.mark.browser
@pytest.mark.parametrize("case", HALVES.values(), ids=HALVES.keys())
def test_half(kernel_page: Any, case: Case) -> None:
    halves = [x.astype(np.float16) if x is not None and x.dtype == np.float32 else x for x in case.arrays()]
    wide = [x.astype(np.float32) if x is not None and x.dtype == np.float16 else x for x in halves]
    options = {"domain": case.domain, "host": case.host, "outputs": case.outputs}
    result = kernel_page.run(case.op, halves, case.attributes, **options)
    for actual, wanted in zip(result.outputs, case.expectation(wide), strict=True):
        assert actual.shape == wanted.shape
        got = actual.astype(np.float32) if actual.dtype == np.float16 else actual
        np.testing.assert_allclose(
            got, wanted, rtol=4e-3, atol=4e-3 * max(1.0, float(np.max(np.abs(wanted), initial=0)))
        )


@pytest.mark.browser
def test_packed_ones_are_the_nearest(kernel_page: Any) -> None:
    """Each float16 returns unchanged; between two the nearer one is chosen, and of two as near the even one."""
    if "shader-f16" in kernel_page.device()["features"]:
        pytest.skip("the adapter rounds")
    values = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (values[:-1] + values[1:]) / 2
    beside = [np.nextafter(middle, np.float32(0)), middle, np.nextafter(middle, np.float32(np.inf))]
    ends = np.array([65519, 65520, 3e38, np.inf, np.nan, 1e-45, 2**-25], np.float32)
    singles = np.concatenate([values, *beside, ends])
    singles = np.concatenate([singles, -singles])
    with np.errstate(over="ignore"):
        expected = singles.astype(np.float16)
    (found,) = kernel_page.run("Cast", [singles], {"to": 10}).outputs
    np.testing.assert_array_equal(found, expected)
    (back,) = kernel_page.run("Cast", [expected], {"to": 1}).outputs
    np.testing.assert_array_equal(back, expected.astype(np.float32))
