"""Folders of models and data sets: their external data is read from these folders only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from external_models import VALUES, external, model, save
from onnx import TensorProto

from py_ort.compiler.load import load_model
from py_ort.testing.sources import model_folder


def folder(at: Path, expected: TensorProto) -> Path:
    save(model(external("w.bin")), at)
    data = at / "test_data_set_0"
    data.mkdir()
    (data / "output_0.pb").write_bytes(expected.SerializeToString())
    (data / "y.bin").write_bytes(VALUES.tobytes())
    return at


def test_external_data_beside_model_and_data_set(tmp_path: Path) -> None:
    (case,) = model_folder.cases(folder(tmp_path, external("y.bin")))
    np.testing.assert_array_equal(case.data_sets[0].outputs[0], VALUES)
    assert load_model(case.model).external.keys() == {"w.bin"}


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd"])
def test_data_sets_read_nothing_else(tmp_path: Path, location: str) -> None:
    (case,) = model_folder.cases(folder(tmp_path, external(location)))
    assert "InvalidGraph" in case.trouble and "not in the model's folder" in case.trouble and not case.data_sets
