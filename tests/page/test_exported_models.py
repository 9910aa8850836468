"""`.pyort` files in place of ONNX files: sessions, and the commands that run models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import small_models
from click.testing import CliRunner
from native import native_session
from onnx import numpy_helper

import py_ort
from py_ort import InferenceSession, SessionOptions
from py_ort.cli.group import cli
from py_ort.exceptions import InvalidProtobuf, NotImplemented

pytestmark = pytest.mark.browser
X = np.random.default_rng(1).standard_normal((2, 4, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "net.pyort"
    py_ort.export(small_models.two_products(), file, shapes=[{"x": [2, 4, 8, 8]}])
    return file


def native() -> np.ndarray:
    session = native_session(small_models.two_products())
    return session.run(None, {"x": X})[0]


@pytest.mark.parametrize("providers", [["webgpu", "wasm"], ["wasm"]], ids=lambda names: names[0])
@pytest.mark.parametrize("as_bytes", [False, True], ids=["file", "bytes"])
def test_session(exported: Path, providers: list[str], as_bytes: bool) -> None:
    with InferenceSession(exported.read_bytes() if as_bytes else exported, providers=providers) as session:
        np.testing.assert_allclose(session.run(None, {"x": X})[0], native(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(session.run(None, {"x": X[:1]})[0], native()[:1], rtol=1e-4, atol=1e-5)
        assert set(session.placement().counts()) <= set(providers)
        assert session.placement().counts()[providers[0]]
        assert session.stats()["shapes"] == [{"x": [2, 4, 8, 8]}]


def test_what_an_exported_model_cannot(exported: Path, tmp_path: Path) -> None:
    options = SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    with pytest.raises(NotImplemented, match="no ONNX graph to write"):
        InferenceSession(exported, options, providers=["wasm"])
    with pytest.raises(InvalidProtobuf, match=r"looks like a \.pyort file, which is compiled already"):
        py_ort.export(exported, tmp_path / "again.pyort")


def test_commands(exported: Path, tmp_path: Path) -> None:
    ran = CliRunner().invoke(
        cli, ["run", str(exported), "--random", "--dim", "N=2", "--provider", "wasm", "--json", "-"]
    )
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["outputs"][0]["shape"] == [2, 7]
    wrong = CliRunner().invoke(cli, ["run", str(exported), "--shape", "z=1"], standalone_mode=False)
    assert "no input 'z'" in str(wrong.exception)
    timed = CliRunner().invoke(cli, ["bench", str(exported), "--runs", "1", "--shape", "x=2x4x8x8", "--json", "-"])
    assert timed.exit_code == 0, timed.output
    assert {row["provider"] for row in json.loads(timed.stdout)} == {"webgpu", "wasm"}


def test_conformance(exported: Path, tmp_path: Path) -> None:
    data = tmp_path / "net/test_data_set_0"
    data.mkdir(parents=True)
    (tmp_path / "net/net.pyort").write_bytes(exported.read_bytes())
    for name, array in {"input_0": X, "output_0": native()}.items():
        onnx.save_tensor(numpy_helper.from_array(array), data / f"{name}.pb")
    done = CliRunner().invoke(cli, ["conformance", str(tmp_path), "--provider", "wasm", "--json", "-"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passed"] == 1


def test_damaged(tmp_path: Path) -> None:
    """A weight that is read when the page requests it."""
    weight = np.random.default_rng(2).standard_normal((200, 200)).astype(np.float32)
    model = small_models.model(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        [small_models.floats("x", ["N", 200])],
        [small_models.floats("y", ["N", 200])],
        [numpy_helper.from_array(weight, "w")],
    )
    (file,) = py_ort.export(model, tmp_path / "large.pyort")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(
        InvalidProtobuf, match=r"^'.*large\.pyort' is damaged: its 160000 bytes of data from \d+ on .*Copy it again"
    ):
        InferenceSession(file, providers=["wasm"])
