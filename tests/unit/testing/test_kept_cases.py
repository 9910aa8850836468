"""Cases kept in a file are unchanged; other files are generated again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from py_ort.testing.case import Case, DataSet, Tolerance
from py_ort.testing.sources import kept_cases, onnx_node

VALUES: dict[str, Any] = {
    "floats": np.array([[1, -0.0, np.nan]], np.float32),
    "a number": np.array(3, np.int64),
    "texts": np.array(["", "ä", "b"], object),
    "brain floats": np.array([1, 2], ml_dtypes.bfloat16),
    "four bits": np.array([-8, 7, 1], ml_dtypes.int4),
    "booleans": np.array([True, False]),
    "a sequence": [np.zeros((0, 2), np.float16), np.ones(3, np.float16)],
    "an empty sequence": [],
    "nothing": None,
}
CASES = [
    Case("test_a", b"model", [DataSet(VALUES, list(VALUES.values()))], {"": Tolerance(1e-2, 3e-5)}, group="Relu"),
    Case("test_b", b"", [DataSet({}, []), DataSet({"x": np.arange(3)}, [np.arange(4)])], {"": Tolerance()}),
]


def told(value: Any) -> Any:
    """All parts of a value, to compare."""
    if isinstance(value, list):
        return [told(each) for each in value]
    return value if value is None else (value.dtype, value.shape, value.dtype == object or value.tobytes(), str(value))


def test_they_are_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "new folder/cases"
    kept_cases.write(file, CASES)
    found = kept_cases.read(file)
    assert found is not None and [item.name for item in file.parent.iterdir()] == ["cases"]
    for case, wanted in zip(found, CASES, strict=True):
        assert (case.id, case.model, case.tolerance, case.group) == (
            *(wanted.id, wanted.model),
            *(wanted.tolerance, wanted.group),
        )
        for data, other in zip(case.data_sets, wanted.data_sets, strict=True):
            assert {name: told(value) for name, value in data.feeds.items()} == {
                name: told(value) for name, value in other.feeds.items()
            }
            assert [*map(told, data.outputs)] == [*map(told, other.outputs)]


@pytest.mark.parametrize("damage", ["", "no list\n", '[["test_a"]]\n', "cut"])
def test_what_cannot_be_read_is_made_again(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "cases"
    kept_cases.write(file, CASES)
    file.write_bytes(file.read_bytes()[:-1] if damage == "cut" else damage.encode())
    assert kept_cases.read(file) is None and kept_cases.read(tmp_path / "none") is None


def test_nodes_are_generated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(onnx_node, "generated", lambda: made.append(1) or CASES)
    for _ in range(2):
        assert [case.id for case in onnx_node.cases()] == ["test_a", "test_b"]
    assert made == [1]
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")  # no cases can be stored there
    assert [case.id for case in onnx_node.cases()] == ["test_a", "test_b"] and made == [1, 1]
