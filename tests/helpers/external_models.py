"""Models with external data, in every place where a model may have some."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, helper

VALUES = np.array([1, 2, 3, 4], np.float32)


def external(location: str, dims: tuple[int, ...] = (4,), **entries: Any) -> TensorProto:
    """A float32 tensor in a file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _y(shape: tuple[int | str, ...]) -> list[Any]:
    return [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]


def _body(tensor: TensorProto, constant: bool) -> GraphProto:
    made = helper.make_node("Constant", [], ["z"], value=tensor)
    node = made if constant else helper.make_node("Identity", ["w"], ["z"])
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, list(tensor.dims))]
    return helper.make_graph([node], "body", [], outputs, [] if constant else [tensor])


def _initializer(tensor: TensorProto) -> dict[str, Any]:
    return {"nodes": [helper.make_node("Identity", ["w"], ["y"])], "initializers": [tensor]}


def _constant(tensor: TensorProto) -> dict[str, Any]:
    return {"nodes": [helper.make_node("Constant", [], ["y"], value=tensor)]}


def _constant_of_shape(tensor: TensorProto) -> dict[str, Any]:
    value = TensorProto()
    value.CopyFrom(tensor)
    value.dims[:] = [1]
    shape = helper.make_tensor("shape", TensorProto.INT64, [1], [4])
    return {"nodes": [helper.make_node("ConstantOfShape", ["shape"], ["y"], value=value)], "initializers": [shape]}


def _in_if(tensor: TensorProto, constant: bool) -> dict[str, Any]:
    bodies = {name: _body(tensor, constant) for name in ("then_branch", "else_branch")}
    nodes = [helper.make_node("If", ["c"], ["y"], **bodies)]
    return {"nodes": nodes, "initializers": [helper.make_tensor("c", TensorProto.BOOL, [], [True])]}


def _function(tensor: TensorProto, in_subgraph: bool) -> dict[str, Any]:
    if in_subgraph:
        condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
        bodies = {name: _body(tensor, constant=False) for name in ("then_branch", "else_branch")}
        inside = [
            helper.make_node("Constant", [], ["c"], value=condition),
            helper.make_node("If", ["c"], ["z"], **bodies),
        ]
    else:
        inside = [helper.make_node("Constant", [], ["z"], value=tensor)]
    function = helper.make_function("own", "F", [], ["z"], inside, [helper.make_opsetid("", 17)])
    return {"nodes": [helper.make_node("F", [], ["y"], domain="own")], "functions": [function]}


#: Places that native onnxruntime and the IR support, too.
PLACES = {
    "initializer": _initializer,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "initializer of a subgraph": lambda tensor: _in_if(tensor, constant=False),
    "Constant in a subgraph": lambda tensor: _in_if(tensor, constant=True),
    "function": lambda tensor: _function(tensor, in_subgraph=False),
    "subgraph in a function": lambda tensor: _function(tensor, in_subgraph=True),
}


def _sparse(tensor: TensorProto) -> SparseTensorProto:
    indices = helper.make_tensor("indices", TensorProto.INT64, [4], range(4))
    return SparseTensorProto(values=tensor, indices=indices, dims=[4])


def _sparse_value(tensor: TensorProto) -> dict[str, Any]:
    constant = helper.make_node("Constant", [], ["w"], sparse_value=_sparse(tensor))
    return {"nodes": [constant, helper.make_node("Identity", ["w"], ["y"])]}


def _sparse_indices(tensor: TensorProto) -> dict[str, Any]:
    sparse = _sparse(helper.make_tensor("w", TensorProto.FLOAT, [4], range(4)))
    sparse.indices.CopyFrom(tensor)
    return {"nodes": [helper.make_node("Constant", [], ["y"], sparse_value=sparse)]}


def _sparse_initializer(tensor: TensorProto) -> dict[str, Any]:
    return {"nodes": [helper.make_node("Identity", ["w"], ["y"])], "sparse": [_sparse(tensor)]}


def _list(tensor: TensorProto) -> dict[str, Any]:
    node = helper.make_node("Many", [], ["y"], domain="own")
    node.attribute.append(AttributeProto(name="tensors", type=AttributeProto.TENSORS, tensors=[tensor]))
    return {"nodes": [node]}


def _default(tensor: TensorProto) -> dict[str, Any]:
    parts = _function(helper.make_tensor("w", TensorProto.FLOAT, [4], range(4)), in_subgraph=False)
    parts["functions"][0].attribute_proto.append(helper.make_attribute("default", tensor))
    return parts


#: Other places.
MORE_PLACES = {
    "sparse values": _sparse_value,
    "sparse indices": _sparse_indices,
    "sparse initializer": _sparse_initializer,
    "list of tensors": _list,
    "default of a function": _default,
}


def model(tensor: TensorProto, place: str = "initializer") -> ModelProto:
    """A model without inputs whose output y is the tensor (of ConstantOfShape: four times its first element)."""
    parts: Mapping[str, Any] = {**PLACES, **MORE_PLACES}[place](tensor)
    dims = (4,) if place == "ConstantOfShape" else tuple(tensor.dims)
    graph = helper.make_graph(parts["nodes"], "external", [], _y(dims), parts.get("initializers", []))
    graph.sparse_initializer.extend(parts.get("sparse", []))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=parts.get("functions", []), ir_version=8)


def save(made: ModelProto | bytes, folder: Path) -> Path:
    """Write a model, and a file of `VALUES` next to it."""
    path = folder / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    (folder / "w.bin").write_bytes(VALUES.tobytes())
    return path


def hugging_face(cache: Path, made: ModelProto, values: np.ndarray) -> Path:
    """Write a model and the data of its tensor at "model.onnx_data" in the form of Hugging Face's cache."""
    blobs, snapshot = cache / "blobs", cache / "snapshots" / "d3adbeef"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, blob, contents in (
        ("model.onnx", "aaa", made.SerializeToString()),
        ("model.onnx_data", "bbb", values.tobytes()),
    ):
        (blobs / blob).write_bytes(contents)
        (snapshot / name).symlink_to(Path("../../blobs") / blob)
    return snapshot / "model.onnx"
