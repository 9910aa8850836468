"""The list of native onnxruntime's operators, and what the document says of them."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from py_ort.compiler import compile_model
from py_ort.compiler.document import lacking
from py_ort.compiler.native_operators import installed, native_operators
from py_ort.compiler.placement import load_manifests
from py_ort.exceptions import NotImplemented


def test_the_list_is_that_of_the_installed_version() -> None:
    """Where this fails: `python -m py_ort.compiler.native_operators`, then `python -m py_ort.compiler.document`."""
    assert native_operators() == installed()


def _one_node(domain: str, name: str) -> bytes:
    node = helper.make_node(name, ["x"], ["y"], domain=domain)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [1])], [onnx.ValueInfoProto(name="y")]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def test_what_is_lacking_is_refused() -> None:
    for domain, names in lacking(load_manifests()).items():
        for name in names:
            with pytest.raises(NotImplemented, match=rf"{domain}::{name}\b.*no kernel"):
                compile_model(_one_node(domain, name))
