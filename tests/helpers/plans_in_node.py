"""Compiled models on the core's CPU provider in Node: a page's runs on wasm, without a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from py_ort.compiler import CompiledModel

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "wasm_build/test"))
os.environ.setdefault("PY_ORT_CORE", str(ROOT / "py_ort/assets/core.mjs"))
from one_node import CoreError, Job, run_jobs  # type: ignore[import-not-found]  # noqa: E402


def run_plans(models: Sequence[tuple[CompiledModel, Mapping[str, np.ndarray]]]) -> list[list[Any] | CoreError]:
    """Run compiled models in one Node process; return the outputs of each, or the core's error."""
    answers = run_jobs([_job(model, feeds) for model, feeds in models])
    return [answer if isinstance(answer, CoreError) else answer.outputs for answer in answers]


def _job(model: CompiledModel, feeds: Mapping[str, np.ndarray]) -> Job:
    weights = [
        {"index": i, "offset": entry.offset, "size": entry.size}
        for i, entry in enumerate(model.weights.entries)
        if entry.places & 1 and entry.tensor.dtype.name != "STRING"
    ]
    given = []
    for value in model.inputs:
        x = np.asarray(feeds[value.name])
        given.append((onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape), x))
    return Job(model.plan, model.weights.tobytes(), weights, given, len(model.outputs))
