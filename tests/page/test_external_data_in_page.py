"""External data in real sessions: read as in native onnxruntime, and errors if it cannot be served."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from external_models import PLACES, VALUES, external, hugging_face, model, save
from graphs import parse
from onnx import ModelProto
from standard_form import run_native

from py_ort import GraphOptimizationLevel, OrtValue, SessionOptions
from py_ort.compiler import compile_model
from py_ort.exceptions import Fail
from py_ort.wire.parts import LazyPart, size_of

LEVELS = list(GraphOptimizationLevel)


def at(level: GraphOptimizationLevel, **entries: str) -> SessionOptions:
    options = SessionOptions()
    options.graph_optimization_level = level
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return options


@pytest.mark.parametrize("level", [LEVELS[0], LEVELS[-1]], ids=str)
@pytest.mark.parametrize("place", PLACES)
def test_everywhere_as_native_onnxruntime_reads_it(new_session, tmp_path: Path, place: str, level) -> None:
    path = save(model(external("w.bin"), place), tmp_path)
    wanted = run_native(str(path), {})
    for source, options in (
        (path, at(level)),
        (path.read_bytes(), at(level, model_external_initializers_file_folder_path=str(tmp_path))),
    ):
        np.testing.assert_array_equal(new_session(source, options, providers=["wasm"]).run(None, {}), wanted)


@pytest.mark.parametrize("place", ["sparse values", "sparse initializer"])
def test_sparse_tensors(new_session, tmp_path: Path, place: str) -> None:
    session = new_session(save(model(external("w.bin"), place), tmp_path), providers=["wasm"])
    np.testing.assert_array_equal(session.run(None, {})[0], VALUES)


@pytest.mark.parametrize("place", PLACES)
def test_files_in_memory(new_session, place: str) -> None:
    options = SessionOptions()
    options.add_external_initializers_from_files_in_memory(["w.bin"], [VALUES.tobytes()], [16])
    session = new_session(model(external("w.bin"), place).SerializeToString(), options, providers=["wasm"])
    wanted = np.full(4, VALUES[0]) if place == "ConstantOfShape" else VALUES
    np.testing.assert_array_equal(session.run(None, {})[0], wanted)


def test_values_for_initializers_without_a_file(new_session) -> None:
    options = SessionOptions()
    options.add_external_initializers(["w"], [OrtValue.ortvalue_from_numpy(VALUES * 2)])
    session = new_session(model(external("missing.bin")).SerializeToString(), options, providers=["wasm"])
    np.testing.assert_array_equal(session.run(None, {})[0], VALUES * 2)


def with_weights(operator: str, size: int) -> tuple[ModelProto, np.ndarray]:
    """A model with this number of bytes of weights, served directly (Add) or packed on demand (MatMul)."""
    columns = size // 4 // 64
    weights = np.random.default_rng(size).standard_normal((64, columns)).astype(np.float32)
    made = parse(f"g (float[64,64] x) => (float[64,{columns}] y) {{ y = MatMul(x, w) }}")
    if operator == "Add":
        made = parse(f"g (float[1,{columns}] x) => (float[64,{columns}] y) {{ y = Add(x, w) }}")
    tensor = external("model.onnx_data", dims=weights.shape)
    made.graph.initializer.append(tensor)
    return made, weights


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("size", [4096, 3 << 19, 5 << 20], ids=["4 KiB", "1.5 MiB", "5 MiB"])
@pytest.mark.parametrize("operator", ["Add", "MatMul"])
def test_the_cache_of_hugging_face(new_session, tmp_path: Path, operator: str, size: int, level) -> None:
    made, weights = with_weights(operator, size)
    path = hugging_face(tmp_path, made, weights)
    rows = 1 if operator == "Add" else 64
    x = np.random.default_rng(1).standard_normal((rows, 64 if rows > 1 else weights.shape[1])).astype(np.float32)
    session = new_session(path, at(level), providers=["wasm"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], run_native(str(path), {"x": x})[0], rtol=1e-4, atol=1e-4)


# --- data that cannot be served


def _fails() -> memoryview:
    raise ValueError("the disk went away")


@pytest.mark.parametrize("place", ["the first part", "a later part", "the last part"])
def test_what_fails_in_the_server_is_in_the_exception(new_session, tmp_path: Path, place: str, caplog) -> None:
    """The page reports Python's reason, instead of a network error."""
    size = 5 << 20
    path = hugging_face(tmp_path, *with_weights("Add", size))
    session = new_session(path, providers=["wasm"])
    compiled = compile_model(path, providers=["wasm"])
    assert sum(map(size_of, compiled.parts())) == size
    at = {"the first part": 0, "a later part": 3 << 20, "the last part": size - 64}[place]
    parts = [bytes(at), LazyPart(64, _fails), bytes(size - at - 64)]
    with caplog.at_level(logging.CRITICAL, "py_ort"), pytest.raises(Fail, match="ValueError: the disk went away"):
        session._opened.runtime.load(compiled.plan, parts, {"threads": 0, "trace": False}, None, timeout=60).result()
    x = np.ones((1, size // 256), np.float32)
    assert session.run(None, {"x": x})[0].shape == (64, size // 256)  # the page still works
