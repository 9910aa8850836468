"""ONNX's own node tests on the core's CPU kernels, in Node: a few processes for all, no browser and no compiler.

The kernels know only the newest form of each operator: cases of older forms are covered by tests with the compiler.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from py_ort.schema.gen.ErrorCode import ErrorCode
from py_ort.testing.case import Case
from py_ort.testing.results import expectations_of
from py_ort.testing.sources import onnx_node

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "py_ort/assets"
sys.path.insert(0, str(ROOT / "wasm_build/test"))
#: Random: their values are not numpy's, but types and shapes are. The other known failures pass here: they are within
#: two or three units in the last place, or have no kernel.
RANDOM = {name for name, known in expectations_of("onnx-node", "wasm").items() if known.may_pass}
#: Operators that the page runs for the core: tests/page/test_image_decoder.py.
OF_THE_PAGE = {"ImageDecoder"}
BATCH = 300
# Two or three units in the last place, if the cases' own tolerance is finer than the type.
ROUNDING = {"bfloat16": (2e-2, 1e-2), "float16": (3e-3, 1e-3), "float32": (1e-3, 1e-6)}


def _is_ours(model: onnx.ModelProto) -> bool:
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    if any(node.op_type in OF_THE_PAGE for node in nodes):
        return False
    has_kernels = all(("" if node.domain == "ai.onnx" else node.domain, node.op_type) in KERNELS for node in nodes)
    return has_kernels and all(_is_newest_form(node, opsets) for node in nodes)


def _is_newest_form(node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    """Return True if a node has only attributes of its operator's newest version (axes, for example, became inputs)."""
    try:
        newest = onnx.defs.get_schema(node.op_type, domain=node.domain)
        used = onnx.defs.get_schema(node.op_type, opsets[node.domain], node.domain)
    except (onnx.defs.SchemaError, KeyError):
        return True
    same_meaning = node.op_type not in {"Softmax", "LogSoftmax", "Hardmax"} or used.since_version >= 13
    return same_meaning and {a.name for a in node.attribute} <= set(newest.attributes)


def _assert_equal(actual: Any, expected: Any, case: Case) -> None:
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
        own = case.tolerance_on("wasm")
        np.testing.assert_allclose(actual, expected, rtol=max(rtol, own.rtol), atol=max(atol, own.atol))


