"""examples/generate prints native onnxruntime's result."""

import os
import subprocess
import sys
from pathlib import Path

import onnx
from language_models import language_model, native_greedy

EXAMPLE = Path(__file__).parents[3] / "examples/generate/generate.py"


def test_the_example(tmp_path):
    model = language_model("grouped")
    onnx.save(model, tmp_path / "model.onnx")
    command = [sys.executable, EXAMPLE, tmp_path, "3 1 4 1 5", "--provider", "wasm", "--tokens", "6"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=200).stdout
    words, _, account = printed.partition("\n")
    assert [int(word) for word in words.split()] == native_greedy(model, [3, 1, 4, 1, 5], 6)
    assert "6 tokens in " in account and account.rstrip().endswith("length")
