"""Cases of mutated models: a seed determines the model, its changes, provider, level and feeds."""

from __future__ import annotations

import importlib.resources
import math
import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from mutations import mutated
from native_comparison import Trial

from py_ort.testing.sources.onnx_node import cases

_LARGEST = 300_000  # bytes of a model: larger ones only cost time
_MOST_ELEMENTS = 1 << 16
_LEVELS = (0, 1, 2, 3, 99, 99)


@cache
def bases() -> dict[str, tuple[bytes, list[Any]]]:
    """ONNX's node cases, each with its feeds, and small real models."""
    found = {c.id: (c.model, list(c.data_sets[0].feeds.values())) for c in cases() if len(c.model) < _LARGEST}
    for folder in ("pytorch-operator", "pytorch-converted", "simple"):
        root = Path(str(importlib.resources.files("onnx"))) / "backend/test/data" / folder
        for file in sorted(root.glob("*/model.onnx")):
            if file.stat().st_size < _LARGEST:
                found[f"{folder}/{file.parent.name}"] = file.read_bytes(), []
    return found


def trial(seed: int, provider: str, kept: tuple[int, ...] | None = None) -> tuple[str, int, Trial]:
    """Return the base's name, the number of changes, and the trial; `kept`: with these changes only."""
    decide = random.Random(f"mutated {seed}")
    name = decide.choice(sorted(bases()))
    model, feeds = bases()[name]
    steps = decide.choice([1, 1, 1, 2, 3])
    level, shapes = decide.choice(_LEVELS), decide.choice(["0", "first"])
    data = mutated(str(seed), model, steps, kept)
    return name, steps, Trial(data, feeds_for(data, feeds), provider, level, shapes)


def feeds_for(data: bytes, known: list[Any]) -> Mapping[str, Any] | None:
    """Return feeds that fit the model's inputs, the known ones if possible; None if none fit."""
    try:
        model = onnx.ModelProto.FromString(data)
    except Exception:
        return None
    constants = {tensor.name for tensor in model.graph.initializer}
    feeds: dict[str, Any] = {}
    left = list(known)
    for value in model.graph.input:
        if value.name in constants:
            continue
        given = left.pop(0) if left else None
        made = _feed(value, given)
        if made is None:
            return None
        feeds[value.name] = made
    return feeds


def _feed(value: onnx.ValueInfoProto, given: Any) -> Any:
    if not value.type.HasField("tensor_type"):
        return given if value.type.WhichOneof("value") in ("sequence_type", "optional_type") else None
    kind = value.type.tensor_type
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    except KeyError:
        return None
    dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    if isinstance(given, np.ndarray) and given.dtype == dtype and (not kind.HasField("shape") or _fits(dims, given)):
        return given
    shape = [2 if dim is None or dim < 0 else dim for dim in dims]
    if math.prod(shape) > _MOST_ELEMENTS:
        return None
    rng = np.random.default_rng(0)
    if dtype.kind == "O":
        return np.full(shape, "text", object)
    if dtype.kind in "iub":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def _fits(dims: list[int | None], array: np.ndarray) -> bool:
    return len(dims) == array.ndim and all(d is None or d == n for d, n in zip(dims, array.shape, strict=True))
