"""Values in messages: tensors, sequences of them and optionals, by their ONNX type ("seq(tensor(float))").

A `TensorDesc` whose `kind` is `sequence` or `optional` has `items` instead of bytes, nested as the type is; an optional
has one item or none. Each item is a tensor on the CPU, or another container; no item can stay on a device. `dtype` is
the element type of the tensors inside; it is `undefined` in answers without tensors. In Python a sequence is a list,
and an empty optional is None.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from py_ort.exceptions import ProtocolError
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.wire.tensors import TYPE_NUMBERS, Layout, from_description, pack

_KINDS = {"seq": ValueKind.sequence, "optional": ValueKind.optional}


@cache
def element_type(text: str) -> tuple[int, str]:
    """Return the `ValueKind` of a type, and the type of its items: of "seq(tensor(float))" it is "tensor(float)"."""
    outer, _, inner = text.partition("(")
    return _KINDS.get(outer, ValueKind.tensor), inner.removesuffix(")")


def pack_value(name: str, value: Any, type_text: str, layout: Layout) -> TensorDescT:
    """Describe a value and append its bytes to `layout`.

    Args:
        name: Name of the feed.
        value: An array; a list of values for a sequence; None or a value for an optional.
        type_text: Its ONNX type.
        layout: Receives the value's bytes.
    """
    kind, inner = element_type(type_text)
    if kind == ValueKind.tensor:
        return pack(name, value, layout)
    held = value if kind == ValueKind.sequence else [] if value is None else [value]
    description = TensorDescT()
    description.name, description.kind, description.dtype = name, kind, _dtype(inner)
    description.items = [pack_value("", item, inner, layout) for item in held]
    return description


def value_of(description: Any, payload: memoryview) -> Any:
    """Return a described value: an array, a list for a sequence, None or a value for an optional."""
    if description.kind == ValueKind.tensor:
        return from_description(description, payload)
    held = [value_of(item, payload) for item in description.items or []]
    if description.kind == ValueKind.sequence:
        return held
    if description.kind != ValueKind.optional or len(held) > 1:
        raise ProtocolError(f"value {description.name!r} of kind {description.kind} holds {len(held)} values")
    return held[0] if held else None


def _dtype(text: str) -> int:
    """Return the element type of the tensors in a type."""
    while not text.startswith("tensor("):
        text = element_type(text)[1]
    return TYPE_NUMBERS[text.removeprefix("tensor(").removesuffix(")")]
