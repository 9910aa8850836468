"""optimum's models and transformers' pipelines return torch's results."""

from __future__ import annotations

import numpy as np
import pytest

HIDDEN, VOCABULARY = 32, 32
TEXTS = ["hello world", "the cat sat on a mat"]
TOKENS = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
#: The requested number of tokens, the likeliest each time.
GREEDY = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}


def _bert_config():
    from transformers import BertConfig

    return BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=37,
        max_position_embeddings=64,
    )


def _agree(found, wanted):
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-3, atol=1e-5)


def test_sequence_classification(provider, save):
    from optimum.onnxruntime import ORTModelForSequenceClassification
    from transformers import BertForSequenceClassification, pipeline

    torches = BertForSequenceClassification(_bert_config())
    folder, tokenizer = save(torches)
    ours = ORTModelForSequenceClassification.from_pretrained(folder, export=True, provider=provider)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    _agree(ours(**inputs).logits, torches(**inputs).logits)
    found, wanted = (pipeline("text-classification", model=m, tokenizer=tokenizer)(TEXTS) for m in (ours, torches))
    assert [one["label"] for one in found] == [one["label"] for one in wanted]
    np.testing.assert_allclose([one["score"] for one in found], [one["score"] for one in wanted], rtol=1e-4)


@pytest.mark.parametrize("io_binding", [False, True])
def test_causal_language_model(provider, io_binding, save):
    from optimum.onnxruntime import ORTModelForCausalLM
    from transformers import GPT2Config, GPT2LMHeadModel, pipeline

    sizes = {"n_embd": HIDDEN, "n_layer": 2, "n_head": 2, "n_positions": 64}
    torches = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **TOKENS, **sizes))
    folder, tokenizer = save(torches)
    ours = ORTModelForCausalLM.from_pretrained(folder, export=True, provider=provider, use_io_binding=io_binding)
    assert ours.use_io_binding is io_binding
    inputs = tokenizer(TEXTS[1:], return_tensors="pt")
    _agree(ours(**inputs).logits, torches(**inputs).logits)
    assert ours.generate(**inputs, **GREEDY).tolist() == torches.generate(**inputs, **GREEDY).tolist()
    found, wanted = (
        pipeline("text-generation", model=m, tokenizer=tokenizer)(TEXTS[0], **GREEDY) for m in (ours, torches)
    )
    assert found == wanted


def _decoder(family):
    """A decoder of a family in which heads share keys, or do not."""
    import transformers

    if family == "gpt2":
        sizes = {"n_embd": HIDDEN, "n_layer": 2, "n_head": 2, "n_positions": 64}
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=VOCABULARY, **TOKENS, **sizes))
    sizes = {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"intermediate_size": 37, "max_position_embeddings": 64}
    config = transformers.AutoConfig.for_model(family, vocab_size=VOCABULARY, **TOKENS, **sizes)
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2"])
def test_generate_of_a_session_and_of_optimum(provider, family, save, installed, tmp_path):
    """optimum's exports run in the page's loop as well, by the defaults in the files beside it."""
    import torch
    from optimum.onnxruntime import ORTModelForCausalLM

    torches = _decoder(family)
    torches.generation_config.max_new_tokens = 9
    folder, _ = save(torches)
    ours = ORTModelForCausalLM.from_pretrained(folder, export=True, provider=provider)
    prompt = torch.tensor([[5, 6, 7, 12, 9]])
    wanted = torches.generate(prompt)[0, 5:].tolist()
    assert ours.generate(prompt)[0, 5:].tolist() == wanted
    ours.save_pretrained(tmp_path / "exported")
    with installed.module.InferenceSession(tmp_path / "exported" / "model.onnx", providers=[provider]) as session:
        assert session.generate(prompt[0]).result() == wanted
        rows = torch.tensor([[5, 6, 7, 12, 9], [3, 3, 10, 11, 8]])
        batch = torches.generate(rows, max_new_tokens=6, min_new_tokens=6)[:, 5:].tolist()
        assert session.generate(rows.tolist(), max_new_tokens=6, min_new_tokens=6).result() == batch


@pytest.mark.parametrize("io_binding", [False, True])
def test_sequence_to_sequence(provider, io_binding, save):
    from optimum.onnxruntime import ORTModelForSeq2SeqLM
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": HIDDEN, "d_kv": 16, "d_ff": 37, "num_layers": 2, "num_heads": 2}
    config = T5Config(vocab_size=VOCABULARY, decoder_start_token_id=0, pad_token_id=0, eos_token_id=3, **sizes)
    torches = T5ForConditionalGeneration(config)
    folder, tokenizer = save(torches)
    ours = ORTModelForSeq2SeqLM.from_pretrained(folder, export=True, provider=provider, use_io_binding=io_binding)
    inputs = tokenizer(TEXTS, padding=True, return_tensors="pt")
    start = {"decoder_input_ids": inputs["input_ids"][:, :1]}
    _agree(ours(**inputs, **start).logits, torches(**inputs, **start).logits)
    assert ours.generate(**inputs, **GREEDY).tolist() == torches.generate(**inputs, **GREEDY).tolist()


def test_image_classification(provider, tmp_path):
    from optimum.onnxruntime import ORTModelForImageClassification
    from PIL import Image
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor, pipeline

    sizes = {"hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37}
    torches = ViTForImageClassification(ViTConfig(image_size=30, patch_size=2, **sizes)).eval()
    torches.save_pretrained(tmp_path)
    processor = ViTImageProcessor(size={"height": 30, "width": 30})
    processor.save_pretrained(tmp_path)
    ours = ORTModelForImageClassification.from_pretrained(tmp_path, export=True, provider=provider)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8))
    inputs = processor(image, return_tensors="pt")
    _agree(ours(**inputs).logits, torches(**inputs).logits)
    found, wanted = (
        pipeline("image-classification", model=m, image_processor=processor)(image) for m in (ours, torches)
    )
    assert [one["label"] for one in found] == [one["label"] for one in wanted]
