"""Tests in onnxruntime-web's format, with the requested input shapes and with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from py_ort.exceptions import InvalidArgument
from py_ort.testing.sources.ort_web import cases


def tensor(*dims: int) -> dict[str, Any]:
    count = 1
    for dim in dims:
        count *= dim
    return {"data": [0] * count, "dims": dims, "type": "float32"}


def written(operator: str, shapes: str | None, *inputs: tuple[int, ...]) -> dict[str, Any]:
    made = {"name": "t", "operator": operator, "cases": []}
    made["cases"] = [{"name": str(x), "inputs": [tensor(*x)], "outputs": [tensor(*x)]} for x in inputs]
    return made if shapes is None else {**made, "inputShapeDefinitions": shapes}


ONE, TWO = (1, 2, 3, 3), (1, 2, 5, 3)


@pytest.mark.parametrize(
    ("test", "shapes"),
    [
        (written("Relu", None, ONE), {"f/0 t": None}),
        (
            written("GlobalAveragePool", None, ONE, TWO, ONE),
            {"f/0 t": None, "f/0 t [static]": [*ONE], "f/0 t [static 1]": [*TWO]},
        ),
        (written("LRN", "rankOnly", ONE), {"f/0 t": [0, 0, 0, 0], "f/0 t [static]": [*ONE]}),
        (written("LRN", "static", ONE), {"f/0 t": [*ONE], "f/0 t [unknown]": None}),
    ],
    ids=["not sensitive", "unknown", "rank only", "static"],
)
def test_both_paths(tmp_path: Path, test: dict[str, Any], shapes: dict[str, list[int] | None]) -> None:
    file = tmp_path / "f.jsonc"
    file.write_text(json.dumps([test]))
    found = {case.id: _shape(case.model) for case in cases(file, both_shapes=True)}
    assert found == shapes
    assert [case.id for case in cases(file)] == ["f/0 t"]


def _shape(model: bytes) -> list[int] | None:
    tensor_type = onnx.load_from_string(model).graph.input[0].type.tensor_type
    return [d.dim_value for d in tensor_type.shape.dim] if tensor_type.HasField("shape") else None


@pytest.mark.parametrize(("text", "told"), [('{"a": 1}', "no array of operator tests"), ("[1,", "no JSON")])
def test_a_file_of_something_else(tmp_path: Path, text: str, told: str) -> None:
    """Such files are in onnxruntime-web next to the folder of its operator tests."""
    (tmp_path / "suite.jsonc").write_text(text)
    with pytest.raises(InvalidArgument, match=f"suite.jsonc is {told}"):
        cases(tmp_path)
