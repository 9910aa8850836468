"""Findings: made small, told and kept."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from native_comparison import Finding, Judge, Trial
from shrinking import shrink

#: The folder of models that show a fault.
FOLDER = Path(os.environ.get("PY_ORT_FUZZ_FOLDER", Path(__file__).parents[2] / "build/fuzz"))


def report(judge: Judge, trial: Trial, finding: Finding, name: str) -> str:
    """Shrink a trial with a finding, keep it, and return how to reproduce it.

    Args:
        judge: Decides if a smaller one still shows it.
        trial: The trial that showed it.
        finding: The finding.
        name: Seed and kind, to make it again.
    """

    def shows(model: bytes, feeds: Any) -> bool:
        found = judge.judge(replace(trial, model=model, feeds=feeds))
        return found is not None and found.kind == finding.kind

    model, feeds = trial.model, trial.feeds
    if feeds is not None and _is_readable(model):
        model, feeds = shrink(model, feeds, shows, judge.native)
    last = judge.judge(replace(trial, model=model, feeds=feeds)) or finding
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name.replace(' ', '-')}-{trial.provider}-{trial.level}"
    file.with_suffix(".onnx").write_bytes(model)
    arrays = {key: value for key, value in (feeds or {}).items() if isinstance(value, np.ndarray)}
    np.savez(file.with_suffix(".npz"), **arrays)
    return "\n".join(
        [
            f"{name} on {trial.provider} at level {trial.level}, shapes {trial.shapes}: {last.kind}",
            last.text,
            _printed(model),
            *(f"{key} = {np.array2string(value, threshold=40)} ({value.dtype})" for key, value in arrays.items()),
            f"model and feeds: {file}.onnx, .npz",
        ]
    )


def _is_readable(model: bytes) -> bool:
    try:
        return len(onnx.ModelProto.FromString(model).graph.node) > 0
    except Exception:
        return False


def _printed(model: bytes) -> str:
    try:
        return onnx.printer.to_text(onnx.ModelProto.FromString(model))[:4000]
    except Exception as e:
        return f"(no text: {e})"
