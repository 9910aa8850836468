"""Fixtures of the tests of `generate`: a small decoder, and a session of it on each provider."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from constant_logits import SCORES, constant_logits
from language_models import language_model

from py_ort import InferenceSession


@pytest.fixture(params=["wasm", "webgpu"])
def provider(request: pytest.FixtureRequest) -> str:
    """Each provider in turn."""
    return request.param


@pytest.fixture
def kind() -> str:
    """The decoder's form; tests of both have it as a parameter."""
    return "growing"


@pytest.fixture
def model(kind: str) -> onnx.ModelProto:
    """The decoder."""
    return language_model(kind)


@pytest.fixture
def session(model: onnx.ModelProto, provider: str, new_session: Callable[..., InferenceSession]) -> InferenceSession:
    """The decoder on the provider."""
    return new_session(model, providers=[provider])


@pytest.fixture
def same_scores(provider: str, new_session: Callable[..., InferenceSession]) -> InferenceSession:
    """A decoder with the logits SCORES on the provider."""
    return new_session(constant_logits(*SCORES), providers=[provider])


@pytest.fixture
def on_wasm(model: onnx.ModelProto, new_session: Callable[..., InferenceSession]) -> InferenceSession:
    """The decoder on the CPU alone."""
    return new_session(model, providers=["wasm"])
