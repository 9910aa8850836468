"""A model with user kernels in native onnxruntime, which has none: their references run between its parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx
from onnx import helper

from py_ort.compiler.load import read_proto
from py_ort.exceptions import InvalidArgument, NotImplemented
from py_ort.user_kernels import registered_kernels
from py_ort.user_kernels.kernel import UserKernel
from py_ort.user_kernels.trial import reference_outputs

Kernels = Mapping[tuple[str, str], UserKernel]


def split(
    model: str | os.PathLike[str] | bytes, folder: str | os.PathLike[str] | None, make_session: Callable[[bytes], Any]
) -> SplitModel | None:
    """Return a model in parts, or None if no node runs a registered user kernel.

    Args:
        model: An ONNX file, or its bytes.
        folder: Folder of external data.
        make_session: Makes a native session of the bytes of a part.

    Raises:
        PyOrtError: The model cannot be read.
        InvalidArgument: A kernel that the model needs has no reference.
        NotImplemented: A user kernel runs inside of a node, such as If or Loop.
    """
    if not registered_kernels():
        return None
    proto = read_proto(model)
    _check_bodies(proto)
    kernels = kernels_of(proto)
    return SplitModel(proto, os.fsdecode(folder or "."), kernels, make_session) if kernels else None


def _check_bodies(proto: onnx.ModelProto) -> None:
    names = registered_kernels()
    for node in proto.graph.node:
        for inner in _inside(node):
            if (name := f"{inner.domain}::{inner.op_type}") in names:
                raise NotImplemented(
                    f"user kernel {name} runs inside of {node.op_type} {node.name!r}: its reference= runs for nodes of "
                    "the main graph only"
                )


def _inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield all nodes of a node's subgraphs."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield inner
                yield from _inside(inner)


def kernels_of(proto: onnx.ModelProto) -> Kernels:
    """Return the registered user kernels that nodes of a model's main graph run, by domain and operator."""
    known = {(each.domain, each.op_type): each for each in registered_kernels().values()}
    used = dict.fromkeys((node.domain, node.op_type) for node in proto.graph.node)
    return {key: known[key] for key in used if key in known}


class SplitModel:
    """Stretches of nodes that native onnxruntime runs, and nodes of user kernels that their references run.

    Args:
        proto: The model.
        folder: Folder of its external data.
        kernels: The user kernels, by domain and operator.
        make_session: Makes a native session of the bytes of a stretch.

    Attributes:
        outputs: Names of the model's outputs, in order.

    Raises:
        InvalidArgument: A kernel that the model needs has no reference.
    """

    def __init__(
        self, proto: onnx.ModelProto, folder: str, kernels: Kernels, make_session: Callable[[bytes], Any]
    ) -> None:
        graph = proto.graph
        self.outputs = [output.name for output in graph.output]
        self._proto, self._folder, self._make_session = proto, folder, make_session
        self._initializers = {each.name: each for each in graph.initializer}
        #: By stretch and what it is fed with.
        self._sessions: dict[tuple[Any, ...], Any] = {}
        #: Nodes with their kernel; None: native onnxruntime has the operator.
        self._parts: list[tuple[UserKernel | None, list[onnx.NodeProto]]] = []
        for kernel, nodes in groupby(graph.node, lambda node: kernels.get((node.domain, node.op_type))):
            if kernel is not None and kernel.reference is None:
                raise InvalidArgument(f"user kernel {kernel.name} has no reference= to compare with")
            self._parts.append((kernel, list(nodes)))

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        """Return the model's outputs.

        Raises:
            Exception: Native onnxruntime refuses a stretch or its inputs, or a reference raises.
        """
        mine = {*self.outputs, *_read_by(node for kernel, nodes in self._parts if kernel for node in nodes)}
        known = {
            name: onnx.numpy_helper.to_array(each, self._folder)
            for name, each in self._initializers.items()
            if name in mine
        }
        known |= feeds
        for number, (kernel, nodes) in enumerate(self._parts):
            if kernel is None:
                later = {*self.outputs, *_read_by(node for _, more in self._parts[number + 1 :] for node in more)}
                known |= self._natively(number, known, later)
            else:
                for node in nodes:
                    known |= _by_reference(kernel, node, known)
        return [known[name] for name in self.outputs]

    def _natively(self, number: int, known: Mapping[str, Any], later: Iterable[str]) -> dict[str, Any]:
        _, nodes = self._parts[number]
        read, made = _read_by(nodes), {name for node in nodes for name in node.output}
        names = sorted(made.intersection(later))
        if not names:
            return {}
        inputs = [_described(name, known[name]) for name in sorted(read & known.keys())]
        key = (number, *(each.SerializeToString() for each in inputs))
        if key not in self._sessions:
            self._sessions[key] = self._make_session(self._part(nodes, inputs, names))
        fed = {each.name: known[each.name] for each in inputs}
        return dict(zip(names, self._sessions[key].run(names, fed), strict=True))

    def _part(
        self, nodes: Sequence[onnx.NodeProto], inputs: Sequence[onnx.ValueInfoProto], names: Iterable[str]
    ) -> bytes:
        read = _read_by(nodes) - {each.name for each in inputs}
        part = helper.make_graph(
            nodes,
            "part",
            inputs,
            [onnx.ValueInfoProto(name=name) for name in names],
            [each for name, each in self._initializers.items() if name in read],
            sparse_initializer=[each for each in self._proto.graph.sparse_initializer if each.values.name in read],
        )
        model = helper.make_model(
            part,
            ir_version=self._proto.ir_version,
            opset_imports=self._proto.opset_import,
            functions=self._proto.functions,
        )
        return model.SerializeToString()


def _by_reference(kernel: UserKernel, node: onnx.NodeProto, known: Mapping[str, Any]) -> dict[str, Any]:
    named = zip(kernel.input_names, node.input, strict=False)
    arrays = {name: np.asarray(known[given]) for name, given in named if given}
    attributes = {each.name: _text(helper.get_attribute_value(each)) for each in node.attribute}
    found = reference_outputs(kernel, arrays, attributes)
    return {name: found[output] for name, output in zip(node.output, kernel.outputs, strict=False) if name}


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def _read_by(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the names that nodes read, including reads of their subgraphs."""
    read: set[str] = set()
    for node in nodes:
        read.update(node.input)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                read |= _read_by(graph.node) | {output.name for output in graph.output}
    return read


def _described(name: str, value: Any) -> onnx.ValueInfoProto:
    if isinstance(value, list):
        element = _element(value[0]) if value else onnx.TensorProto.FLOAT
        return helper.make_tensor_sequence_value_info(name, element, None)
    return helper.make_tensor_value_info(name, _element(value), [None] * np.ndim(value))


def _element(value: Any) -> int:
    dtype = np.asarray(value).dtype
    return onnx.TensorProto.STRING if dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(dtype)