KERNELS = {(entry["domain"], entry["op_type"]) for entry in json.loads((ASSETS / "kernels.wasm.json").read_text())}
MODELS = {case.id: onnx.load_from_string(case.model_bytes()) for case in onnx_node.cases()}
CASES = {case.id: case for case in onnx_node.cases() if _is_ours(MODELS[case.id])}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Run all cases; the result of each, or the core's error."""
    os.environ.setdefault("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    names = list(CASES)
    found: dict[str, Any] = {}
    for start in range(0, len(names), BATCH):
        part = names[start : start + BATCH]
        jobs = [(MODELS[name], list(CASES[name].data_sets[0].feeds.values())) for name in part]
        found.update(zip(part, run_many(jobs), strict=True))
    return found


@pytest.mark.parametrize("name", CASES)
def test_node_case(name: str, results: dict[str, Any]) -> None:
    """One case of ONNX's node tests."""
    case, result = CASES[name], results[name]
    if name in RANDOM:
        assert not isinstance(result, Exception), result
        for actual, expected in zip(result.outputs, case.data_sets[0].outputs, strict=True):
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        return
    if isinstance(result, Exception):
        raise result
    for actual, expected in zip(result.outputs, case.data_sets[0].outputs, strict=True):
        _assert_equal(actual, expected, case)


@pytest.mark.parametrize("left", [0, 1 << 10, 1 << 12, 1 << 14, 1 << 17], ids=str)
def test_without_memory(left: int, results: dict[str, Any]) -> None:
    """Runs with this number of bytes of memory, for tables and texts too, end in OutOfMemory, and leak nothing."""
    from one_node import run_many

    names = [name for name in CASES if not isinstance(results[name], Exception)]
    jobs = [(MODELS[name], list(CASES[name].data_sets[0].feeds.values())) for name in names]
    found = dict(zip(names, run_many(jobs, left=left), strict=True))
    short = {name for name, result in found.items() if isinstance(result, Exception)}
    others = {str(found[name]) for name in short if found[name].code != ErrorCode.out_of_memory}
    assert not others
    assert len(short) > 10
    for name in set(found) - short - RANDOM:
        for actual, expected in zip(found[name].outputs, CASES[name].data_sets[0].outputs, strict=True):
            _assert_equal(actual, expected, CASES[name])
    taken = [result.taken for result in found.values()]
    assert min(taken[-50:]) > min(taken[:50]) - (1 << 20)


I32, I64, F32, U8 = (partial(np.array, dtype=dtype) for dtype in (np.int32, np.int64, np.float32, np.uint8))
ERRORS: dict[str, tuple[str, list[Any], dict[str, Any], str]] = {
    "div:int:zero": ("Div", [I32([4, 5]), I32([2, 0])], {}, "division by 0: element 1"),
    "mod:int:zero": ("Mod", [I64([4]), I64([0])], {}, "division by 0: element 0"),
    "gather:range": ("Gather", [F32([1, 2]), I64([0, 7])], {}, "index 7 "),
    "gather_elements:range": ("GatherElements", [F32([[1, 2]]), I64([[0, -3]])], {"axis": 1}, "index -3 "),
    "gather_nd:range": ("GatherND", [F32([1, 2]), I64([[2]])], {}, "index 2 "),
    "scatter_elements:range": ("ScatterElements", [F32([1, 2]), I64([5]), F32([0])], {}, "index 5 "),
    "scatter_nd:range": ("ScatterND", [F32([1, 2]), I64([[-9]]), F32([0])], {}, "index -9 "),
    "reshape:count": ("Reshape", [F32([1, 2]), I64([3])], {}, "2 elements"),
    "reshape:divisor": ("Reshape", [F32([1, 2]), I64([-1, 3])], {}, "divide by 3"),
    "add:shapes": ("Add", [F32([1, 2]), F32([1, 2, 3])], {}, "[2] and [3] do not broadcast"),
    "concat:shapes": ("Concat", [F32([[1, 2]]), F32([[1]])], {"axis": 0}, "other axes differ"),
    "transpose:perm": ("Transpose", [F32([[1, 2]])], {"perm": [0, 0]}, "no permutation"),
    "squeeze:size": ("Squeeze", [F32([[1, 2]]), I64([1])], {}, "not 1"),
    "reduce:axis": ("ReduceSum", [F32([1, 2]), I64([3])], {}, "axis 3 is out of range"),
    "top_k:k": ("TopK", [F32([1, 2]), I64([3])], {}, "K is 3"),
    "range:step": ("Range", [I64(1), I64(3), I64(0)], {}, "step is 0"),
    "pad:pads": ("Pad", [F32([1, 2]), I64([1])], {}, "1 pads for 1 axes"),
    "split:sum": ("Split", [F32([1, 2, 3]), I64([1, 1])], {}, "into [1,1]"),
    "slice:step": ("Slice", [F32([1, 2]), I64([0]), I64([2]), I64([0]), I64([0])], {}, "is 0"),
    "cast:text": ("Cast", [np.array(["3", "three"], object)], {"to": 1}, "'three'"),
    "regex:broken": ("RegexFullMatch", [np.array(["a"], object)], {"pattern": "(a"}, "does not end"),
    "bit_shift:direction": ("BitShift", [U8([1]), U8([1])], {"direction": "UP"}, "LEFT or RIGHT"),
    "einsum:shape": ("Einsum", [F32([1, 2])], {"equation": "ij->i"}, "does not fit"),
    "sequence_at:empty": ("SequenceAt", [[F32([1])], I64(1)], {}, "position 1 "),
    "unsqueeze:old_form": ("Unsqueeze", [F32([1])], {}, "newest"),
}


@pytest.fixture(scope="module")
def errors() -> dict[str, Any]:
    """Return the core's answer to each case of ERRORS."""
    os.environ.setdefault("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import model, run_many

    jobs = []
    for op_type, inputs, attributes, _ in ERRORS.values():
        names = [f"x{i}" for i in range(len(inputs))]
        outputs = ["y", "z"] if op_type in {"TopK", "Split"} else ["y"]
        proto = model(op_type, names, outputs, opset=onnx.defs.onnx_opset_version(), **attributes)
        for value, info in zip(inputs, proto.graph.input, strict=True):
            item = value[0] if isinstance(value, list) else value
            dtype = (
                onnx.TensorProto.STRING if item.dtype == object else onnx.helper.np_dtype_to_tensor_dtype(item.dtype)
            )
            tensor = onnx.helper.make_tensor_type_proto(dtype, item.shape)
            is_list = isinstance(value, list)
            info.type.CopyFrom(onnx.helper.make_sequence_type_proto(tensor) if is_list else tensor)
        jobs.append((proto, dict(zip(names, inputs, strict=True))))
    return dict(zip(ERRORS, run_many(jobs), strict=True))


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str, errors: dict[str, Any]) -> None:
    """A fault in the inputs of a kernel is an error that names the operator and the value."""
    op_type, _, _, text = ERRORS[name]
    error = errors[name]
    assert isinstance(error, Exception), f"no error, but {error.outputs}"
    assert text in str(error)
    assert getattr(error, "op_type", "").endswith(op_type)
