"""`generate` finds the same sequences as transformers' own, over the same logits: native onnxruntime's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from language_models import VOCABULARY, language_model
from native_beams import logits_behind

from py_ort import InferenceSession

pytestmark = pytest.mark.browser
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"length_penalty": 0.0, "eos_token_id": [44, 7]},
    {"length_penalty": 2.0, "early_stopping": "never", "eos_token_id": [28]},
    {"length_penalty": -1.0, "early_stopping": True, "eos_token_id": [45, 12]},
    {"repetition_penalty": 1.4, "eos_token_id": [44]},
    {"min_new_tokens": 3, "eos_token_id": [44, 28]},
]


def by_transformers(kind: str, settings: dict[str, Any], beams: int) -> tuple[list[list[int]], list[float]]:
    """All sequences and their scores."""
    import torch
    from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    native = onnxruntime.InferenceSession(language_model(kind).SerializeToString(), providers=["CPUExecutionProvider"])

    class Native(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
        config_class = PretrainedConfig
        main_input_name = "input_ids"

        def __init__(self, config: PretrainedConfig) -> None:
            super().__init__(config)
            self.nothing = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: torch.Tensor, **_: Any) -> CausalLMOutput:
            logits = np.stack([logits_behind(native, row.tolist()) for row in input_ids])
            return CausalLMOutput(logits=torch.tensor(logits[:, None], dtype=torch.float32))

        def prepare_inputs_for_generation(self, input_ids: torch.Tensor, **_: Any) -> dict[str, torch.Tensor]:
            return {"input_ids": input_ids}

    found = Native(PretrainedConfig(vocab_size=VOCABULARY)).generate(
        torch.tensor([PROMPT]),
        max_new_tokens=8,
        num_beams=beams,
        num_return_sequences=beams,
        do_sample=False,
        use_cache=False,
        pad_token_id=VOCABULARY - 1,
        return_dict_in_generate=True,
        output_scores=True,
        **settings,
    )
    ends = settings.get("eos_token_id", [])
    rows = found.sequences[:, len(PROMPT) :].tolist()
    return [up_to(row, ends) for row in rows], found.sequences_scores.tolist()


def up_to(row: list[int], ends: Sequence[int]) -> list[int]:
    """Without the row's padding."""
    return row[: next((i + 1 for i, token in enumerate(row) if token in ends), len(row))]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(("kind", "name"), [("growing", "wasm"), ("grouped", "webgpu")])
def test_beam_search(
    kind: str, name: str, settings: dict[str, Any], new_session: Callable[..., InferenceSession]
) -> None:
    session = new_session(language_model(kind).SerializeToString(), providers=[name])
    for beams in (2, 5):
        found = session.generate(PROMPT, max_new_tokens=8, num_beams=beams, num_return_sequences=beams, **settings)
        tokens, scores = by_transformers(kind, settings, beams)
        assert found.result() == tokens
        np.testing.assert_allclose(found.info["scores"], scores, rtol=1e-4, atol=1e-4)
