"""Libraries on top of onnxruntime, unedited, with py_ort instead; `make libraries` installs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shared_browser import BROWSER

import py_ort

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # all models are made here
_WORDS = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("hello", "world", "the", "cat", "sat", "on", "mat", "a"),
)
PROVIDERS = {"wasm": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [
        name for name in ("torch", "transformers", "optimum", "sentence_transformers") if find_spec(name) is None
    ]
    here = str(Path(__file__).parent)
    for item in items:
        if missing and str(item.path).startswith(here):
            item.add_marker(pytest.mark.skip(reason=f"{', '.join(missing)}: make libraries installs them"))


@pytest.fixture(scope="session")
def installed() -> Iterator[py_ort.compat.Installed]:
    """The libraries are imported after this, and keep the module that they find."""
    with py_ort.install_as_onnxruntime(browser=BROWSER) as installed:
        yield installed


@pytest.fixture(params=PROVIDERS)
def provider(
    request: pytest.FixtureRequest, installed: py_ort.compat.Installed, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """onnxruntime's name of a provider; the last session has nodes there (exporters try models on the CPU first)."""
    import torch

    torch.manual_seed(0)
    counts = []
    session_class = installed.module.InferenceSession
    make = session_class.__init__

    def make_and_count(session: py_ort.InferenceSession, *arguments: Any, **keywords: Any) -> None:
        make(session, *arguments, **keywords)
        counts.append(session.placement().counts().get(request.param, 0))

    monkeypatch.setattr(session_class, "__init__", make_and_count)
    yield PROVIDERS[request.param]
    assert counts and counts[-1], "the last session has nodes on the provider"


@pytest.fixture
def save(tmp_path: Path) -> Any:
    """Write a model of transformers and its tokenizer into a folder; the function returns folder and tokenizer."""

    def save(model: Any) -> tuple[Path, PreTrainedTokenizerFast]:
        model.eval().save_pretrained(tmp_path)
        words = tokenizer()
        words.save_pretrained(tmp_path)
        return tmp_path, words

    return save


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(word, _WORDS.index(word)) for word in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ends
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_input_names=["input_ids", "attention_mask"],
        **{f"{what}_token": f"[{what.upper()}]" for what in ("pad", "unk", "cls", "sep", "mask")},
        bos_token="[CLS]",
        eos_token="[SEP]",
    )
