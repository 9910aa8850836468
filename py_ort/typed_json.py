"""Plain data that somebody else may have written, made into dataclasses: each field must be of its type."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read(kind: type[T], data: Any) -> T:
    """Return plain data as what this type says; lists stand for tuples, dicts for dataclasses.

    Raises:
        TypeError: They are something else.
    """
    return cast(T, _reader(cast(Any, kind))(data))


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _of_dataclass(cast(type, kind))
    if origin in (Union, types.UnionType):
        return _of_union([_reader(each) for each in inner])
    if origin in (list, Sequence):
        return _of_list(list, _reader(inner[0]))
    if origin is tuple and inner[-1] is ...:
        return _of_list(tuple, _reader(inner[0]))
    if origin is tuple:
        return _of_tuple([_reader(each) for each in inner])
    if origin in (dict, Mapping):
        return _of_mapping(_reader(inner[1]))

    def plain(data: Any) -> Any:
        if type(data) is not kind:  # True is not a number
            raise TypeError(f"{data!r:.100} is no {kind.__name__}")
        return data

    return plain


def _of_dataclass(kind: type) -> Callable[[Any], Any]:
    hints = {field.name: get_type_hints(kind)[field.name] for field in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    # Most fields are texts and numbers, which are looked at here: a model has thousands of nodes.
    plain = {name: hint for name, hint in hints.items() if hint in (str, int)}
    readers = {name: _reader(hint) for name, hint in hints.items() if name not in plain}

    def make(data: Any) -> Any:
        if type(data) is not dict or not needed <= data.keys() <= hints.keys():
            raise TypeError(f"{data!r:.100} is no {kind.__name__}")
        made = {}
        for name, value in data.items():
            if name in readers:
                value = readers[name](value)
            elif type(value) is not plain[name]:
                raise TypeError(f"{value!r:.100} is no {plain[name].__name__}")
            made[name] = value
        return kind(**made)

    return make


def _of_union(readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def pick(data: Any) -> Any:
        for reader in readers[:-1]:
            try:
                return reader(data)
            except TypeError:
                continue
        return readers[-1](data)

    return pick


def _of_list(make: Callable[[Any], Any], reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_each(data: Any) -> Any:
        if type(data) not in (list, tuple):
            raise TypeError(f"{data!r:.100} is no list")
        return make(map(reader, data))

    return read_each


def _of_tuple(readers: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def read_each(data: Any) -> Any:
        if type(data) not in (list, tuple) or len(data) != len(readers):
            raise TypeError(f"{data!r:.100} is no list of {len(readers)}")
        return tuple(reader(value) for reader, value in zip(readers, data, strict=True))

    return read_each


def _of_mapping(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read_each(data: Any) -> Any:
        if type(data) is not dict:
            raise TypeError(f"{data!r:.100} is no mapping")
        return {name: reader(value) for name, value in data.items()}

    return read_each
