"""Options are attributes of known names and types: a mistyped one must not be swallowed."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Collection, Mapping
from typing import Any


def check_option(owner: object, name: str, value: Any, defaults: Mapping[str, Any], optional: Collection[str]) -> Any:
    """Return a value as the option holds it.

    Args:
        owner: The options.
        name: Of the option.
        value: As given.
        defaults: All options; the type of a default is the option's.
        optional: Those that take None or a number of seconds.

    Raises:
        AttributeError: There is no such option.
        TypeError: It takes no value of this type.
    """
    if name not in defaults:
        raise AttributeError(f"{type(owner).__name__} has no option {name!r}")
    wanted = type(defaults[name])
    if name in optional:
        return None if value is None else float(value)
    if issubclass(wanted, enum.Enum):
        return wanted(value)
    if wanted is int and not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    elif wanted is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    elif isinstance(value, wanted) or (wanted is bool and type(value).__name__ == "bool"):  # numpy's too
        return wanted(value)
    raise TypeError(f"{type(owner).__name__}.{name} takes {wanted.__name__}, not {value!r}")
