"""A user's program under `mypy --strict`: the package's types are complete and correct."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("mypy")

PROGRAM = """
import asyncio
import numpy as np
import py_ort


def classify(path: str, image: np.ndarray) -> list[str]:
    options = py_ort.SessionOptions()
    options.graph_optimization_level = py_ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_free_dimension_override_by_name("batch", 1)
    run_options = py_ort.RunOptions()
    run_options.logid = "one"
    with py_ort.InferenceSession(path, options, providers=["webgpu", ("wasm", {})], pages=2) as session:
        name: str = session.get_inputs()[0].name
        outputs = session.run(None, {name: image}, run_options)
        binding = session.io_binding()
        binding.bind_cpu_input(name, image)
        binding.bind_output("y", "webgpu")
        session.run_with_iobinding(binding)
        values: list[py_ort.OrtValue] = binding.get_outputs()
        shape: list[int] = values[0].shape()
        counts: dict[str, int] = session.placement().counts()
    return [*map(str, outputs), *map(str, shape), *counts]


async def later(path: str, image: np.ndarray) -> np.ndarray:
    async with await py_ort.AsyncInferenceSession.create(path, browser=py_ort.BrowserOptions(headless=True)) as session:
        try:
            (y,) = await session.run(["y"], {"x": image})
        except py_ort.exceptions.InvalidArgument as error:
            raise SystemExit(error.message) from error
    result: np.ndarray = y
    return result


if __name__ == "__main__":
    classify("m.onnx", asyncio.run(later("m.onnx", np.zeros(3, np.float32))))
"""
#: Lines that mypy must report as wrong: types that are too loose would let them pass.
MISTAKES = [
    "py_ort.InferenceSession(3)",
    "py_ort.InferenceSession('m.onnx', providers=[1])",
    "py_ort.SessionOptions().no_such_option",
    "py_ort.SessionOptions().logid = 7",
    "py_ort.no_such_name",
    "x: int = py_ort.get_available_providers()",
    "py_ort.InferenceSession('m.onnx').get_inputs()[0].shape + 1",
]


def mypy(program: str, folder) -> list[tuple[int, str]]:
    file = folder / "program.py"
    file.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", str(file)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=240).stdout
    return [(int(line), text) for line, text in re.findall(r"program\.py:(\d+): error: (.*)", out)]


def test_a_program_and_its_mistakes(tmp_path):
    wrong = PROGRAM + "\n" + "\n".join(MISTAKES) + "\n"
    first = wrong[: wrong.index(MISTAKES[0])].count("\n") + 1
    found = mypy(wrong, tmp_path)
    assert [text for line, text in found if line < first] == []
    assert {line for line, _ in found} == set(range(first, first + len(MISTAKES)))
