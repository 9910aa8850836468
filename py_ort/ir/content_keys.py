"""Keys of constants: texts that are equal only for equal contents, so that nothing compares the contents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import onnx_ir as ir

from py_ort.ir.external_tensor import ExternalTensor

_GIVEN, _DERIVED = "py_ort.identity", "py_ort.derived"


def identify(tensor: ir.TensorProtocol, identity: str) -> None:
    """Give a tensor the identity of its contents."""
    tensor.meta[_GIVEN] = identity


def derive(tensor: ir.TensorProtocol, source: ir.TensorProtocol | Sequence[ir.TensorProtocol], how: str) -> None:
    """Say that a tensor's contents are made of others': `how` tells in which way, all numbers included."""
    tensor.meta[_DERIVED] = (list(source) if isinstance(source, Sequence) else [source], how)


def key_of(tensor: ir.TensorProtocol) -> str:
    """Return the key by which pages recognize equal contents; "" if it is expensive to compute."""
    if tensor.dtype == ir.DataType.STRING:
        return ""
    found = _identity(tensor)
    return hashlib.sha256(found.encode()).hexdigest()[:32] if found else ""


def _identity(tensor: ir.TensorProtocol) -> str | None:
    given = tensor.meta.get(_GIVEN)
    if given is not None:
        return given
    derived = tensor.meta.get(_DERIVED)
    if derived is not None:
        sources = [_identity(source) for source in derived[0]]
        return None if None in sources else f"{'|'.join(map(str, sources))}|{derived[1]}"
    if isinstance(tensor, (ir.LazyTensor, ExternalTensor)):
        return None  # still to be computed, or read
    given = f"{tensor.dtype}/{hashlib.sha256(tensor.tobytes()).hexdigest()}"
    identify(tensor, given)
    return given
