"""The compiler's own results are those of the kernel in the page, and of native onnxruntime.

An operator that is folded and has no cases here fails; so does one of whose cases none is folded.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from fold_cases import CASES
from fold_draws import Case, Draw
from native import native_session

from py_ort.compiler.folds import folds
from py_ort.ir.graph import tensor_of
from py_ort.ir.schemas import CANONICAL_OPSET

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "wasm_build/test"))
COUNT = int(os.environ.get("PY_ORT_FOLD_CASES", "8"))  # for each operator and dtype
NATIVE_OPSET = 23
#: Functions and quotients: units in the last place. All others are equal to the last bit.
ULPS = {
    **dict.fromkeys(("Sqrt", "Div", "Reciprocal", "Mod"), 1),
    # Native sine and sigmoid are near in absolute terms only.
    **dict.fromkeys(("Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Pow"), 8),
}
BOUNDED = frozenset({"Sin", "Cos", "Tanh", "Sigmoid"})
SUMS = frozenset({"ReduceSum", "ReduceMean", "ReduceL2", "ReduceSumSquare", "CumSum", "MatMul"})


def test_every_fold_has_cases() -> None:
    assert set(folds()) == set(CASES)


def _node(op_type: str, case: Case) -> ir.Node:
    inputs = [
        None if x is None else ir.Value(name=f"x{i}", const_value=tensor_of(x)) for i, x in enumerate(case.inputs)
    ]
    attributes = [ir.convenience.convert_attribute(name, value) for name, value in case.attributes.items()]
    return ir.Node("", op_type, inputs, attributes, num_outputs=case.outputs)


def _model(op_type: str, case: Case, opset: int) -> onnx.ModelProto:
    names = ["" if x is None else f"x{i}" for i, x in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    node = onnx.NodeProto(op_type=op_type, name="node", input=names, output=[f"y{i}" for i in range(case.outputs)])
    node.attribute.extend(ir.serde.serialize_attribute(a) for a in _node(op_type, case).attributes.values())
    graph = onnx.helper.make_graph(
        [node],
        "fold",
        [
            onnx.helper.make_tensor_value_info(f"x{i}", int(ir.DataType.from_numpy(x.dtype)), x.shape)
            if x.dtype != object
            else onnx.helper.make_tensor_value_info(f"x{i}", onnx.TensorProto.STRING, x.shape)
            for i, x in enumerate(case.inputs)
            if x is not None
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)


def _feeds(case: Case) -> dict[str, np.ndarray]:
    return {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None}


def _native(op_type: str, case: Case) -> list[np.ndarray] | None:
    """Return native onnxruntime's results; None where it has no kernel of this, or refuses."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = _model(op_type, case, NATIVE_OPSET).SerializeToString()
    try:
        session = native_session(model, options)
        feeds = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(x, int(ir.DataType.from_numpy(x.dtype)))
            if x.dtype.kind == "V"
            else x
            for name, x in _feeds(case).items()
        }
        if any(isinstance(x, onnxruntime.OrtValue) for x in feeds.values()):
            return None
        return session.run(None, feeds)
    except Exception:
        return None


def _differs_natively(op_type: str, case: Case) -> bool:
    """Return True if native onnxruntime differs from ONNX's definition, and our kernels do not."""
    x = case.inputs[0]
    assert x is not None
    if op_type == "Slice":  # backwards, it uses the largest end as the smallest
        ends, steps = case.inputs[2], case.inputs[4]
        return steps is not None and bool(np.any((steps < 0) & np.isin(ends, (2**31 - 1, 2**63 - 1))))
    if op_type == "Gather":  # of rows of strings it copies the first
        return x.dtype == object
    if op_type in ("Range", "Mod") and x.dtype.kind in "iu":  # by way of float64
        return x.dtype.itemsize == 8 and bool(np.any(np.abs(x.astype(np.float64)) > 2**50))
    # likewise; numbers that do not fit become the nearest
    if op_type in ("ReduceSum", "ReduceProd") and x.dtype.kind in "iu":
        sizes = np.maximum(np.abs(x.astype(np.float64)), 1)
        most = np.prod(sizes) if op_type == "ReduceProd" else np.sum(sizes)
        return bool(most > 2 ** (50 if x.dtype.itemsize == 8 else 31))
    return False


def _drawn(op_type: str, dtype: ir.DataType) -> list[Case]:
    seed = zlib.crc32(f"{op_type} {dtype.name}".encode())
    return [CASES[op_type](Draw(seed + i), dtype) for i in range(COUNT)]


