"""Files of the plan cache with correct checksums and wrong contents."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PREFIX = struct.Struct("<8sQQ32s")


def forge(
    path: Path, header: Callable[[dict[str, Any]], Any] = lambda header: header, plan: Callable[[bytes], bytes] = bytes
) -> None:
    """Write a file of the cache again, with another header (plain data, or bytes) or plan, and their checksum."""
    data = path.read_bytes()
    magic, header_size, plan_size, _ = _PREFIX.unpack_from(data)
    at = _PREFIX.size
    text, old = data[at : at + header_size], data[at + header_size : at + header_size + plan_size]
    weights = data[-(-(at + header_size + plan_size) // 64) * 64 :]
    made, new = header(json.loads(text)), plan(old)
    text = made if isinstance(made, bytes) else json.dumps(made).encode()
    start = _PREFIX.pack(magic, len(text), len(new), hashlib.sha256(text + new).digest()) + text + new
    path.write_bytes(start + bytes(-len(start) % 64) + weights)


def _without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda header: {name: value for name, value in header.items() if name != key}


def _with(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header | values


def _of_first(key: str, **values: Any) -> Callable[[dict[str, Any]], Any]:
    """Set other fields in the first entry of a list."""
    return lambda header: header | {key: [header[key][0] | values, *header[key][1:]]}


def _node(**values: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda header: header | {"placement": _of_first("nodes", **values)(header["placement"])}


_KEYS = ("inputs", "outputs", "overridable", "metadata", "placement", "external", "pieces", "size")

#: By fault: changes of the header.
HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"no {key}": _without(key) for key in _KEYS},
    **{f"{key} is a number": _with(**{key: 5}) for key in _KEYS},
    **{f"{key} is null": _with(**{key: None}) for key in _KEYS},
    "no JSON": lambda header: b"nonsense",
    "no UTF-8": lambda header: b'{"inputs": "\xff\xfe"}',
    "a list": lambda header: [],
    "nested": lambda header: b"[" * 100_000,
    "inputs of other fields": _with(inputs=[{"nonsense": 1}]),
    "a file elsewhere": lambda header: header | {"external": {"/etc/passwd": {"size": 1}}},
    "pieces outside": _with(pieces=[["", 1 << 40, 64]]),
    "negative pieces": _with(pieces=[["", -64, 64]]),
    "pieces of a file that is not there": _with(pieces=[["w.bin", 0, 64]]),
    "an input's type is a mapping": _of_first("inputs", type={}),
    "an input's name is missing": _of_first("inputs", name=None),
    "an input's sizes are texts in lists": _of_first("inputs", dims=[["N"], 3]),
    "a node runs on a number": _node(provider=1),
    "a node runs for a list of reasons": _node(reason=[]),
    "a node's kernel is null": _node(kernel=None),
    "metadata are numbers": lambda header: (
        header | {"metadata": header["metadata"] | {"custom_metadata_map": {"a": 1}}}
    ),
    "of another model": _with(key="0" * 64),
    "a huge size": _with(size=1 << 60),
}

#: By fault: changes of the plan.
PLANS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda plan: b"",
    "short": lambda plan: plan[:100],
    "zeros": lambda plan: bytes(len(plan)),
    "ones": lambda plan: b"\xff" * len(plan),
    "half": lambda plan: plan[: len(plan) // 2],
    "text": lambda plan: b"nonsense" * 100,
    "its middle is gone": lambda plan: plan[: len(plan) // 3] + bytes(len(plan) // 3) + plan[len(plan) // 3 * 2 :],
}
