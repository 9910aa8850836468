"""Folders of onnxruntime-genai and of optimum: files next to a model contain its names and options for drawing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from language_models import language_model, native_greedy

from py_ort import InferenceSession
from py_ort.exceptions import InvalidArgument

PROMPT = [3, 1, 4, 1, 5]


def write(folder: Path, name: str, config: Any) -> None:
    (folder / name).write_text(config if isinstance(config, str) else json.dumps(config))


def genai(folder: Path, model: onnx.ModelProto, **search: Any) -> None:
    """In the model builder's form, with other names of inputs."""
    text = model.SerializeToString().replace(b"input_ids", b"token_in_").replace(b"present.", b"becomes.")
    (folder / "decoder.onnx").write_bytes(text)
    decoder = {
        "filename": "decoder.onnx",
        "num_hidden_layers": 2,
        "inputs": {
            "input_ids": "token_in_",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "becomes.%d.key",
            "present_value_names": "becomes.%d.value",
        },
    }
    model_part = {"type": "llama", "context_length": 40, "eos_token_id": [46, 47], "decoder": decoder}
    write(folder, "genai_config.json", {"model": model_part, "search": {"do_sample": False, "top_k": 50, **search}})


def test_a_folder_of_genai(tmp_path, provider, new_session):
    model = language_model("grouped")
    genai(tmp_path, model, max_length=12)
    wanted = native_greedy(model, PROMPT, 7)
    session = new_session(tmp_path, providers=[provider])
    generation = session.generate(PROMPT, eos_token_id=[])
    assert generation.result() == wanted and generation.finish_reason == "length"
    with pytest.raises(InvalidArgument, match="takes 40 in all"):
        session.generate(PROMPT, max_new_tokens=36).result()


def test_what_the_configuration_says_is_the_default(tmp_path, new_session):
    model = language_model("grouped")
    genai(tmp_path, model, do_sample=True, temperature=2.0, repetition_penalty=1.1, min_length=8)
    session = new_session(str(tmp_path), providers=["wasm"])
    same = {"do_sample": True, "temperature": 2.0, "repetition_penalty": 1.1, "min_new_tokens": 3, "top_k": 50}
    first = session.generate(PROMPT, seed=5).result()
    assert first == session.generate(PROMPT, seed=5, eos_token_id=[46, 47], max_new_tokens=35, **same).result()
    assert len(first) == 35 or first[-1] in (46, 47)
    greedy = session.generate(PROMPT, do_sample=False, repetition_penalty=1.0, max_new_tokens=3)
    assert greedy.result() == native_greedy(model, PROMPT, 3)


def test_a_folder_of_optimum(tmp_path, new_session):
    model = language_model("growing")
    onnx.save(model, tmp_path / "model.onnx")
    wanted = native_greedy(model, PROMPT, 6)
    write(tmp_path, "generation_config.json", {"eos_token_id": wanted[3], "max_new_tokens": 6, "pad_token_id": 0})
    write(tmp_path, "config.json", {"eos_token_id": 1, "n_positions": 64})
    session = new_session(tmp_path / "model.onnx", providers=["wasm"])
    generation = session.generate(PROMPT)
    assert generation.result() == wanted[: wanted.index(wanted[3]) + 1] and generation.finish_reason == "eos"
    with pytest.raises(InvalidArgument, match="takes 64 in all"):
        session.generate([1] * 70).result()


@pytest.mark.parametrize("name", ["genai_config.json", "generation_config.json"])
def test_what_is_off_and_what_is_not_done(tmp_path, name, new_session, caplog):
    """0 means off, as in onnxruntime-genai; and unsupported options are named."""
    model = language_model("growing")
    onnx.save(model, tmp_path / "model.onnx")
    said = {"temperature": 0.0, "top_p": 0.0, "repetition_penalty": 0, "num_beams": 1, "min_p": 0.1}
    said |= {"typical_p": None, "max_length": 8}
    write(tmp_path, name, {"search": said} if name.startswith("genai") else said)
    found = new_session(tmp_path / "model.onnx", providers=["wasm"]).generate(PROMPT).result()
    assert found == native_greedy(model, PROMPT, 3)
    assert [r.getMessage() for r in caplog.records if "generate" in r.getMessage()] == [
        "generate does not do what the model's files say: min_p=0.1"
    ]


@pytest.mark.parametrize(
    ("config", "says"),
    [("{", "cannot be read as JSON"), ("[]", "not an object"), ({"model": {}}, r"model\.decoder\.filename")],
    ids=["damaged", "a list", "without a file"],
)
def test_damaged_configurations(tmp_path, config, says):
    write(tmp_path, "genai_config.json", config)
    with pytest.raises(InvalidArgument, match=says):
        InferenceSession(tmp_path)