def _assert_same(found: np.ndarray, wanted: np.ndarray, op_type: str, sizes: np.ndarray | None) -> None:
    """Compare; `sizes` are the magnitudes of the terms, if the result is a sum."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind in "OUS":
        assert _texts(found) == _texts(wanted)
    elif found.dtype.kind in "iub" or (sizes is None and op_type not in ULPS):
        # Compared as numbers: NaN is NaN, and -0 is 0.
        exact = np.float64 if found.dtype.kind == "f" or "float" in found.dtype.name else found.dtype
        np.testing.assert_array_equal(found.astype(exact), wanted.astype(exact))
    else:
        with np.errstate(invalid="ignore"):
            a, b = found.astype(np.float64), wanted.astype(np.float64)
            epsilon = float(ml_dtypes.finfo(found.dtype).eps)
            smallest = 1 if op_type in BOUNDED else float(ml_dtypes.finfo(found.dtype).tiny)
            bound = 8 * epsilon * sizes if sizes is not None else ULPS[op_type] * epsilon * (np.abs(b) + smallest)
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound)
        assert np.all(same), f"{a[~same][:4]} and {b[~same][:4]}"


def _texts(contents: np.ndarray) -> list[str]:
    return [item.decode() if isinstance(item, bytes) else str(item) for item in contents.reshape(-1).tolist()]


def _sizes(op_type: str, node: ir.Node, case: Case) -> np.ndarray | None:
    """Return the sums of magnitudes of a node's terms."""
    x, *others = case.inputs
    assert x is not None
    if op_type not in SUMS or x.dtype.kind in "iu":
        return None
    found = folds()[op_type](node, [np.abs(x), *(np.abs(y) if op_type == "MatMul" else y for y in others)])
    assert found is not None
    return found[0].astype(np.float64)


@pytest.mark.parametrize("op_type", sorted(CASES))
def test_equals_the_kernel_and_native(op_type: str) -> None:
    os.environ.setdefault("PY_ORT_CORE", str(ROOT / "py_ort/assets/core.mjs"))
    from one_node import CoreError, run_many  # type: ignore[import-not-found]

    fold = folds()[op_type]
    jobs = []
    for dtype in fold.dtypes:
        cases = [
            (case, node, fold(node, case.inputs)) for case in _drawn(op_type, dtype) for node in [_node(op_type, case)]
        ]
        folded = [item for item in cases if item[2] is not None]
        assert len(folded) >= COUNT / 4, f"{dtype.name}: hardly anything is folded"
        jobs += folded
    answers = run_many([(_model(op_type, case, CANONICAL_OPSET), _feeds(case)) for case, _, _ in jobs])
    wrong = []
    for (case, node, results), answer in zip(jobs, answers, strict=True):
        others: dict[str, Any] = {"wasm": answer if isinstance(answer, CoreError) else answer.outputs}
        native = None if _differs_natively(op_type, case) else _native(op_type, case)
        if native is not None:
            others["native"] = native
        for whose, wanted in others.items():
            try:
                assert not isinstance(wanted, Exception), wanted
                for y, other in zip(results, wanted, strict=True):
                    _assert_same(y, np.asarray(other), op_type, _sizes(op_type, node, case))
            except AssertionError as e:
                wrong.append(f"{whose}: {case}: {' '.join(str(e).split())}"[:800])
    assert not wrong, "\n".join([f"{len(wrong)} of {len(jobs)} differ:", *wrong[:8]])


@pytest.mark.parametrize("op_type", ["Relu", "Sin", "Tanh", "Sign", "Neg", "Abs"])
def test_signs_of_zeros_are_native(op_type: str) -> None:
    case = Case([np.array([-0.0, 0.0], np.float32)])
    (folded,), native = folds()[op_type](_node(op_type, case), case.inputs), _native(op_type, case)
    assert native is not None
    np.testing.assert_array_equal(np.signbit(folded), np.signbit(native[0]))


@pytest.mark.parametrize(("dtype", "size", "folded"), [("i8", 64, True), ("i8", 1 << 9, False), ("f4", 1 << 11, False)])
def test_products_that_take_long_are_the_cores(dtype: str, size: int, folded: bool) -> None:
    square = np.zeros((size, size), dtype)
    a, b = (ir.Value(name=name, const_value=ir.tensor(square)) for name in "ab")
    found = folds()["MatMul"](ir.Node("", "MatMul", [a, b]), [square, square])
    assert (found is not None) == folded
