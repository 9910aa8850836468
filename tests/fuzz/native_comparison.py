"""Judges py_ort's result of a model by native onnxruntime's, if there is only one right answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from child import Child, ChildLost
from known import lenient
from onnx import numpy_helper
from runs import Outcome, native, ours

from py_ort.testing.case import Tolerance, difference

#: For float32 and narrower types.
_RELATIVE = {"float16": 2e-2, "bfloat16": 1e-1}
_RANDOM = {
    "Dropout",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
}


@dataclass(frozen=True)
class Trial:
    """A model with its feeds, to be run on a provider at a level.

    Attributes:
        model: The file's bytes, even if they are not a model.
        feeds: None: it is only loaded.
        shapes: Selects a plan for the feeds' shapes; see `runs.ours`.
        again: True to run it once more in the same session, with other feeds.
    """

    model: bytes
    feeds: Mapping[str, Any] | None
    provider: str
    level: int
    shapes: str = "first"
    again: bool = False

    @property
    def others(self) -> Mapping[str, Any] | None:
        """The feeds of the run after those with `feeds`: the same elements in other places."""
        return {name: _moved(value) for name, value in self.feeds.items()} if self.again and self.feeds else None


@dataclass(frozen=True)
class Finding:
    """A fault.

    Attributes:
        kind: Kind and place; equal for what is probably the same fault.
        text: All that is known.
    """

    kind: str
    text: str


class Judge:
    """Runs both, each in a separate process.

    Args:
        valid: Models are known to be valid: a refusal is a fault.
        strict: Operands may not fit: running what native refuses is a fault.
    """

    def __init__(self, *, valid: bool, strict: bool = False) -> None:
        self._valid, self._strict = valid, strict
        self.native, self.ours = Child(native, 20), Child(ours, 120)
        #: Counts of results.
        self.counts: dict[str, int] = {}

    def judge(self, trial: Trial) -> Finding | None:
        """Run a trial."""
        found = self._ours(trial)
        self._count(found.status)
        if found.status == "replayed otherwise" and _has_chance(trial.model):
            return None
        if found.is_fault:
            lines = [line.partition("\n")[0][:60] for line in found.log]
            return Finding(f"{found.status} {found.stage} {found.error} {found.place} {' '.join(lines)}", str(found))
        if found.status == "refused" and not self._valid:
            return None
        if trial.feeds is None or _has_chance(trial.model):
            return None
        feeds = trial.others if found.status == "refused" and found.stage == "again" else trial.feeds
        wanted = self._native(trial.model, feeds or trial.feeds)
        if self._strict and wanted.status == "refused" and not lenient(wanted.text, trial.provider):
            shapes = [getattr(output, "shape", None) for output in found.outputs]
            if all(shape is not None and 0 in shape for shape in shapes):
                return None  # a result without elements is always right
            return Finding(f"silent {wanted.text}", f"native: {wanted.text}\nours: {shapes}")
        if wanted.status != "ok" or not _finite(wanted.outputs):
            return None
        if found.status == "refused":
            return Finding(f"refused {found.error} {found.place}", str(found))
        text = _differences(found.outputs, wanted.outputs)
        if text and self._has_one_answer(trial, wanted.outputs):
            return Finding("differs", text)
        return self._again(trial, found)

    def _again(self, trial: Trial, found: Outcome) -> Finding | None:
        """Judge the run with other feeds."""
        if trial.others is None:
            return None
        wanted = self._native(trial.model, trial.others)
        if wanted.status != "ok" or not _finite(wanted.outputs):
            return None
        text = _differences(found.others, wanted.outputs)
        if not text or not self._has_one_answer(replace(trial, feeds=trial.others), wanted.outputs):
            return None
        return Finding("differs", f"with other feeds, {text}")

    def close(self) -> None:
        """End both."""
        self.native.close()
        self.ours.close()

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _ours(self, trial: Trial) -> Outcome:
        try:
            return self.ours.ask(trial.model, trial.feeds, trial.provider, trial.level, trial.shapes, trial.others)
        except ChildLost as e:
            return Outcome("late", "", "ChildLost", text=str(e))

    def _native(self, model: bytes, feeds: Mapping[str, Any], level: int = 0) -> Outcome:
        try:
            return self.native.ask(model, dict(feeds), level)
        except ChildLost as e:
            return Outcome("lost", text=str(e))

    def _has_one_answer(self, trial: Trial, wanted: Sequence[Any]) -> bool:
        """Return True if native results stay the same when it optimizes, and when all numbers change a little."""
        assert trial.feeds is not None
        rng = np.random.default_rng(0)
        others = [self._native(trial.model, trial.feeds, 99)]
        for _ in range(3):
            feeds = {name: _shaken(value, rng) for name, value in trial.feeds.items()}
            others.append(self._native(_shaken_model(trial.model, rng), feeds))
        return all(other.status == "ok" and not _differences(other.outputs, wanted, 0.3) for other in others)


def _differences(found: Sequence[Any], wanted: Sequence[Any], strictness: float = 1.0) -> str:
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if text := difference(a, b, _tolerance(b, strictness)):
            return f"output {i}: {text}"
    return ""


def _tolerance(wanted: Any, strictness: float) -> Tolerance:
    arrays = [item for item in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(item, np.ndarray)]
    floats = [a.astype(np.float64) for a in arrays if a.size and (a.dtype.kind == "f" or a.dtype.name == "bfloat16")]
    largest = max((float(np.abs(a).max()) for a in floats), default=0.0)
    relative = max((_RELATIVE.get(a.dtype.name, 1e-3) for a in arrays), default=1e-3) * strictness
    return Tolerance(relative, relative * max(largest, 1e-3))


def _finite(outputs: Sequence[Any]) -> bool:
    for value in outputs:
        if isinstance(value, (list, tuple)):
            if not _finite(value):
                return False
        elif isinstance(value, np.ndarray) and (value.dtype.kind in "fc" or value.dtype.name == "bfloat16"):
            wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
            if not np.isfinite(wide).all() or (wide.size and np.abs(wide).max() > 1e30):
                return False
    return True


def _has_chance(model: bytes) -> bool:
    return any(name.encode() in model for name in _RANDOM)


def _moved(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        return value
    # A single element cannot move.
    other = value * value.dtype.type(-0.75) if value.size == 1 and value.dtype.kind == "f" else np.roll(value, 1)
    return np.asarray(other, value.dtype)


def _shaken(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, (list, tuple)):
        return [_shaken(item, rng) for item in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    step = {2: 1e-3, 4: 1e-6}.get(value.dtype.itemsize, 1e-6)
    shaken = value * (1 + step * rng.uniform(-1, 1, value.shape)) + step * 0.1 * rng.uniform(-1, 1, value.shape)
    return np.asarray(shaken).astype(value.dtype)


def _shaken_model(model: bytes, rng: np.random.Generator) -> bytes:
    proto = onnx.ModelProto.FromString(model)
    for tensor in proto.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
            try:
                tensor.CopyFrom(numpy_helper.from_array(_shaken(numpy_helper.to_array(tensor), rng), tensor.name))
            except Exception:
                continue  # damaged
    return proto.SerializeToString()
