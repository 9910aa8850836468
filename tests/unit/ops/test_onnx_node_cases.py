"""ONNX's own node tests, compiled: results are correct wherever native onnxruntime's of the model are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import provisional
import pytest
from standard_form import run_native, standard_form

from py_ort.compiler import compile_model
from py_ort.testing.case import Case
from py_ort.testing.sources import onnx_node

# Families whose forms changed over the opsets, or that the compiler handles itself.
FAMILIES = (
    *(
        "reduce_mean",
        "reduce_sum",
        "softmax",
        "logsoftmax",
        "squeeze",
        "unsqueeze",
        "slice",
        "split",
        "constant_pad",
        "reflect_pad",
        "upsample",
        "resize",
        "clip",
    ),
    *(
        "conv",
        "maxpool",
        "averagepool",
        "globalaveragepool",
        "batchnorm",
        "layer_normalization",
        "transpose",
        "reshape",
        "concat",
        "gather",
    ),
    *(
        "expand",
        "tile",
        "dropout",
        "top_k",
        "cast_",
        "if",
        "loop",
        "scan",
        "sequence",
        "gemm",
        "matmul",
        "gelu",
        "hardswish",
        "group_normal",
    ),
)


@cache
def _cases() -> dict[str, Case]:
    return {case.id.removeprefix("test_"): case for case in onnx_node.cases()}


def _close(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(_close(a, b) for a, b in zip(found, wanted, strict=True))
    if wanted is None:
        return found is None
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "OUSb":
        return bool((found == wanted).all())
    return np.allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=2e-3, atol=1e-4, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    cases = [case for name, case in _cases().items() if name.startswith(family) and case.data_sets]
    assert cases
    wrong = []
    for case in cases:
        (data,) = case.data_sets
        try:
            native = _close(run_native(case.model_bytes(), data.feeds), data.outputs)
        except Exception:
            native = False
        if not native:
            continue  # nothing to compare with
        result = compile_model(case.model_bytes(), manifests=provisional.manifests())
        if not _close(run_native(standard_form(result), data.feeds), data.outputs):
            wrong.append(case.id)
    assert not wrong
