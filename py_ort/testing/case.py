"""A conformance case: a model, feeds, expected outputs, and how near they must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """Differences that pass as equal. Booleans and strings must be exactly equal.

    Attributes:
        rtol, atol: |got - wanted| <= atol + rtol * |wanted| …
        either: … or, if set, |got - wanted| < atol or the larger is less than `1 + rtol` times the smaller.
        steps: Largest difference of integers, such as quantized values.
    """

    rtol: float = 1e-3
    atol: float = 1e-7
    either: bool = False
    steps: int = 0


@dataclass(frozen=True)
class DataSet:
    """Feeds and expected outputs.

    Attributes:
        feeds: By input name.
        outputs: Expected outputs; None: an optional without an element.
        names: Names of these outputs; empty: all, in the model's order.
    """

    feeds: Mapping[str, Any]
    outputs: Sequence[Any]
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Case:
    """One model with its data sets; all run on one session.

    Attributes:
        id: Stable, e.g. "test_softmax_axis_0".
        model: An ONNX file, or its bytes. External data is read where the case runs.
        tolerance: By provider; "" for all others.
        skip: The reason to skip the case, or "".
        trouble: The reason why the case cannot run, which is a failure; "".
        group: The operator that it tests; "" for models.
        compared: Arguments of `py-ort compare` for the model and its first feeds; (): they are no files.
    """

    id: str
    model: bytes | Path
    data_sets: Sequence[DataSet]
    tolerance: Mapping[str, Tolerance]
    skip: str = ""
    trouble: str = ""
    group: str = ""
    compared: tuple[str, ...] = ()

    def tolerance_on(self, provider: str) -> Tolerance:
        """Return the tolerance on a provider."""
        return self.tolerance.get(provider) or self.tolerance[""]

    def model_bytes(self) -> bytes:
        """Return the model's file."""
        return self.model if isinstance(self.model, bytes) else self.model.read_bytes()


def difference(got: Any, wanted: Any, tolerance: Tolerance) -> str:
    """Return a description of an output's difference from the expected value; "" if there is none."""
    if wanted is None:
        return "" if got is None else f"got {_kind(got)}, wanted nothing"
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"got {_kind(got)}, wanted a sequence of {len(wanted)}"
        found = (difference(a, b, tolerance) for a, b in zip(got, wanted, strict=True))
        return next((f"element {i}: {text}" for i, text in enumerate(found) if text), "")
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or got.keys() != wanted.keys():
            return f"got {_kind(got)}, wanted a map with the keys {list(wanted)}"
        found = (difference(got[key], wanted[key], tolerance) for key in wanted)
        return next((text for text in found if text), "")
    return _array_difference(np.asarray(got), np.asarray(wanted), tolerance)


def _array_difference(got: np.ndarray, wanted: np.ndarray, tolerance: Tolerance) -> str:
    if got.shape != wanted.shape:
        return f"got shape {list(got.shape)}, wanted {list(wanted.shape)}"
    if got.dtype.kind in "OUS" or wanted.dtype.kind in "OUS":
        equal = got.astype(object) == wanted.astype(object)
        return "" if np.all(equal) else f"{np.size(equal) - np.count_nonzero(equal)} strings differ"
    if got.dtype != wanted.dtype:
        return f"got {got.dtype}, wanted {wanted.dtype}"
    off: Any = None
    if wanted.dtype.kind == "b":
        wrong = got != wanted
    elif wanted.dtype.kind in "iu":
        with np.errstate(over="ignore"):
            off = np.maximum(got, wanted) - np.minimum(got, wanted)
        off = off.view(off.dtype.str.replace("i", "u"))  # a difference of signed numbers may pass the largest one
        wrong = off > tolerance.steps
    elif wanted.dtype.kind == "c":
        wrong = ~np.isclose(got, wanted, tolerance.rtol, tolerance.atol, equal_nan=True)
    else:
        wrong = ~_near(got.astype(np.float64), wanted.astype(np.float64), tolerance)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    count = f"{np.count_nonzero(wrong)} of {wrong.size} elements differ"
    text = f"{count}, first at {list(at)}: got {got[at]!s}, wanted {wanted[at]!s}"
    if off is None:
        return text
    small = wanted.dtype.itemsize == 1 and off.max() == 1
    return f"{text}; {'one step of quantization' if small else off.max()} at most"


def _near(a: np.ndarray, b: np.ndarray, tolerance: Tolerance) -> np.ndarray:
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        both = np.isfinite(a) & np.isfinite(b)
        if not tolerance.either:
            return same | (both & (np.abs(a - b) <= tolerance.atol + tolerance.rtol * np.abs(b)))
        small, large = np.minimum(np.abs(a), np.abs(b)), np.maximum(np.abs(a), np.abs(b))
        ratio = (np.sign(a) == np.sign(b)) & (large < small * (1 + tolerance.rtol))
        return same | (both & ((np.abs(a - b) < tolerance.atol) | ratio))


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a sequence of {len(value)}"
    return "nothing" if value is None else f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip()


def relative_error(got: Any, wanted: Any) -> float:
    """Return max |a-b| / (0.001 + |b|) of two values; of other types 0 if they are equal, else infinity."""
    if not isinstance(wanted, np.ndarray) or wanted.dtype.kind != "f" or not wanted.size:
        return float("inf") if difference(got, wanted, Tolerance()) else 0.0
    if not isinstance(got, np.ndarray) or got.shape != wanted.shape:
        return float("inf")
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    return float(np.max(np.abs(a - b) / (1e-3 + np.abs(b))))
