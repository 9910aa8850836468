"""ONNX's official test runner on `py_ort.backend`: a slice of its cases, as anybody would run them."""

from __future__ import annotations

import re
import warnings

import onnx.backend.test

import py_ort.backend

#: test_loop16_seq_none is left out: the runner cannot compare tensors of rank 0 in a sequence.
CHOSEN = re.compile(
    r"test_(relu|add|loop(?!16)|if_seq|sequence_(insert|map_add)|identity_opt|optional_get_element|top_k_smallest|"
    r"cast_FLOAT_to_(BFLOAT16|FLOAT8E4M3FN|INT4)|operator_(conv|lstm))\w*_cpu"
)


def chosen_cases() -> dict[str, type]:
    """The runner's test classes, with the chosen tests only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its generators divide by zero on purpose
        cases = onnx.backend.test.BackendTest(py_ort.backend, __name__).test_cases
    for case in cases.values():
        for name in [name for name in vars(case) if name.startswith("test_") and not CHOSEN.fullmatch(name)]:
            delattr(case, name)
    return cases


globals().update(chosen_cases())
