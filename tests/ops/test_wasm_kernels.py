"""The tables of this folder, and those of wasm/ for forms that only the CPU kernels know, on the core alone, in Node.

Each case runs twice in one session, once with all inputs as feeds and once with all but the first as constants: kernels
cache packed constants. Tables of operators with micro-kernels run on those of relaxed SIMD, too.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

HERE = Path(__file__).parent
ASSETS = HERE.parents[1] / "py_ort/assets"
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "wasm_build/test")]

from case import MICROSOFT, TOLERANCES, Case, check_signs  # noqa: E402
from tables import OWN, SHARED  # noqa: E402

#: Additions to operators that only WebGPU's kernels have; some on columns of wider tensors are for both.
FOR_GPUS = ("fused_blocks", "gpu_ends", "transposed_chains")
TABLES = {name: cases for name, cases in SHARED.items() if name not in FOR_GPUS} | OWN
TABLES["columns"] = [case for case in TABLES["columns"] if case.op in ("Conv", "Concat")]
KERNELS = {(entry["domain"], entry["op_type"]) for entry in json.loads((ASSETS / "kernels.wasm.json").read_text())}
CASES: dict[str, Case] = {
    f"{table}/{case.id}": case
    for table, cases in TABLES.items()
    for case in cases
    if (case.domain, case.op) in KERNELS or table in OWN
}
BATCH = 400
#: Tables whose operators run micro-kernels.
WITH_MICROKERNELS = (
    "activations",
    "attention/",
    "channels_last",
    "columns",
    "convolution",
    "elementwise/unary",
    "elementwise_chain",
    "ends",
    "fused",
    "matmul",
    "normalization",
    "pooling",
    "quantization/",
    "softmax",
    "special_numbers",
    "wasm/elementwise",
    "wasm/packed",
    "wasm/quantization",
)


def _model(
    case: Case, arrays: list[np.ndarray | None], constants: bool
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    names = [f"x{case.same.get(k, k)}" if x is not None else "" for k, x in enumerate(arrays)]
    written = case.attributes.get("into", 0)
    outputs = [f"y{k}" for k in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, name="node", domain=case.domain, **case.attributes)
    given = {name: x for name, x in zip(names, arrays, strict=True) if x is not None}
    fixed = {name: x for name, x in given.items() if constants and name not in (names[0], names[written])}
    feeds = {name: x for name, x in given.items() if name not in fixed}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()
    ]
    initializers = [numpy_helper.from_array(x, name) for name, x in fixed.items()]
    graph = helper.make_graph([node], "case", infos, [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    domains = dict.fromkeys(["", MICROSOFT, case.domain])
    opsets = [helper.make_opsetid(domain, 1 if domain else 23) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


#: Case, true if all inputs but the first are constants, and the micro-kernels to run.
RUNS = [(name, constants, "fixed") for name in CASES for constants in (False, True)]
RUNS += [(name, True, "relaxed") for name in CASES if name.startswith(WITH_MICROKERNELS)]
IDS = [
    "-".join((name, "constant" if constants else "fed", *(["relaxed"] * (simd == "relaxed"))))
    for name, constants, simd in RUNS
]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[tuple[str, bool, str], Any]:
    """Run the selected cases; the result of each, or the core's error."""
    selected = {item.callspec.params.get("run") for item in request.session.items if hasattr(item, "callspec")}
    os.environ.setdefault("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    found: dict[tuple[str, bool, str], Any] = {}
    for simd in ("fixed", "relaxed") if _has_relaxed() else ("fixed",):
        keys = [key for key in RUNS if key[2] == simd and key in selected]
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            jobs = [_model(CASES[name], CASES[name].arrays(), constants) for name, constants, _ in part]
            found.update(zip(part, run_many(jobs, repeat=2, simd=simd), strict=True))
    return found


def _has_relaxed() -> bool:
    """Return True if the core was built with them: an empty module is 8 bytes."""
    return (ASSETS / "relaxed_simd.wasm").stat().st_size > 8


def test_ids_are_unique() -> None:
    """A table with two cases of one id would lose one of them."""
    for table, cases in OWN.items():
        ids = [case.id for case in cases]
        assert len(ids) == len(set(ids)), table


@pytest.mark.parametrize("run", RUNS, ids=IDS)
def test_kernel(run: tuple[str, bool, str], results: dict[tuple[str, bool, str], Any]) -> None:
    """One case, compared by its tolerance."""
    if run not in results:
        pytest.skip("built without relaxed SIMD: clang and lld 19 are needed for that")
    case, result = CASES[run[0]], results[run]
    if isinstance(result, Exception):
        raise result
    absolute, relative = TOLERANCES[case.tolerance]
    for k, (actual, wanted) in enumerate(zip(result.outputs, case.expectation(case.arrays()), strict=True)):
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape), f"output {k}"
        if wanted.dtype.kind == "O":
            np.testing.assert_array_equal(actual, wanted)
            continue
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute, err_msg=f"output {k}")
        check_signs(case, actual, wanted)
