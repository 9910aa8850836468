"""From a .ort file to the message that an ONNX file is."""

from __future__ import annotations

import struct

import onnx

from py_ort.compiler.load.ort_format import layout
from py_ort.compiler.load.ort_format.graph import write_graph
from py_ort.compiler.load.ort_format.tables import Damaged
from py_ort.exceptions import InvalidProtobuf, NotImplemented

#: Versions of the format, since onnxruntime 1.4. They differ in the description of kernels, and in the list of dtypes.
_VERSIONS = ("1", "2", "3", "4", "5", "6")
_ERRORS = (Damaged, IndexError, OverflowError, RecursionError, TypeError, ValueError, struct.error)


def is_ort_format(data: bytes) -> bool:
    """Return True if a file's bytes have this format."""
    return data[4:8] == layout.IDENTIFIER


def read_ort_format(data: bytes, what: str) -> onnx.ModelProto:
    """Read a file.

    Args:
        data: Its bytes.
        what: The file's name for messages.

    Raises:
        InvalidProtobuf: It is damaged.
        NotImplemented: It is of a version that is not known, or has what only one provider of onnxruntime can run.
    """
    try:
        file = layout.File.root(data)
        version = file.version
        if version and version not in _VERSIONS:
            raise NotImplemented(
                f"{what} is of version {version[:20]!r} of onnxruntime's format (.ort), and this py_ort knows "
                f"{_VERSIONS[0]} to {_VERSIONS[-1]}: give the ONNX file that it was made of, or upgrade py_ort"
            )
        if not version or file.model is None:
            raise Damaged("it has no version, or no model")
        return _model(file.model)
    except _ERRORS as e:
        raise InvalidProtobuf(
            f"{what} is a damaged file of onnxruntime's format (.ort): {e}. Download or copy it again"
        ) from e


def _model(model: layout.Model) -> onnx.ModelProto:
    proto = onnx.ModelProto(
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc,
    )
    for opset in model.opsets:
        proto.opset_import.add(domain=opset.domain, version=opset.version)
    for entry in model.metadata:
        proto.metadata_props.add(key=entry.key, value=entry.value)
    if model.graph is None:
        raise Damaged("it has no graph")
    write_graph(model.graph, proto.graph)
    proto.graph.doc_string = model.graph_doc
    return proto
