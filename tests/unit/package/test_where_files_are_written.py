"""Outputs that `export` may be given, and the error for one that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_models

import py_ort
from py_ort.exceptions import InvalidArgument


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "add.v2.onnx"
    file.write_bytes(small_models.add())
    return file


def test_a_folder(model: Path, tmp_path: Path) -> None:
    assert py_ort.export(model, tmp_path, providers=["wasm"]) == [tmp_path / "add.v2.pyort"]
    with pytest.raises(InvalidArgument, match="is a folder, and a model of bytes has no name"):
        py_ort.export(model.read_bytes(), tmp_path)


def test_a_folder_that_is_not_there(model: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        py_ort.export(model, tmp_path / "nowhere/add.pyort", providers=["wasm"])
    assert not list(tmp_path.rglob("*.part"))
