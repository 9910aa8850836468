"""Ensembles of trees, from the file to the core, compared with native onnxruntime, with nodes of any name and order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from plans_in_node import run_plans
from standard_form import run_native

from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.load import load_model
from py_ort.ir.long_list import LongList

FEATURES = 9


def ensemble(
    trees: int, depth: int, names: str = "dense", *, classes: int = 0, labels: str = "", targets: int = 2
) -> Any:
    """Make full trees; each leaf votes once or twice."""
    rng = np.random.default_rng(trees)
    size, inner = 2 ** (depth + 1) - 1, 2**depth - 1
    tree, node = np.repeat(np.arange(trees), size), np.tile(np.arange(size), trees)
    leaf = node >= inner
    name = {"dense": node, "sparse": node * 2 + 3, "shared": node, "from one": node + 1}[names]
    child = {"dense": 1, "sparse": 2, "shared": 1, "from one": 1}[names]
    first = {"dense": 0, "sparse": 3, "shared": 0, "from one": 1}[names]
    if names != "dense":
        tree = tree * 5 - 2
    yes, no = (np.where(leaf, 0, (2 * node + k) * child + first) for k in (1, 2))
    feature = np.where(leaf, -2, rng.integers(0, FEATURES, tree.size))  # scikit-learn's form of leaves
    modes = np.where(leaf, "LEAF", rng.choice(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_NEQ"]))
    order = np.arange(tree.size) if names != "sparse" else np.lexsort((rng.random(tree.size) * (node > 0), tree))
    votes = np.flatnonzero(leaf)
    votes = np.concatenate([votes, votes[:3]]) if targets > 1 else votes
    rng.shuffle(votes)
    prefix, op = ("class", "TreeEnsembleClassifier") if classes else ("target", "TreeEnsembleRegressor")
    attributes: dict[str, Any] = {
        "nodes_treeids": tree[order].tolist(),
        "nodes_nodeids": name[order].tolist(),
        "nodes_truenodeids": yes[order].tolist(),
        "nodes_falsenodeids": no[order].tolist(),
        "nodes_featureids": np.maximum(feature, 0)[order].tolist(),
        "nodes_values": np.where(leaf, 0, rng.standard_normal(tree.size))[order].astype(np.float32).tolist(),
        "nodes_modes": modes[order].tolist(),
        "nodes_missing_value_tracks_true": rng.integers(0, 2, tree.size).tolist(),
        f"{prefix}_treeids": tree[votes].tolist(),
        f"{prefix}_nodeids": name[votes].tolist(),
        f"{prefix}_ids": rng.integers(0, classes or targets, votes.size).tolist(),
        f"{prefix}_weights": rng.standard_normal(votes.size).astype(np.float32).tolist(),
    }
    attributes |= {labels: list(range(classes))} if classes and labels == "classlabels_int64s" else {}
    attributes |= {labels: [f"é{k}" for k in range(classes)]} if labels == "classlabels_strings" else {}
    base = [0.5, -1.0, 0.25][: classes or targets]
    attributes |= {"base_values": base} if classes else {"n_targets": targets, "base_values": base}
    outputs = ["label", "scores"] if classes else ["scores"]
    made = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", name="trees", **attributes)
    kind = TensorProto.STRING if labels == "classlabels_strings" else TensorProto.INT64
    infos = [helper.make_tensor_value_info("label", kind, ["n"])] if classes else []
    infos += [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", classes or targets])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", FEATURES])
    graph = helper.make_graph([made], "g", [x], infos)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


MODELS: dict[str, onnx.ModelProto] = {
    **{names: ensemble(4, 3, names) for names in ("dense", "sparse", "shared", "from one")},
    **{f"long, {names}": ensemble(40, 7, names) for names in ("dense", "sparse")},
    "one target": ensemble(3, 3, targets=1),
    "numbers of classes": ensemble(5, 4, classes=3, labels="classlabels_int64s"),
    "names of classes, long": ensemble(40, 7, classes=3, labels="classlabels_strings"),
}


def test_long_lists_are_arrays() -> None:
    node = load_model(MODELS["long, sparse"].SerializeToString()).model.graph[0]
    found = {name: item for name, item in node.attributes.items() if isinstance(item, LongList)}
    assert {"nodes_values", "nodes_modes", "target_ids"} <= found.keys()
    wanted = {item.name: helper.get_attribute_value(item) for item in MODELS["long, sparse"].graph.node[0].attribute}
    for name, item in found.items():
        values = [text.encode() for text in item.value] if name == "nodes_modes" else list(item.value)
        assert values == list(wanted[name])


@pytest.mark.parametrize("level", ["disabled", "all"])
def test_as_native(level: str) -> None:
    x = np.random.default_rng(1).standard_normal((17, FEATURES)).astype(np.float32)
    x[3, 2] = x[5, :4] = np.nan
    options = CompileOptions(graph_optimization_level=level)
    compiled = [compile_model(m.SerializeToString(), providers=["wasm"], options=options) for m in MODELS.values()]
    plans = [(plan, {"x": x}) for plan in compiled]
    for (name, model), found in zip(MODELS.items(), run_plans(plans), strict=True):
        for ours, wanted in zip(found, run_native(model, {"x": x}), strict=True):
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(ours, wanted, err_msg=name)


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("nodes_featureids", -1, "feature -1"),
        ("nodes_featureids", 2**32, "feature 4294967296"),
        ("target_ids", -1, "target -1"),
        ("nodes_truenodeids", 999, "node 999 of tree 0"),
        ("target_nodeids", -5, "node -5 of tree"),
    ],
)
def test_what_no_ensemble_says(attribute: str, value: int, text: str) -> None:
    model = ensemble(4, 3)
    item = next(item for item in model.graph.node[0].attribute if item.name == attribute)
    item.ints[0] = value
    plan = compile_model(model.SerializeToString(), providers=["wasm"])
    (found,) = run_plans([(plan, {"x": np.zeros((2, FEATURES), np.float32)})])
    assert isinstance(found, Exception) and text in str(found)


@pytest.mark.parametrize("base", [[], [0.3], [0.3, -0.2]], ids=str)
def test_two_classes(base: list[float]) -> None:
    """Trees of two classes vote for the first, the second or both; this decides to which a base is added."""
    x = np.random.default_rng(1).standard_normal((17, FEATURES)).astype(np.float32)
    models = {}
    for voted, positive, transform in itertools.product(
        ("first", "second", "both", "mixed"), (False, True), ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")
    ):
        model = ensemble(3, 3, classes=2, labels="classlabels_int64s")
        given = {item.name: item for item in model.graph.node[0].attribute}
        ids, weights = given["class_ids"].ints, given["class_weights"].floats
        if voted != "both":
            ids[:] = {"first": [0] * len(ids), "second": [1] * len(ids), "mixed": [1] * (len(ids) - 4) + [0] * 4}[voted]
        if positive:
            weights[:] = [abs(weight) / 10 for weight in weights]
        model.graph.node[0].attribute.remove(given["base_values"])
        added = {"post_transform": transform} | ({"base_values": base} if base else {})
        model.graph.node[0].attribute.extend(helper.make_attribute(name, value) for name, value in added.items())
        models[f"{voted}, {positive=}, {transform}"] = model
    plans = [(compile_model(model.SerializeToString(), providers=["wasm"]), {"x": x}) for model in models.values()]
    for (name, model), (labels, scores) in zip(models.items(), run_plans(plans), strict=True):
        wanted_labels, wanted = run_native(model, {"x": x})
        np.testing.assert_array_equal(labels, wanted_labels, err_msg=name)
        # The second column of a probit of one score is memory that onnxruntime never wrote.
        columns = 1 if "first" in name and "PROBIT" in name and len(base) != 2 else 2
        np.testing.assert_allclose(scores[:, :columns], wanted[:, :columns], rtol=1e-4, atol=1e-5, err_msg=name)
