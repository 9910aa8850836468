"""Differences between versions of protobuf."""

from __future__ import annotations

from typing import Any


def is_repeated(field: Any) -> bool:
    """Return True if a message may have several values of a field."""
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
