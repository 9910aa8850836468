"""Cases of com.microsoft's operators, and their comparison with native onnxruntime on a provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from array_models import model_of
from native import native_session
from onnx import helper
from same_values import assert_same
from unsigned_weights import unsigned_weights

from py_ort import InferenceSession, SessionOptions

NewSession = Callable[..., InferenceSession]
PROVIDERS = {"webgpu": ["webgpu", "wasm"], "wasm": ["wasm"]}


class Draws:
    """Arrays for one module's cases: the same ones whatever other modules are collected with it."""

    def __init__(self, seed: int = 3) -> None:
        self.rng = np.random.default_rng(seed)

    def f32(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def u8(self, *shape: int) -> np.ndarray:
        return self.rng.integers(0, 256, shape).astype(np.uint8)

    def i8(self, *shape: int) -> np.ndarray:
        return self.rng.integers(-128, 128, shape).astype(np.int8)


def step(scale: float, zero: int | None = None, kind: Any = np.uint8) -> list[np.ndarray | None]:
    """A scale and a zero point."""
    return [np.array(scale, np.float32), None if zero is None else np.array(zero, kind)]


@dataclass(frozen=True)
class Case:
    """A node, its inputs (the first `fed` ones are feeds, the others constants) and its expected result.

    `expected` is a function of the inputs, for operators without a CPU kernel in native onnxruntime.
    """

    name: str
    op: str
    inputs: list[np.ndarray | None]
    attributes: dict[str, Any]
    outputs: int = 1
    expected: Callable[..., Any] | None = None
    fed: int = 1
    tolerance: float = 2e-5

    def __str__(self) -> str:
        return f"{self.op} {self.name}".strip()

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, domain="com.microsoft", **self.attributes)
        arrays = [(name, x) for name, x in zip(names, self.inputs, strict=True) if x is not None]
        feeds, constants = dict(arrays[: self.fed]), dict(arrays[self.fed :])
        return model_of([node], feeds, outputs, constants), feeds

    def wanted(self) -> list[np.ndarray]:
        """Return native onnxruntime's outputs on one thread: operators that quantize do it for each thread's part."""
        if self.expected is not None:
            return self.expected(*self.inputs)
        model, feeds = self.model()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        source = unsigned_weights(model, feeds).SerializeToString()
        native = native_session(source, options)
        return native.run(None, feeds)


def check(case: Case, new_session: NewSession, provider: str, *, whole: bool = True) -> None:
    """Compare. `whole`: fail unless all nodes run on the provider. Integers must be equal."""
    model, feeds = case.model()
    options = SessionOptions()
    if provider == "webgpu" and whole:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = new_session(model.SerializeToString(), options, providers=PROVIDERS[provider])
    assert_same(session.run(None, feeds), list(case.wanted()), rtol=case.tolerance, atol=case.tolerance)
