"""Checks of options: attributes of known names and types, so that typing errors raise."""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from py_ort.signal_handlers import suppress


def _whole(value: Any, wanted: type) -> int:
    number = operator.index(value)
    if isinstance(value, bool) or not -_INTS <= number < _INTS:
        raise TypeError
    return number


def _truth(value: Any, wanted: type) -> bool:
    if value is not None and not hasattr(value, "__bool__"):  # strings and lists have none
        raise TypeError
    return bool(value)


def _text(value: Any, wanted: type) -> str:
    path = os.fspath(value)
    return path.decode() if isinstance(path, bytes) else str(path)


def _choice(value: Any, wanted: type[enum.Enum]) -> enum.Enum:
    if isinstance(value, (enum.Enum, bool)) and not isinstance(value, wanted):
        raise TypeError
    return wanted(value if isinstance(value, wanted) else operator.index(value))


_INTS = 1 << 31  # onnxruntime's are of 32 bits
#: Converters to the types of options. They accept the same values as native onnxruntime, and numbers of choices.
_TAKE: dict[type, Callable[[Any, Any], Any]] = {int: _whole, bool: _truth, str: _text}


def check_option(owner: object, name: str, value: Any, defaults: Mapping[str, Any], optional: Collection[str]) -> Any:
    """Return a value in the option's type.

    Args:
        owner: The options.
        name: Name of the option.
        value: The given value.
        defaults: Defaults of all options; they determine the types.
        optional: Options that are None or a number of seconds.

    Raises:
        AttributeError: There is no such option.
        TypeError: The option does not accept this type.
    """
    if name not in defaults:
        raise AttributeError(f"{type(owner).__name__} has no option {name!r}")
    wanted = type(defaults[name])
    if name in optional:
        return None if value is None else float(value)
    with suppress(TypeError, ValueError):
        return _TAKE.get(wanted, _choice)(value, wanted)
    raise TypeError(f"{type(owner).__name__}.{name} takes {wanted.__name__}, not {value!r}")
