"""Linear models and support vector machines, from the file to the core, compared with native onnxruntime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import compile_model

FEATURES, VECTORS = 4, (3, 4, 2)
#: Without PROBIT: from one score for two classes onnxruntime leaves a column unwritten.
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
LABELS = ("classlabels_ints", "classlabels_strings")


def _model(op_type: str, labels: str = "", **attributes: Any) -> onnx.ModelProto:
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, None)]
    if labels:
        kind = TensorProto.INT64 if labels == "classlabels_ints" else TensorProto.STRING
        outputs.insert(0, helper.make_tensor_value_info("label", kind, None))
    node = helper.make_node(op_type, ["x"], [o.name for o in outputs], domain="ai.onnx.ml", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", FEATURES])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [x], outputs), opset_imports=opsets, ir_version=8)


def _models(transform: str) -> dict[str, onnx.ModelProto]:
    rng = np.random.default_rng(0)
    found: dict[str, onnx.ModelProto] = {}
    given: dict[str, Any]

    def numbers(count: int) -> list[float]:
        return list(rng.standard_normal(count).astype(np.float32).tolist())

    def names(classes: int, labels: str) -> dict[str, Any]:
        return {labels: [f"é{i}" for i in range(classes)] if labels == LABELS[1] else list(range(5, 5 + classes))}

    def add(what: str, op_type: str, labels: str = "", **attributes: Any) -> None:
        found[f"{op_type}, {what}"] = _model(op_type, labels, post_transform=transform, **attributes)

    for (rows, classes), labels in itertools.product(((1, 2), (2, 2), (3, 3)), LABELS):
        given = {"coefficients": numbers(rows * FEATURES), "intercepts": numbers(rows)}
        add(f"{rows} of {classes}, {labels}", "LinearClassifier", labels, **given, **names(classes, labels))
    for targets in (1, 2, 3):
        given = {"coefficients": numbers(targets * FEATURES), "intercepts": numbers(targets)}
        add(f"{targets=}", "LinearRegressor", targets=targets, **given)
    for kernel in KERNELS:
        common = {"kernel_type": kernel, "kernel_params": [0.5, 0.2, 3.0]}
        for one_class, vectors in itertools.product((0, 1), (0, 5)):
            given = {"coefficients": numbers(vectors or FEATURES)}
            given |= {"support_vectors": numbers(vectors * FEATURES)} if vectors else {}
            given |= {"n_supports": vectors, "rho": [0.3], "one_class": one_class}
            add(f"{kernel}, {one_class=}, {vectors=}", "SVMRegressor", **common, **given)
        for classes, labels, likely in itertools.product((2, 3), LABELS, (False, True)):
            count, pairs = sum(VECTORS[:classes]), classes * (classes - 1) // 2
            given = {"coefficients": numbers(count * (classes - 1)), "support_vectors": numbers(count * FEATURES)}
            given |= {"vectors_per_class": list(VECTORS[:classes]), "rho": numbers(pairs)}
            given |= {"prob_a": numbers(pairs), "prob_b": numbers(pairs)} if likely else {}
            what = f"{kernel}, {classes=}, {labels}, {likely=}"
            add(what, "SVMClassifier", labels, **common, **given, **names(classes, labels))
        for classes, labels, positive in itertools.product((1, 2, 3), LABELS, (False, True)):
            weights = np.array(numbers(classes * FEATURES))
            given = {"coefficients": (abs(weights) / 4 if positive else weights).tolist(), "rho": numbers(classes)}
            what = f"{kernel}, no vectors, {classes=}, {labels}, {positive=}"
            add(what, "SVMClassifier", labels, **common, **given, **names(classes, labels))
    return found


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_as_native(transform: str) -> None:
    x = np.random.default_rng(1).standard_normal((7, FEATURES)).astype(np.float32)
    models = _models(transform)
    plans = [(compile_model(model.SerializeToString(), providers=["wasm"]), {"x": x}) for model in models.values()]
    for (name, model), found in zip(models.items(), run_plans(plans), strict=True):
        assert not isinstance(found, Exception), name
        for ours, wanted in zip(found, run_native(model, {"x": x}), strict=True):
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(ours, wanted, err_msg=name)


@pytest.mark.parametrize("shape", [(5, 2), (5, 1), (2,), (0, 2), (5, 0)], ids=str)
@pytest.mark.parametrize(("op_type", "labels"), [("LinearClassifier", LABELS[0]), ("LinearRegressor", "")])
def test_numbers_that_no_feature_has_are_left_out_as_in_native(
    op_type: str, labels: str, shape: tuple[int, ...]
) -> None:
    """onnxruntime's own logreg_iris.onnx is such a model."""
    numbers = np.random.default_rng(2).standard_normal(3 * FEATURES).astype(np.float32).tolist()
    given = {labels: [5, 6, 7]} if labels else {"targets": 3}
    model = _model(op_type, labels, coefficients=numbers, intercepts=[0.1, 0.2, 0.3], **given)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    (found,) = run_plans([(compile_model(model.SerializeToString(), providers=["wasm"]), {"x": x})])
    assert not isinstance(found, Exception), found
    for ours, wanted in zip(found, run_native(model, {"x": x}), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (3,), (2, 1), (0,), (2, 4)], ids=str)
@pytest.mark.parametrize("kind", ["floats", "int64s"])
def test_values_that_are_not_one_for_each_feature_as_in_native(kind: str, shape: tuple[int, ...]) -> None:
    dtype, name = (np.float32, TensorProto.FLOAT) if kind == "floats" else (np.int64, TensorProto.INT64)
    values = [dtype(each).item() for each in (7, 8, 9, 10)]
    given = {f"imputed_value_{kind}": values, f"replaced_value_{kind[:-1]}": dtype(2).item()}
    node = helper.make_node("Imputer", ["x"], ["y"], domain="ai.onnx.ml", **given)
    types = [helper.make_tensor_value_info(each, name, None) for each in "xy"]
    graph = helper.make_graph([node], "g", types[:1], types[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = np.resize(np.array([2, 1], dtype), shape)
    (found,) = run_plans([(compile_model(model.SerializeToString(), providers=["wasm"]), {"x": x})])
    assert not isinstance(found, Exception), found
    np.testing.assert_array_equal(found[0], run_native(model, {"x": x})[0])
