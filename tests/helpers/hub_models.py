"""Folders in the form for transformers.js: a configuration, a tokenizer, and `onnx/model.onnx`, with random weights.

The file of that name is a `.pyort` file: the library fetches bytes and passes them on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from bert import bert
from graph_writer import GraphWriter
from onnx import TensorProto, helper, numpy_helper

import py_ort

_WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat ran on under mat tree and big small very ##s ##ing ##ed ."
VOCABULARY = _WORDS.split(" ")
WIDTH, HEADS, LAYERS = 32, 4, 2
LABELS = ("NEGATIVE", "NEUTRAL", "POSITIVE")


def classifier() -> onnx.ModelProto:
    """The small BERT with a head: logits [batch, 3] of the first token."""
    model = bert(words=len(VOCABULARY))
    rng = np.random.default_rng(7)
    head = rng.standard_normal((WIDTH, len(LABELS))).astype(np.float32) / 4
    model.graph.initializer.extend([numpy_helper.from_array(head, "head"), numpy_helper.from_array(np.array(0), "cls")])
    model.graph.node.extend(
        [
            helper.make_node("Gather", ["last_hidden_state", "cls"], ["first"], axis=1),
            helper.make_node("MatMul", ["first", "head"], ["logits"]),
        ]
    )
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(LABELS)]))
    return model


def decoder() -> onnx.ModelProto:
    """Like GPT-2 with a growing cache, with exporters' names: `past_key_values.0.key`, `present.0.key`, …

    transformers.js only knows `batch_size`: any other size, here the batch, too, is 0 in its initial caches.
    """
    g = GraphWriter(seed=3)
    each = WIDTH // HEADS
    ids, mask, places = (
        g.input(name, TensorProto.INT64, ["batch_size", dim])
        for name, dim in (("input_ids", "rows"), ("attention_mask", "all"), ("position_ids", "rows"))
    )
    tokens = g.constant(np.random.default_rng(5).standard_normal((len(VOCABULARY), WIDTH)))
    x = g.op("Add", g.op("Gather", tokens, ids), g.op("Gather", g.weights(64, WIDTH), places))
    # A token sees the unmasked ones up to its own place.
    columns = g.op("Range", *(g.constant(0, np.int64), g.op("Squeeze", g.size(mask, 1)), g.constant(1, np.int64)))
    reached = g.op("LessOrEqual", columns, g.unsqueeze(places, -1))
    seen = g.op("And", reached, g.unsqueeze(g.op("Cast", mask, to=TensorProto.BOOL), 1))
    bias = g.unsqueeze(g.op("Where", seen, g.constant(0.0), g.constant(-10000.0)), 1)
    for layer in range(LAYERS):
        parts = []
        for name in ("query", "key", "value"):
            made = g.op("Reshape", g.linear(x, WIDTH, WIDTH), g.ints(0, 0, HEADS, each))
            part = g.transpose(made, 0, 2, 1, 3)
            if name != "query":
                known = ["batch", HEADS, "past_sequence_length", each]
                past = g.input(f"past_key_values.{layer}.{name}", TensorProto.FLOAT, known)
                part = g.op("Concat", past, part, axis=2)
                g.output(part, f"present.{layer}.{name}", 4)
            parts.append(part)
        query, key, value = parts
        scores = g.op("Mul", g.op("MatMul", query, g.transpose(key, 0, 1, 3, 2)), g.constant(each**-0.5))
        found = g.op("MatMul", g.op("Softmax", g.op("Add", scores, bias), axis=-1), value)
        joined = g.op("Reshape", g.transpose(found, 0, 2, 1, 3), g.ints(0, 0, WIDTH))
        x = g.op("Tanh", g.op("Add", x, g.linear(joined, WIDTH, WIDTH)))
    g.output(g.op("MatMul", x, g.op("Transpose", tokens, perm=[1, 0])), "logits", 3)
    return g.model()


def write(folder: Path, model: onnx.ModelProto, configuration: dict[str, Any], *, marks: bool) -> None:
    """Write a folder of the hub's form.

    Args:
        folder: The folder to make.
        model: The model to export.
        configuration: config.json.
        marks: True if the tokenizer puts [CLS] before and [SEP] after a text.
    """
    (folder / "onnx").mkdir(parents=True)
    py_ort.export(model.SerializeToString(), folder / "onnx/model.onnx")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    around = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]")]
    template = {
        "type": "TemplateProcessing",
        "single": [around[0], {"Sequence": {"id": "A", "type_id": 0}}, around[1]],
        "pair": [],
        "special_tokens": {
            name: {"id": name, "ids": [VOCABULARY.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")
        },
    }
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": VOCABULARY.index(name), "content": name, **flags} for name in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template if marks else None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: i for i, word in enumerate(VOCABULARY)},
        },
    }
    named = {f"{name[1:-1].lower()}_token": name for name in special}
    settings = {"tokenizer_class": "PreTrainedTokenizer", "model_max_length": 64, **named}
    for name, contents in (
        ("config.json", configuration),
        ("tokenizer.json", tokenizer),
        ("tokenizer_config.json", settings),
    ):
        (folder / name).write_text(json.dumps(contents))


def write_all(folder: Path) -> dict[str, onnx.ModelProto]:
    """Write `features`, `classes` and `words`; return their models."""
    models = {"features": bert(words=len(VOCABULARY)), "classes": classifier(), "words": decoder()}
    common = {"vocab_size": len(VOCABULARY), "pad_token_id": 0}
    encoder = {**common, "model_type": "bert", "hidden_size": WIDTH, "num_attention_heads": HEADS}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
    causal = {
        **common,
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "eos_token_id": VOCABULARY.index("[SEP]"),
    }
    write(folder / "features", models["features"], encoder, marks=True)
    write(folder / "classes", models["classes"], {**encoder, **labels}, marks=True)
    write(folder / "words", models["words"], causal, marks=False)
    return models
