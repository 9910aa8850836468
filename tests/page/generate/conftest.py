"""Fixtures of the tests of `generate`: a small decoder, and a session of it on each provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
import pytest
from constant_logits import SCORES, constant_logits
from language_models import language_model
from shared_browser import BROWSER

from py_ort import InferenceSession
from py_ort.testing.plugin import sessions_in


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


@pytest.fixture(scope="module")
def on_wasm() -> Iterator[InferenceSession]:
    """A decoder on the CPU alone, the same one in all tests of a module."""
    with sessions_in(BROWSER) as make:
        yield make(language_model("growing").SerializeToString(), providers=["wasm"])
