"""The elements by which shape arithmetic is followed are the operators' results."""

from __future__ import annotations

import zlib

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from fold_cases import CASES
from fold_draws import Case, Draw

from py_ort.compiler.folds import folds
from py_ort.ir.graph import tensor_of
from py_ort.ir.infer import infer_node
from py_ort.ir.shape_data import elements, rule

KINDS = [ir.DataType[name] for name in ("INT64", "INT32", "FLOAT", "UINT8", "UINT64")]
ASKED = {"Shape", "Size"}


def _case(op_type: str, draw: Draw, dtype: ir.DataType) -> Case:
    while True:
        case = CASES[op_type](draw, dtype)
        if all(x is None or x.ndim <= 1 for x in case.inputs):
            return case


@pytest.mark.parametrize("op_type", sorted(set(rule) - ASKED))
def test_elements(op_type: str) -> None:
    fold = folds()[op_type]
    followed = 0
    for dtype in (kind for kind in KINDS if kind in fold.dtypes):
        for seed in range(60):
            case = _case(op_type, Draw(zlib.crc32(f"{op_type} {dtype} {seed}".encode())), dtype)
            inputs = [
                None
                if x is None
                else ir.Value(
                    name=f"x{i}",
                    const_value=tensor_of(x),
                    type=ir.TensorType(ir.DataType.from_numpy(x.dtype)),
                    shape=ir.Shape(x.shape),
                )
                for i, x in enumerate(case.inputs)
            ]
            attributes = [ir.convenience.convert_attribute(name, value) for name, value in case.attributes.items()]
            node = ir.Node("", op_type, inputs, attributes, num_outputs=1)
            infer_node(node)
            found, wanted = elements(node.outputs[0]), fold(node, case.inputs)
            if found is None or wanted is None:
                continue
            assert len(found) == wanted[0].size and wanted[0].ndim <= 1
            for element, number in zip(found, wanted[0].reshape(-1), strict=True):
                if element is not None:
                    followed += 1
                    exact = element if isinstance(element, int) else element._expr
                    assert number.dtype != ml_dtypes.bfloat16 and float(exact) == float(number), (case, found, wanted)
                    assert number.dtype.kind == "f" or int(exact) == int(number), (case, found, wanted)
    assert followed > 10


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (4, 5)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(shape))
    for attributes in ({}, {"start": 1}, {"start": -1}, {"end": -1}, {"start": -7, "end": 9}):
        node = ir.Node("", "Shape", [x], [ir.AttrInt64(*item) for item in attributes.items()])
        infer_node(node)
        assert elements(node.outputs[0]) == list(shape[slice(attributes.get("start", 0), attributes.get("end"))])
    size = ir.Node("", "Size", [x])
    infer_node(size)
    assert elements(size.outputs[0]) == [int(np.prod(shape))]
