"""onnxruntime-web's operator tests: files of JSON with comments, each an array of one-node models with their cases.

The format is that of js/web/test/data/ops in microsoft/onnxruntime: {name, operator, opset?: {domain, version},
attributes?, inputShapeDefinitions?, platformCondition?, cases: [{name, inputs: [T], outputs: [T]}]} with
T = {type, dims, data}, data null for an omitted input or output. A test object is one model and one session; all its
cases run on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from py_ort.exceptions import InvalidArgument
from py_ort.providers import AVAILABLE, on_device
from py_ort.testing.case import Case, DataSet, Tolerance
from py_ort.wire.tensors import NUMPY

#: As that runner has them: near if the difference is below `atol`, or the ratio below 1 + `rtol`.
TOLERANCE = {
    **dict.fromkeys(filter(on_device, AVAILABLE), Tolerance(1e-5, 1e-3, either=True)),
    "": Tolerance(1e-6, 1e-4, either=True),
}

_ELEM_TYPE = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    **{
        name: getattr(TensorProto, name.upper())
        for name in (
            *("float16", "bool", "string"),
            *(f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64)),
        )
    },
}
#: Strings are kept whole, comments are dropped, and so are commas before a closing bracket.
_COMMENT = r"//[^\n]*+|/\*.*?\*/"
_TOKENS = re.compile(rf'("(?:\\.|[^"\\])*")|{_COMMENT}|,(?=\s*+(?>(?>{_COMMENT})\s*+)*+[\]}}])', re.DOTALL)


def cases(path: Path, both_shapes: bool = False) -> list[Case]:
    """Return a case for each test object of a folder's .jsonc files, or of one file; ids are "file/number name".

    Args:
        path: The folder or the file.
        both_shapes: Tests of operators that have kernels for channels last run twice, with static and with open input
            shapes, for these are different paths of the compiler; the id of the one that the file does not ask for
            ends in "[static]" or "[unknown]".

    Raises:
        InvalidArgument: A file is no such array.
    """
    files = sorted(path.glob("*.jsonc")) if path.is_dir() else [path]
    found = []
    for file in files:
        for number, test in enumerate(_tests(file)):
            name = f"{file.stem}/{number} {test['name']}"
            found.append(_case(name, test))
            if both_shapes and _is_layout_sensitive(test):
                found += _with_other_shapes(name, test)
    return found


def _is_layout_sensitive(test: dict[str, Any]) -> bool:
    from py_ort.compiler.layout.windows import WINDOWS
    from py_ort.ir.operators import operator

    name = test["operator"].removeprefix("Fused")
    return operator("", name).layout in WINDOWS or name == "Resize"


def _with_other_shapes(name: str, test: dict[str, Any]) -> list[Case]:
    """The test with static shapes if it has open ones, a case for each; with unknown shapes if it has static ones."""
    if isinstance(test.get("inputShapeDefinitions", "none"), list) or test.get("inputShapeDefinitions") == "static":
        return [_case(f"{name} [unknown]", {**test, "inputShapeDefinitions": "none"})]
    by_shape: dict[str, list[Any]] = {}
    for case in test["cases"]:
        by_shape.setdefault(str([t.get("dims") for t in case["inputs"]]), []).append(case)
    return [
        _case(f"{name} [static{f' {i}' if i else ''}]", {**test, "inputShapeDefinitions": "static", "cases": group})
        for i, group in enumerate(by_shape.values())
    ]


def _tests(file: Path) -> list[dict[str, Any]]:
    try:
        tests = read_jsonc(file)
    except ValueError as e:
        raise InvalidArgument(f"{file} is no JSON with comments: {e}") from e
    if not isinstance(tests, list) or not all(isinstance(test, dict) and "operator" in test for test in tests):
        raise InvalidArgument(
            f"{file} is no array of operator tests: give the folder with these files, which onnxruntime-web has in "
            "js/web/test/data/ops, or one of them"
        )
    return tests


def read_jsonc(file: Path) -> Any:
    """Parse JSON with comments and trailing commas."""
    return json.loads(_TOKENS.sub(lambda m: m.group(1) or "", file.read_text()))


def _case(name: str, test: dict[str, Any]) -> Case:
    sets = [
        DataSet(
            {f"input_{i}": _array(t) for i, t in enumerate(case["inputs"]) if t["data"] is not None},
            [_array(t) for t in case["outputs"] if t["data"] is not None],
        )
        for case in test["cases"]
    ]
    return Case(name, _model(test).SerializeToString(), sets, TOLERANCE, group=test["operator"])


def _model(test: dict[str, Any]) -> onnx.ModelProto:
    first = test["cases"][0]
    inputs, outputs = first["inputs"], first["outputs"]
    domain, version = _opset(test)
    node = helper.make_node(
        test["operator"],
        ["" if t["data"] is None else f"input_{i}" for i, t in enumerate(inputs)],
        ["" if t["data"] is None else f"output_{i}" for i, t in enumerate(outputs)],
        name=test["operator"],
        domain=domain,
    )
    node.attribute.extend(map(_attribute, test.get("attributes") or ()))
    shapes = _shapes(test.get("inputShapeDefinitions", "none"), inputs)
    graph = helper.make_graph(
        [node],
        test["name"],
        [_value(f"input_{i}", t, shapes[i]) for i, t in enumerate(inputs) if t["data"] is not None],
        [_value(f"output_{i}", t, None) for i, t in enumerate(outputs) if t["data"] is not None],
    )
    newest = onnx.defs.onnx_opset_version()
    opsets = [helper.make_opsetid("", version if domain == "" else newest)]
    if domain:
        opsets.append(helper.make_opsetid(domain, version))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _opset(test: dict[str, Any]) -> tuple[str, int]:
    given = test.get("opset")
    if given is None:
        return "", onnx.defs.onnx_opset_version()
    domain = given.get("domain", "")
    return ("" if domain == "ai.onnx" else domain), given.get("version", 1)


def _shapes(definition: Any, inputs: list[dict[str, Any]]) -> list[list[int | str] | None]:
    """Shapes that the model says of its inputs."""
    if definition == "none":
        return [None] * len(inputs)
    if definition == "rankOnly":
        return [[f"_{i}_d{axis}" for axis in range(len(t.get("dims") or ()))] for i, t in enumerate(inputs)]
    if definition == "static":
        return [list(t.get("dims") or ()) for t in inputs]
    return [None if shape is None else list(shape) for shape in definition]


def _value(name: str, tensor: dict[str, Any], shape: list[int | str] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, _ELEM_TYPE[tensor["type"]], shape)


#: How each type of attribute reads its data: a float may be written without a point.
_READ: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "int": (onnx.AttributeProto.INT, int),
    "ints": (onnx.AttributeProto.INTS, list),
    "float": (onnx.AttributeProto.FLOAT, float),
    "floats": (onnx.AttributeProto.FLOATS, lambda data: [float(x) for x in data]),
    "string": (onnx.AttributeProto.STRING, str),
    "strings": (onnx.AttributeProto.STRINGS, list),
}


def _attribute(item: dict[str, Any]) -> onnx.AttributeProto:
    kind, read = _READ[item["type"]]
    return helper.make_attribute(item["name"], read(item["data"]), attr_type=kind)


def _array(tensor: dict[str, Any]) -> np.ndarray:
    dtype = NUMPY[_ELEM_TYPE[tensor["type"]]]
    data = [float(x) if isinstance(x, str) and dtype.kind == "f" else x for x in tensor["data"]]
    if dtype.kind in "iu":
        # Written as another type's bits now and then, e.g. 4294967295 for an int32.
        return (
            np.array(data, dtype=object)
            .astype(np.int64 if dtype != np.uint64 else np.uint64)
            .astype(dtype)
            .reshape(tensor["dims"])
        )
    return np.array(data).astype(dtype).reshape(tensor["dims"])
