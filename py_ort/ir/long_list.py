"""Attributes of very many items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir


class LongList(ir.Attr):
    """An attribute of type INTS, FLOATS or STRINGS whose value is an array or, of texts, a tuple of few objects.

    Args:
        name: The attribute's name.
        kind: Its type.
        items: Its elements.
    """

    __slots__ = ("_items",)

    def __init__(self, name: str, kind: ir.AttributeType, items: Sequence[Any]) -> None:
        super().__init__(name, kind, None)
        self._items = items

    @property
    def value(self) -> Sequence[Any]:
        """The contents: array("q") of INTS, array("f") of FLOATS, a tuple of STRINGS."""
        return self._items
