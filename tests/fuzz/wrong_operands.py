"""Nodes with operands of wrong sizes, known in the run only: native onnxruntime refuses most, and py_ort must, too.

A node is a case of tests/ops. Its operands are declared with symbolic sizes, or without a rank, and are feeds, or
constants (which are packed). One or two operands are wrong.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.append(str(Path(__file__).parents[1] / "ops"))

from case import MICROSOFT, Case, Random
from tables import SHARED

#: Tables of forms that only passes make.
_INTERNAL = ("columns", "channels_last", "fused_blocks", "gpu_ends", "transposed_chains", "elementwise_chain", "ends")
#: Operators with random results, or whose inputs are only read as numbers.
_LEFT_OUT = ("Bernoulli", "Multinomial", "Dropout", "RandomNormalLike", "RandomUniformLike")
#: Operators of opset 23.
_NEW = ("Attention", "RMSNormalization", "RotaryEmbedding")


@cache
def cases() -> list[Case]:
    """Up to three small cases of each operator, for each number of inputs with their ranks and types."""
    found: dict[tuple[object, ...], list[Case]] = {}
    for name, table in SHARED.items():
        for case in table:
            plain = name.rpartition("/")[2] not in _INTERNAL and case.domain in ("", MICROSOFT)
            size = sum(
                x.size if isinstance(x, np.ndarray) else int(np.prod(x.shape)) for x in case.inputs if x is not None
            )
            if (
                not plain
                or case.op in _LEFT_OUT
                or size > 4000
                or any(key in case.attributes for key in ("epilogue", "weight_layout"))
                or case.id.endswith("huge")  # with other sizes, native loses the bias next to them
            ):
                continue
            forms = [(len(x.shape), str(x.dtype)) if x is not None else None for x in case.inputs]
            found.setdefault((case.domain, case.op, *forms), []).append(case)
    return [case for same in found.values() for case in same[:3]]


def drawn(seed: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return a model and its feeds."""
    rng = np.random.default_rng(seed)
    case = cases()[int(rng.integers(len(cases())))]
    arrays = case.arrays()
    given = [k for k, x in enumerate(arrays) if x is not None]
    wrong = rng.choice(given, min(len(given), int(rng.choice([1, 1, 1, 2]))), replace=False)
    # Without elements, native's reductions have other sizes and numbers than ONNX's.
    emptied = () if case.op.startswith("Reduce") else ("zero",)
    for index in map(int, wrong):
        shape = _wrong(list(arrays[index].shape), rng, emptied)
        arrays[index] = _of_shape(case.inputs[case.same.get(index, index)], arrays[index], shape, seed)
    constants, ranked = bool(rng.integers(2)), bool(rng.integers(4))
    names = [f"x{k}" if x is not None else "" for k, x in enumerate(arrays)]
    values = {name: x for name, x in zip(names, arrays, strict=True) if x is not None}
    fed = {"x0", *(f"x{index}" for index in wrong)}
    feeds = {name: x for name, x in values.items() if not constants or name in fed}
    node = helper.make_node(
        case.op, names, [f"y{k}" for k in range(case.outputs)], domain=case.domain, **case.attributes
    )
    infos = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(x.dtype),
            [f"{name}_{axis}" for axis in range(x.ndim)] if ranked else None,
        )
        for name, x in feeds.items()
    ]
    kept = [numpy_helper.from_array(x, name) for name, x in values.items() if name not in feeds]
    graph = helper.make_graph([node], case.id, infos, [onnx.ValueInfoProto(name=name) for name in node.output], kept)
    opsets = [helper.make_opsetid("", 23 if case.op in _NEW else 21), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


def _wrong(shape: list[int], rng: np.random.Generator, more: tuple[str, ...]) -> tuple[int, ...]:
    axis = int(rng.integers(len(shape))) if shape else 0
    kinds = ["more", "less", "one", "double", "half", "drop", "add", "swap", "scalar", *more] if shape else ["add"]
    match rng.choice(kinds):
        case "more":
            shape[axis] += int(rng.integers(1, 4))
        case "less":
            shape[axis] = max(1, shape[axis] - 1)
        case "one":
            shape[axis] = 1
        case "double":
            shape[axis] *= 2
        case "half":
            shape[axis] = max(1, shape[axis] // 2)
        case "zero":
            shape[axis] = 0
        case "drop":
            del shape[axis]
        case "scalar":
            shape = []
        case "add":
            shape.insert(axis, int(rng.integers(1, 3)))
        case "swap":
            other = int(rng.integers(len(shape)))
            shape[axis], shape[other] = shape[other], shape[axis]
    return tuple(shape)


def _of_shape(given: Any, array: np.ndarray, shape: tuple[int, ...], seed: int) -> np.ndarray:
    if isinstance(given, Random):
        return Random(shape, given.dtype, given.low, given.high).make(seed)
    if array.size == 0:
        return np.zeros(shape, array.dtype)
    return np.resize(array, shape)
