"""Blocks of transformers in exporters' forms: the remaining nodes, on both providers, and the same results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import onnx
import provisional
import pytest
from decoder_blocks import bloom, falcon, gpt2, gptj, opset23, t5, whisper
from encoder_blocks import bert, clip, vit
from graphs import check_equal, operators, random_feeds
from transformer_blocks import llama

from py_ort.compiler import CompiledModel, CompileOptions, compile_model
from py_ort.compiler.passes.attention.attention import Attention
from py_ort.compiler.passes.attention.rotary_embedding import RotaryEmbedding
from py_ort.compiler.passes.clean.sizes import Sizes
from py_ort.compiler.passes.clean.stacked_transposes import stacked_transposes
from py_ort.compiler.passes.fuse.flat_products import flat_products
from py_ort.compiler.passes.fuse.gelu import gelu
from py_ort.compiler.passes.fuse.hard_swish import hard_swish
from py_ort.compiler.passes.norms.instance_norm import instance_norm
from py_ort.compiler.passes.norms.layer_norm import layer_norm
from py_ort.compiler.passes.norms.rms_norm import rms_norm
from py_ort.compiler.passes.norms.skip_norm import skip_norm
from py_ort.compiler.passes.pass_base import count_nodes, run_passes
from py_ort.compiler.target import Target
from py_ort.providers.manifest import Manifest

#: Operators that transformers need besides those of the small manifests, on both providers.
_FLOATS = frozenset({"float32", "float16"})
_ANY = frozenset({"float32", "float16", "int32", "int64", "bool"})
_MORE = {
    **{("", name): (_FLOATS,) for name in ("RMSNormalization", "Cos", "Sin", "Swish", "QuickGelu")},
    **{("com.microsoft", name): (_FLOATS,) for name in ("SkipSimplifiedLayerNormalization",)},
    ("", "RotaryEmbedding"): (_FLOATS, _FLOATS, _FLOATS, _ANY),
    ("com.microsoft", "RotaryEmbedding"): (_FLOATS, _ANY, _FLOATS, _FLOATS),
    ("", "Attention"): (_FLOATS, _FLOATS, _FLOATS, _ANY, _FLOATS),
}
#: Shape arithmetic and nodes that make masks: any number of these.
_SMALL = {
    *("Shape", "Gather", "Unsqueeze", "Squeeze", "Concat", "Equal", "Where", "Expand", "Cast", "Range", "Greater"),
    *("Not", "And", "Add", "Sub", "Mul", "Slice", "Split", "Clip", "Cos", "Sin", "Reshape", "Transpose"),
    *("ElementwiseChain", "Max", "Sigmoid"),
}
SIZES = {"batch": 2, "sequence": 3, "past": 2, "frames": 4, "total": 5}


@cache
def _manifests() -> dict[str, Manifest]:
    small = provisional.manifests(chains=True)
    return {name: dataclasses.replace(each, kernels={**each.kernels, **_MORE}) for name, each in small.items()}


def _compiled(model: onnx.ModelProto, *providers: str, **options: Any) -> CompiledModel:
    chosen = CompileOptions(**{"graph_optimization_level": "all", **options})
    return compile_model(
        model.SerializeToString(), providers=providers or ("webgpu", "wasm"), options=chosen, manifests=_manifests()
    )


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    names = {value.name for value in model.graph.input}
    total = SIZES["total"] if "past_key" in names else SIZES["sequence"]
    feeds = random_feeds(model, {**SIZES, "total": total})
    if "position_ids" in feeds:
        feeds["position_ids"] = np.array([[2, 3, 4], [1, 2, 4]], np.int64)
    if "attention_mask" in feeds:  # the first sequence's end is padded
        feeds["attention_mask"][:] = 1
        feeds["attention_mask"][0, -1] = 0
    return feeds


_LLAMA = {
    "MatMul": 8,
    "RMSNormalization": 1,
    "SkipSimplifiedLayerNormalization": 1,
    "RotaryEmbedding": 2,
    "Attention": 1,
}
_BERT = {"MatMul": 4, "Attention": 1, "SkipLayerNormalization": 2}
_GPT2 = {"MatMul": 4, "Attention": 1, "LayerNormalization": 1, "SkipLayerNormalization": 1}
_GPTJ = {"MatMul": 4, "RotaryEmbedding": 2, "Attention": 1}
_WHISPER = {"MatMul": 6, "Attention": 2, "LayerNormalization": 1, "SkipLayerNormalization": 2}
_VIT = {"MatMul": 4, "Attention": 1, "SkipLayerNormalization": 2, "nhwc.Conv": 1}
_OPSET23 = {"MatMul": 5, "RMSNormalization": 1, "RotaryEmbedding": 2, "Attention": 1}
_CLIP = {"MatMul": 4, "Attention": 1, "LayerNormalization": 1, "SkipLayerNormalization": 1}
_T5 = {"MatMul": 4, "Attention": 1, "RMSNormalization": 1, "SkipSimplifiedLayerNormalization": 1}
Make = Callable[[], onnx.ModelProto]
# id: (the model, its computing operators; attributes of its first Attention, its number of inputs)
BLOCKS: dict[str, tuple[Make, dict[str, int], dict[str, Any], int]] = {
    "llama": (llama, _LLAMA, {"kv_num_heads": 2}, 6),
    "llama, split by torch.export": (partial(llama, rotary="split"), _LLAMA, {"kv_num_heads": 2}, 6),
    "llama, tables of angles": (partial(llama, rotary="table"), {**_LLAMA, "MatMul": 7}, {"kv_num_heads": 2}, 6),
    "llama, without a cache": (partial(llama, cache=False), _LLAMA, {"kv_num_heads": 2}, 4),
    "llama, no groups": (partial(llama, kv_heads=4), _LLAMA, {"kv_num_heads": 4}, 6),
    "llama, one head of keys": (partial(llama, kv_heads=1), _LLAMA, {"kv_num_heads": 1}, 6),
    "llama, no mask": (partial(llama, mask=False), _LLAMA, {"is_causal": 0}, 6),
    "qwen, normalized heads": (partial(llama, qk_norm="rows"), {**_LLAMA, "RMSNormalization": 3}, {}, 6),
    "gemma, normalized heads": (
        partial(llama, qk_norm="heads"),
        {**_LLAMA, "RMSNormalization": 3},
        {"kv_num_heads": 2},
        6,
    ),
    "falcon, one head of keys": (falcon, {"MatMul": 2, "Attention": 1}, {"kv_num_heads": 1}, 3),
    "gemma, capped": (partial(llama, softcap=5.0), _LLAMA, {"softcap": 5.0}, 6),
    "phi, half of a head turns": (partial(llama, partial=4), _LLAMA, {}, 6),
    "gpt2": (gpt2, _GPT2, {"is_causal": 1}, 6),
    "gpt2, without a cache": (partial(gpt2, cache=False), _GPT2, {"is_causal": 1}, 3),
    "gpt2, padded": (partial(gpt2, padded=True), _GPT2, {"is_causal": 0}, 6),
    "gptj": (gptj, _GPTJ, {"is_causal": 1}, 3),
    "gptj, whole heads": (partial(gptj, rotary_size=8), _GPTJ, {"is_causal": 1}, 3),
    "bloom": (bloom, {"MatMul": 2, "Attention": 1, "CumSum": 1}, {"is_causal": 0}, 6),
    "opt, stacked scores": (
        partial(bloom, floor=True),
        {"MatMul": 2, "Attention": 1, "CumSum": 1},
        {"is_causal": 0},
        6,
    ),
    "t5": (t5, _T5, {"scale": 1.0}, 4),
    "whisper": (whisper, _WHISPER, {"is_causal": 0}, 6),
    "whisper, first words": (partial(whisper, masked=False), _WHISPER, {"is_causal": 0}, 6),
    "opset 23": (opset23, _OPSET23, {"kv_num_heads": 2}, 6),
    "opset 23, causal": (partial(opset23, cache=False), _OPSET23, {"is_causal": 1, "kv_num_heads": 2}, 3),
    "bert of TorchScript": (bert, _BERT, {}, 4),
    "bert of torch.export": (partial(bert, form="export"), _BERT, {}, 4),
    "vit of TorchScript": (vit, _VIT, {}, 3),
    "vit of torch.export": (partial(vit, form="export"), _VIT, {}, 3),
    "clip": (clip, _CLIP, {"is_causal": 1}, 3),
}


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(("make", "expected", "attributes", "inputs"), BLOCKS.values(), ids=BLOCKS)
def test_block(make: Make, expected: dict[str, int], attributes: dict[str, Any], inputs: int, provider: str) -> None:
    model = make()
    result = _compiled(model, *dict.fromkeys((provider, "wasm")))
    check_equal(model, result, feeds=_feeds(model))
    found = operators(result)
    assert {name: found.get(name, 0) for name in {*expected, *found} - _SMALL} == expected
    attention = next(node for node in result.model.graph if node.op_type == "Attention")
    given = {name: item.value for name, item in attention.attributes.items()}
    assert {name: given[name] for name in attributes} == attributes
    assert len(attention.inputs) == inputs


def test_each_past_has_a_name_of_its_own_for_its_length() -> None:
    """torch.export gives each input its own symbols, although there are as many keys as values."""
    model = llama()
    value = next(value for value in model.graph.input if value.name == "past_value")
    value.type.tensor_type.shape.dim[2].dim_param = "past_of_values"
    result = check_equal(model, _compiled(model), feeds=_feeds(llama()))
    (attention,) = (node for node in result.model.graph if node.op_type == "Attention")
    assert len(attention.inputs) == 6


def test_names_of_sizes_or_numbers() -> None:
    """With known sizes no shape arithmetic remains."""
    model = llama()
    sizes = {name: SIZES[name] for name in ("batch", "sequence", "past", "total")}
    result = _compiled(model, free_dimension_overrides=sizes)
    check_equal(model, result, feeds=_feeds(model))
    assert not {"Shape", "Range", "Concat", "Equal", "Gather"} & set(operators(result))


@pytest.mark.parametrize("make", [llama, gpt2, gptj, t5, whisper, opset23, vit, clip])
def test_a_second_time_nothing_changes(make: Make) -> None:
    """Each pass finds everything at once, and reports when there is nothing."""

    target = Target.of(["webgpu", "wasm"], _manifests())
    level = _compiled(make(), graph_optimization_level="extended").model
    again = [
        *(RotaryEmbedding(target), Attention(target), Sizes(), stacked_transposes, flat_products),
        *(gelu, hard_swish, instance_norm(target), layer_norm, rms_norm(target), skip_norm(target)),
    ]
    nodes = count_nodes(level)
    assert {report.name: report.changes for report in run_passes(level, again) if report.changes} == {}
    assert count_nodes(level) == nodes
