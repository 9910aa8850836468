"""An unforeseen error leaves py_ort as an error of its own, with the cause, the node and the place."""

from __future__ import annotations

import pickle

import onnx_ir as ir
import pytest

from py_ort.boundary import typed_errors
from py_ort.exceptions import InternalError, InvalidGraph, NotImplemented, OutOfMemory, PyOrtError
from py_ort.ir.constants import constant_tensor
from py_ort.ir.errors import node_at_fault
from py_ort.ir.graph import set_attributes


def test_it_says_whose_fault_it_is() -> None:
    node = ir.Node("", "Constant", [], num_outputs=1, name="seven")
    set_attributes(node, value_ints=["no number"])
    with (
        pytest.raises(InternalError, match=r"counting: ValueError: .*bug of py_ort.*; count less") as caught,
        _counting(),
    ):
        constant_tensor(node)
    error = caught.value
    assert isinstance(error.__cause__, ValueError)
    assert (error.node, error.op_type, error.doing) == ("seven", "Constant", "counting")
    assert error.place.startswith("ir/constants.py:") and error.place in str(error)
    assert pickle.loads(pickle.dumps(error)).place == error.place


def _counting() -> object:
    return typed_errors("counting", "count less", where=node_at_fault)


def test_other_errors_keep_their_kind() -> None:
    known = InvalidGraph("as it is")
    with pytest.raises(PyOrtError) as caught, typed_errors("counting"):
        raise known
    assert caught.value is known
    with pytest.raises(OutOfMemory), typed_errors("counting"):
        bytearray(1 << 62)
    with pytest.raises(NotImplemented, match="nested"), typed_errors("counting"):
        _deeper()


def _deeper() -> None:
    _deeper()


def test_names_that_are_no_text() -> None:
    error = InvalidGraph("damaged", node=b"\xffn", op_type=b"Re\xfelu", domain=b"\xfd")  # type: ignore[arg-type]
    assert r"\xfd::Re\xfelu" in str(error)
