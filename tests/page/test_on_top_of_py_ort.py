"""The Python code of the package onnxruntime, imported on top of py_ort."""

import importlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from array_models import random_floats
from shared_browser import BROWSER
from text_form import parse

import py_ort

pytest.importorskip("onnxruntime")
MODULES = [
    *("backend", "backend.backend", "datasets", "quantization", "quantization.matmul_nbits_quantizer"),
    *("quantization.preprocess", "tools", "tools.symbolic_shape_infer", "transformers", "transformers.optimizer"),
]


@pytest.fixture
def installed():
    with py_ort.install_as_onnxruntime(["wasm"], browser=BROWSER) as installed:
        yield installed


@pytest.mark.parametrize("name", MODULES)
def test_folders_of_the_installed_package(name, installed):
    module = importlib.import_module(f"onnxruntime.{name}")
    assert module.__file__
    assert importlib.import_module("onnxruntime") is installed.module


def test_an_example_runs(installed):
    import onnxruntime
    from onnxruntime.datasets import get_example

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    session = onnxruntime.InferenceSession(get_example("mul_1.onnx"))
    np.testing.assert_array_equal(session.run(None, {"X": x})[0], x * np.arange(1, 7, dtype=np.float32).reshape(3, 2))
    assert installed.sessions == [session] and isinstance(session, py_ort.InferenceSession)


def test_the_backend_takes_paths_bytes_and_sessions(installed):
    from onnxruntime import InferenceSession, backend
    from onnxruntime.datasets import get_example

    path = get_example("mul_1.onnx")
    x = np.ones((3, 2), np.float32)
    for model in (path, Path(path).read_bytes(), InferenceSession(path)):
        (y,) = backend.prepare(model, "CPU").run([x])
        np.testing.assert_array_equal(y, np.arange(1, 7, dtype=np.float32).reshape(3, 2))
    np.testing.assert_array_equal(backend.run(path, [x])[0], y)
    assert backend.supports_device("CPU") and not backend.supports_device("TPU")


def _product(path):
    weights = random_floats(1, w=(64, 8))
    onnx.save(parse("g (float[N,64] x) => (float[N,8] y) { y = MatMul(x, w) }", weights, 17), path)
    return weights["w"]


def test_static_quantization_calibrates_in_the_browser(installed, tmp_path):
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    w = _product(tmp_path / "float.onnx")
    x = np.random.default_rng(2).normal(size=(16, 64)).astype(np.float32)

    class Reader(CalibrationDataReader):
        left = iter([{"x": x}, None])

        def get_next(self):
            return next(self.left)

    quantize_static(tmp_path / "float.onnx", tmp_path / "qdq.onnx", Reader())
    (y,) = InferenceSession(tmp_path / "qdq.onnx").run(None, {"x": x})
    assert np.abs(y - x @ w).max() < 0.02 * np.abs(x @ w).max()


def test_blocks_of_four_bits(installed, tmp_path):
    from onnxruntime import InferenceSession
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    w = _product(tmp_path / "float.onnx")
    quantizer = MatMulNBitsQuantizer(onnx.load(tmp_path / "float.onnx"), block_size=32, is_symmetric=False)
    quantizer.process()
    quantizer.model.save_model_to_file(str(tmp_path / "nbits.onnx"))
    x = np.random.default_rng(2).normal(size=(3, 64)).astype(np.float32)
    (y,) = InferenceSession(tmp_path / "nbits.onnx").run(None, {"x": x})
    assert np.abs(y - x @ w).max() < 0.15 * np.abs(x @ w).max()
