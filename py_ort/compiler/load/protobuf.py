"""What protobuf says in other ways from version to version."""

from __future__ import annotations

from typing import Any


def is_repeated(field: Any) -> bool:
    """Whether a message may have several of a field."""
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
