"""Maps (dicts) as inputs and outputs, converted to and from the tensors that represent them in the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidArgument, RuntimeException, WrongType
from py_ort.wire.tensors import NUMPY, TYPE_NUMBERS

_KEYS = {"int64": (int, np.integer), "string": (str,)}
_C_TYPES = {"int64": "int64_t", "string": "std::string"}


def tensor_of_map(arg: NodeArg, value: Any) -> tuple[NodeArg, np.ndarray]:
    """Return the tensor [1, keys] that represents a map, after the tensor's description.

    Raises:
        InvalidArgument: The value is not a map of the input's type.
    """
    assert arg.keys is not None
    key_type, value_type = arg.type.removeprefix("map(").removesuffix("))").split(",tensor(")
    what = f"input {arg.name!r} is {arg.type}: give a dict with keys of {key_type}"
    if not isinstance(value, Mapping):
        raise WrongType(f"{what}, not {type(value).__name__}")
    if wrong := [key for key in value if not isinstance(key, _KEYS[key_type])]:
        linked = f"Unexpected key type  {type(wrong[0])}, it cannot be linked to C type {_C_TYPES[key_type]}"
        raise InvalidArgument(f"{what}, not {wrong[0]!r}. {linked}")
    dtype = NUMPY[TYPE_NUMBERS[value_type]]
    missing: Any = "" if value_type == "string" else 0
    row = [value.get(key, missing) for key in arg.keys if key is not None]
    if None in arg.keys:
        row += [value[key] for key in sorted(value)]
    try:
        return NodeArg(arg.name, f"tensor({value_type})", None), np.array([row], dtype)
    except (TypeError, ValueError) as e:
        raise InvalidArgument(f"input {arg.name!r} is {arg.type}: {e}") from None


def maps_of_tensor(arg: NodeArg, rows: np.ndarray) -> list[dict[int | str, Any]]:
    """Return the maps that an output's rows represent.

    Raises:
        RuntimeException: There are more or fewer columns than keys.
    """
    assert arg.keys is not None
    rows = rows if rows.ndim == 2 else rows.reshape(1, -1)
    if rows.shape[1] != len(arg.keys):
        raise RuntimeException(
            f"output {arg.name!r}: the model's ZipMap has {len(arg.keys)} class labels, and got {rows.shape[1]} columns"
        )
    keys: list[Any] = list(arg.keys)
    columns = sorted(range(len(keys)), key=keys.__getitem__)  # in the order of keys, as onnxruntime's maps
    return [{keys[i]: row[i] for i in columns} for row in rows.tolist()]
