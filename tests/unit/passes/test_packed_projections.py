"""Projections of one tensor as one product, whose columns rotary embedding, attention and gates read."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import onnx
import provisional
import pytest
from graphs import check_equal, operators, parse, random_feeds
from transformer_blocks import llama

from py_ort.compiler import CompiledModel, CompileOptions, compile_model
from py_ort.ir.graph import attribute
from py_ort.providers.manifest import Manifest

_FLOATS = frozenset({"float32"})
_ANY = frozenset({"float32", "int32", "int64", "bool"})
_MORE = {
    **{("", name): (_FLOATS,) for name in ("RMSNormalization", "Cos", "Sin", "Swish", "Relu")},
    ("com.microsoft", "SkipSimplifiedLayerNormalization"): (_FLOATS,),
    ("", "RotaryEmbedding"): (_FLOATS, _FLOATS, _FLOATS, _ANY),
    ("", "Attention"): (_FLOATS, _FLOATS, _FLOATS, _ANY, _FLOATS),
}
_COLUMNS = dict.fromkeys([("", "RotaryEmbedding"), ("com.ms.internal", "ElementwiseChain")], frozenset({"columns"}))
SIZES = {"batch": 2, "sequence": 3, "past": 2, "total": 5}


@cache
def _manifests() -> dict[str, Manifest]:
    made = provisional.manifests(chains=True, columns=True)
    gpu = made["webgpu"]
    return {
        **made,
        "webgpu": dataclasses.replace(gpu, kernels={**gpu.kernels, **_MORE}, features={**gpu.features, **_COLUMNS}),
    }


def _compiled(model: onnx.ModelProto) -> CompiledModel:
    options = CompileOptions(graph_optimization_level="all")
    return compile_model(model.SerializeToString(), options=options, manifests=_manifests())


# id: (form of the block, operators that compute)
_ONE = {"MatMul": 5, "RotaryEmbedding": 1, "Attention": 1}  # angles, and all others once
BLOCKS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "groups of heads": ({}, _ONE),
    "no groups": ({"kv_heads": 4}, _ONE),
    "no cache": ({"cache": False}, _ONE),
    "half of each head": ({"partial": 4}, _ONE),
    "heads normalized apart": ({"qk_norm": "rows"}, {**_ONE, "MatMul": 7, "RotaryEmbedding": 2}),
}


@pytest.mark.parametrize(("form", "expected"), BLOCKS.values(), ids=BLOCKS)
def test_block(form: dict[str, Any], expected: dict[str, int]) -> None:
    model = llama(**form)
    feeds = random_feeds(model, {**SIZES, "total": SIZES["total"] if form.get("cache", True) else SIZES["sequence"]})
    feeds["attention_mask"][:] = 1
    result = check_equal(model, _compiled(model), feeds=feeds)
    found = operators(result)
    assert {name: found[name] for name in expected} == expected
    assert not {"Slice", "Split"} & set(found)
    chains = [node for node in result.model.graph if "x_columns" in node.attributes]
    assert {node.op_type for node in chains} >= {"ElementwiseChain"}


QKV = "q = MatMul(x, wq)  k = MatMul(x, wk)  v = MatMul(x, wv)"
ROTATE = "a = RotaryEmbedding<num_heads=2>(q, cos, sin)  b = RotaryEmbedding<num_heads=1>(k, {}, sin)"
ATTEND = "y = Attention<q_num_heads=2, kv_num_heads=1>(a, b, v)"
# id: (nodes from x and z to y, remaining products and rotations)
ROTATIONS: dict[str, tuple[str, int, int]] = {
    "together": (f"{QKV}  {ROTATE.format('cos')}  {ATTEND}", 1, 1),
    "other angles": (f"{QKV}  {ROTATE.format('other')}  {ATTEND}", 1, 2),
    "keys of another tensor": (
        f"{QKV.replace('MatMul(x, wk)', 'MatMul(z, wk)')}  {ROTATE.format('cos')}  {ATTEND}",
        2,
        2,
    ),
    "keys that are values, too": (f"{QKV}  {ROTATE.format('cos')}  {ATTEND.replace('b, v', 'b, k')}", 2, 2),
    "cut out of one product": (
        f"p = MatMul(x, wp)  q, k, v = Split<axis=-1>(p, parts)  {ROTATE.format('cos')}  {ATTEND}",
        1,
        1,
    ),
}


@pytest.mark.parametrize(("nodes", "products", "rotations"), ROTATIONS.values(), ids=ROTATIONS)
def test_rotation(nodes: str, products: int, rotations: int) -> None:
    rng = np.random.default_rng(1)
    weights = {
        "wq": (8, 16),
        "wk": (8, 8),
        "wv": (8, 8),
        "wp": (8, 32),
        "cos": (2, 3, 4),
        "sin": (2, 3, 4),
        "other": (2, 3, 4),
    }
    constants: dict[str, Any] = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in weights.items()}
    constants["parts"] = np.array([16, 8, 8])
    model = parse(
        f"g (float[2,3,8] x, float[2,3,8] z) => (float[2,3,16] y) {{ {nodes} }}",
        {name: value for name, value in constants.items() if name in nodes},
        opset=23,
    )
    result = check_equal(model, _compiled(model))
    found = operators(result)
    assert (found["MatMul"], found["RotaryEmbedding"]) == (products, rotations)
    for node in result.model.graph if rotations == 1 else ():
        if node.op_type == "RotaryEmbedding":
            assert (attribute(node, "num_heads"), list(attribute(node, "x_columns"))) == (3, [0, 24])


GATE, UP = "g = MatMul(x, wg)", "u = MatMul(x, wu)"
# id: (nodes from x and z to y, remaining products)
GATES: dict[str, tuple[str, int]] = {
    "swish": (f"{GATE}  t = Sigmoid(g)  s = Mul(g, t)  {UP}  y = Mul(s, u)", 1),
    "gelu, with biases": (f"{GATE}  h = Add(g, bias)  s = Gelu(h)  {UP}  y = Mul(u, s)", 1),
    "another tensor": (f"{GATE}  s = Tanh(g)  {UP}  y = Mul(s, u)".replace("(x, wu)", "(z, wu)"), 2),
    "read twice": (f"{GATE}  s = Tanh(g)  {UP}  m = Mul(s, u)  y = Add(m, g)", 2),
    "a sum": (f"{GATE}  s = Tanh(g)  {UP}  y = Add(s, u)", 2),
}


@pytest.mark.parametrize(("nodes", "products"), GATES.values(), ids=GATES)
def test_gate(nodes: str, products: int) -> None:
    rng = np.random.default_rng(2)
    constants = {n: rng.standard_normal((8, 12)).astype(np.float32) for n in ("wg", "wu")}
    constants["bias"] = rng.standard_normal(12).astype(np.float32)
    model = parse(
        f"g (float[n,3,8] x, float[n,3,8] z) => (float[n,3,12] y) {{ {nodes} }}",
        {name: value for name, value in constants.items() if name in nodes},
    )
    found = operators(check_equal(model, _compiled(model)))
    assert found["MatMul"] == products
    assert "Split" not in found


def test_without_columns_nothing_is_packed() -> None:
    """Slices would cost more than they save."""
    model = parse(
        f"g (float[2,3,8] x) => (float[2,3,12] y) {{ {GATE}  s = Tanh(g)  {UP}  y = Mul(s, u) }}",
        {n: np.full((8, 12), value, np.float32) for n, value in (("wg", 0.25), ("wu", 0.5))},
    )
    result = compile_model(model.SerializeToString(), manifests=provisional.manifests(chains=True))
    assert operators(check_equal(model, result))["MatMul"] == 2
