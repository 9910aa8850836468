"""Where cases come from: ONNX's own node tests, onnxruntime-web's operator tests, folders of models."""

from __future__ import annotations

import re
from pathlib import Path

from py_ort.exceptions import InvalidArgument
from py_ort.testing.case import Case


def load_cases(source: str, pattern: str = "") -> list[Case]:
    """Return the cases of a source.

    Args:
        source: "onnx-node"; "ort-web:DIR" (a folder with .jsonc files, or one such file); or a folder with models and
            their test_data_set_N folders.
        pattern: A regular expression that the case's id must contain.

    Raises:
        InvalidArgument: There is no such source, or no such case in it.
    """
    from py_ort.testing.sources import model_folder, onnx_node, ort_web

    if source == "onnx-node":
        cases = onnx_node.cases()
    elif source.startswith("ort-web:"):
        cases = ort_web.cases(_existing(source.removeprefix("ort-web:")), both_shapes=True)
    else:
        cases = model_folder.cases(_existing(source))
    chosen = [case for case in cases if re.search(pattern, case.id)]
    if not chosen:
        raise InvalidArgument(f"no case to run: {source} has {len(cases)}, and none of them contains {pattern!r}")
    return chosen


def _existing(path: str) -> Path:
    if not Path(path).exists():
        raise InvalidArgument(f"no cases at {path!r}: give onnx-node, ort-web:DIR or a folder")
    return Path(path)
