"""Texts that are not UTF-8: names and labels in whatever encoding an exporter's machine had.

Protobuf gives such a name as bytes, which nothing behind it expects. onnxruntime only compares names, so any text will
do as one. Here each byte that is not text is written as `\\xff`, and what was different stays different.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import onnx

from py_ort.compiler.load.protobuf import is_repeated

_STRINGS = {"s", "strings", "string_data"}  # fields of bytes that hold texts: attributes, elements of tensors


def make_readable(model: onnx.ModelProto) -> None:
    """Rewrite the texts that are not UTF-8, in place."""
    if not all(_is_text(text) for text in _texts(model)):
        _rewrite(model)


def _texts(model: onnx.ModelProto) -> Iterator[str | bytes]:
    """All texts that matter, found quickly: most models have no foreign ones."""
    yield from (model.producer_name, model.producer_version, model.domain, model.doc_string)
    for item in model.metadata_props:
        yield from (item.key, item.value)
    for opset in model.opset_import:
        yield opset.domain
    for function in model.functions:
        yield from (function.name, function.domain, function.overload, *function.input, *function.output)
        yield from _of_nodes(function.node)
    yield from _of_graph(model.graph)


def _of_graph(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    yield from (graph.name, graph.doc_string)
    for tensor in graph.initializer:
        yield tensor.name
        yield from tensor.string_data
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.name
        for dim in value.type.tensor_type.shape.dim:
            yield dim.dim_param
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Any) -> Iterator[str | bytes]:
    kinds = onnx.AttributeProto
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        for item in node.attribute:
            kind = item.type
            if kind == kinds.STRING:
                yield item.s
            elif kind == kinds.STRINGS:
                yield from item.strings
            elif kind == kinds.TENSOR:
                yield from item.t.string_data
            elif kind == kinds.GRAPH:
                yield from _of_graph(item.g)


def _rewrite(message: Any) -> None:
    """Look at every text of a message, at every depth."""
    for name, repeated, nested in _fields(message.DESCRIPTOR):
        if nested:
            parts = getattr(message, name) if repeated else [getattr(message, name)] if message.HasField(name) else []
            for part in parts:
                _rewrite(part)
        elif repeated:
            texts = getattr(message, name)
            texts[:] = [_readable(text, name) for text in texts]
        elif message.HasField(name):
            setattr(message, name, _readable(getattr(message, name), name))


@lru_cache
def _fields(descriptor: Any) -> list[tuple[str, bool, bool]]:
    """The fields that are or have texts: name, whether there may be several, whether it is a message."""
    return [
        (field.name, is_repeated(field), field.type == field.TYPE_MESSAGE)
        for field in descriptor.fields
        if field.type in (field.TYPE_STRING, field.TYPE_MESSAGE) or field.name in _STRINGS
    ]


def _is_text(text: str | bytes) -> bool:
    if isinstance(text, str) or text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def readable_bytes(text: bytes) -> bytes:
    """Return a text as UTF-8: each byte that is not text as `\\xff`."""
    return text.decode("utf-8", "backslashreplace").encode()


def _readable(text: str | bytes, field: str) -> str | bytes:
    if field in _STRINGS:
        return readable_bytes(text if isinstance(text, bytes) else text.encode())
    return text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
