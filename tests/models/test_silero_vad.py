"""Silero's voice activity detection in all forms of its package, chunk by chunk, compared with native onnxruntime."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from native import native_session

SPEC = importlib.util.find_spec("silero_vad")
FOLDER = Path(next(iter(SPEC.submodule_search_locations or ["."])) if SPEC else ".") / "data"
ONLY_16K = ("silero_vad_16k_op15", "silero_vad_16k_sequence", "silero_vad_half", "silero_vad_openvino_16k")
MODELS = [*ONLY_16K, "silero_vad", "silero_vad_op18_ifless"]
CASES = [
    *(("wasm", model, 16000) for model in MODELS),
    *(("wasm", model, 8000) for model in MODELS if model not in ONLY_16K),
    # One with control flow, and one without.
    *(("webgpu", model, 16000) for model in ("silero_vad", "silero_vad_16k_sequence")),
]

pytestmark = pytest.mark.skipif(SPEC is None, reason="needs pip install --no-deps silero-vad")


def sound(rate: int, start: int, count: int) -> np.ndarray:
    """A swelling hum, with noise."""
    t = (np.arange(count) + start) / rate
    hum = 0.3 * np.sin(2 * np.pi * 180 * t) * (1 + 0.5 * np.sin(2 * np.pi * 4 * t))
    return (hum + 0.05 * np.random.default_rng(start).standard_normal(count)).astype(np.float32)


def feeds_of(inputs: dict[str, list], rate: int, chunk: int, states: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The feeds of a model: a chunk with the end of the previous one, the rate (a scalar, or in a list), its state."""
    samples = 576 if rate == 16000 else 288
    frames = 3 if "h" in inputs else 1
    first = [sound(rate, (chunk * frames + i) * samples, samples) for i in range(frames)]
    known = {"input": np.stack(first), "sr": np.full([1] * (chunk % 2), rate), **states}
    return {name: known[name] for name in inputs}


@pytest.mark.parametrize(("provider", "model", "rate"), CASES, ids=lambda value: str(value))
def test_equals_onnxruntime(new_session, provider: str, model: str, rate: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    path = FOLDER / f"{model}.onnx"
    native = native_session(path, options)
    session = new_session(path, providers=[provider])
    inputs = {arg.name: arg.shape for arg in native.get_inputs()}
    states = {"state": np.zeros((2, 1, 128), np.float32)}
    states |= {name: np.zeros((1, 1, 128), np.float32) for name in ("h", "c")}
    for chunk in range(3):
        feeds = feeds_of(inputs, rate, chunk, states)
        wanted, found = native.run(None, feeds), session.run(None, feeds)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3, err_msg=f"chunk {chunk}")
        states = {"state": wanted[1]} if "h" not in inputs else {"h": wanted[1], "c": wanted[2]}
        assert max(np.abs(state).max() for state in states.values()) > 0.01, "the state says nothing"
