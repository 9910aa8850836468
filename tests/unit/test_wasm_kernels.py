"""ONNX's own node tests on the core's CPU kernels, in Node: a few processes for all, no browser and no compiler.

The kernels know the newest form of each operator only: cases of older forms are for the tests that use the compiler.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "py_ort/assets"
sys.path.insert(0, str(ROOT / "wasm_build/test"))
# Why a case fails; one that passes all the same must be taken off the list.
EXPECTED: dict[str, str] = {
    line.split(": ", 1)[0]: line.split(": ", 1)[1]
    for line in (ROOT / "tests/expectations/wasm_kernels.txt").read_text().splitlines()
    if line and not line.startswith("#")
}
BATCH = 300
# Two or three units in the last place, where the cases' own tolerance is finer than the type.
ROUNDING = {"bfloat16": (2e-2, 1e-2), "float16": (3e-3, 1e-3), "float32": (1e-3, 1e-6)}


def _cases() -> list[Any]:
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        return [case for case in collect_testcases(None) if _is_ours(case.model)]


def _is_ours(model: onnx.ModelProto) -> bool:
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    has_kernels = all(("" if node.domain == "ai.onnx" else node.domain, node.op_type) in KERNELS for node in nodes)
    return has_kernels and all(_is_newest_form(node, opsets) for node in nodes)


def _is_newest_form(node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    """Say whether a node has only attributes that the newest version of its operator has (axes, say, became inputs)."""
    try:
        newest = onnx.defs.get_schema(node.op_type, domain=node.domain)
        used = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except (onnx.defs.SchemaError, KeyError):
        return True
    same_meaning = node.op_type not in {"Softmax", "LogSoftmax", "Hardmax"} or used.since_version >= 13
    return same_meaning and {a.name for a in node.attribute} <= set(newest.attributes)


def _value(value: Any) -> Any:
    """Return numpy arrays (lists of them, None) for what ONNX's cases hold."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def _assert_equal(actual: Any, expected: Any, case: Any) -> None:
    if expected is None or actual is None:
        assert actual is None and expected is None
    elif isinstance(expected, list):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            _assert_equal(one, other, case)
    elif (expected := np.asarray(expected)).dtype.kind in "OUS":
        assert np.asarray(actual).astype(str).tolist() == expected.astype(str).tolist()
    else:
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        rtol, atol = ROUNDING.get(actual.dtype.name, (1e-3, 1e-7))
        if actual.dtype.kind != "c":
            actual, expected = actual.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(actual, expected, rtol=max(rtol, case.rtol or 0), atol=max(atol, case.atol or 0))


KERNELS = {(entry["domain"], entry["op_type"]) for entry in json.loads((ASSETS / "kernels.wasm.json").read_text())}
CASES = {case.name: case for case in _cases()}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Run all cases; the result of each, or the core's error."""
    os.environ.setdefault("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many

    names = list(CASES)
    found: dict[str, Any] = {}
    for start in range(0, len(names), BATCH):
        part = names[start : start + BATCH]
        jobs = [(CASES[name].model, [_value(x) for x in CASES[name].data_sets[0][0]]) for name in part]
        found.update(zip(part, run_many(jobs), strict=True))
    return found


@pytest.mark.parametrize("name", CASES)
def test_node_case(name: str, results: dict[str, Any]) -> None:
    """One case of ONNX's node tests."""
    case, result = CASES[name], results[name]
    reason = EXPECTED.get(name)
    try:
        if isinstance(result, Exception):
            raise result
        for actual, expected in zip(result.outputs, case.data_sets[0][1], strict=True):
            _assert_equal(actual, _value(expected), case)
    except Exception:
        if reason:
            pytest.xfail(reason)
        raise
    assert not reason or "random" in reason, f"passes, but tests/expectations/wasm_kernels.txt says: {reason}"


def test_expectations_name_cases() -> None:
    """No line of the expectations is about a case that is not run."""
    assert set(EXPECTED) <= set(CASES)
